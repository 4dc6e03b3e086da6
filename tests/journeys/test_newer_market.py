"""Newer prices and bills come into a bank that is running, as its partner sees them."""

from tests.bills.test_market_refresh import NEW, import_both, know_less

from billfold.bills.market_refresh import MarketRefresher


async def test_an_import_is_seen_by_a_running_bank(town):
    await know_less(town.bank)
    pocket_id = await town.pocket(await town.customer())
    await town.wire(pocket_id, 1_000_000_00)
    before = await town.value(pocket_id)

    await import_both(town.bank)
    assert await town.value(pocket_id) == before
    await MarketRefresher(town.bank.pool, town.bank.market, activation_delay=0).look()

    assert await town.value(pocket_id) > before, "rates have fallen"
    await town.wire(pocket_id, 1_000_000_00)
    pocket = await town.get(f"/api/v2/pockets/{pocket_id}/")
    assert NEW.cusip in {each["cusip"] for each in pocket["portfolio"]["securities"]}
    await town.prove()
