"""Newer prices and bills come into a bank that is running, as its partner sees them."""

from tests.bills.test_market_refresh import NEW, import_both, know_less

from billfold.bills.market_refresh import MarketRefresher


async def test_an_import_is_seen_by_a_running_bank(partner):
    await know_less(partner.bank)
    pocket = await partner.funded(1_000_000_00)
    before = await partner.value(pocket)

    await import_both(partner.bank)
    assert await partner.value(pocket) == before
    await MarketRefresher(partner.bank.pool, partner.bank.market, activation_delay=0).look()

    assert await partner.value(pocket) > before, "rates have fallen"
    await partner.wire(pocket, 1_000_000_00)
    shown = await partner.get(pocket.path)
    assert NEW.cusip in {each["cusip"] for each in shown["portfolio"]["securities"]}
