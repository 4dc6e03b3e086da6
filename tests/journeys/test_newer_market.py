"""Newer prices and bills come into a bank that is running, as its partner sees them."""

from tests.bills.test_market_refresh import NEW, import_both, know_less

from billfold.bills.market_refresh import MarketRefresher


async def test_an_import_is_seen_by_a_running_bank(bank, partner_desk):
    await know_less(bank)
    pocket = await partner_desk.funded(1_000_000_00)
    before = await partner_desk.value(pocket)

    await import_both(bank)
    assert await partner_desk.value(pocket) == before
    await MarketRefresher(bank.pool, bank.market, activation_delay=0).look()

    assert await partner_desk.value(pocket) > before, "rates have fallen"
    await partner_desk.wire(pocket, 1_000_000_00)
    shown = await partner_desk.get(pocket.path)
    assert NEW.cusip in {each["cusip"] for each in shown["portfolio"]["securities"]}
