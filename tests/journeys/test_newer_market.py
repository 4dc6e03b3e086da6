"""A running bank imports newer prices and bills, as seen by its partner."""

from datetime import date

from tests.treasury.test_market_refresh import NEW, forget_todays_rates, import_both

from billfold.bills.rules.market import Market
from billfold.treasury.market_log import MarketRefresher


async def test_a_running_bank_sees_an_import_of_market_data(bank, partner_desk):
    await forget_todays_rates(bank)
    pocket = await partner_desk.funded(1_000_000_00)
    before = await partner_desk.value(pocket)

    await import_both(bank)
    assert await partner_desk.value(pocket) == before
    await MarketRefresher(bank.pool, bank.market, activation_delay=0).refresh()

    assert await partner_desk.value(pocket) > before, "rates have fallen"
    await partner_desk.wire(pocket, 1_000_000_00)
    shown = await partner_desk.get(pocket.path)
    assert NEW.cusip in {each["cusip"] for each in shown["portfolio"]["securities"]}


async def test_a_payout_is_executed_with_stale_prices(bank, partner_desk):
    payer = await partner_desk.funded(1_000_000_00)
    payee = await partner_desk.pocket(payer.customer)
    market = bank.market = bank.engine.market = Market.packaged(bank.calendars)
    market.age_max_days, market._curve_days[-1] = 1, date(2020, 1, 1)
    body = {
        "type": "INTERNAL_REALLOCATION",
        "from_account": {"id": payer.id, "type": "SERVICE_ACCOUNT"},
        "to_account": {"id": payee.id, "type": "SERVICE_ACCOUNT"},
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_000_00},
    }
    assert (await partner_desk.post("/api/v1/transfers/on-us/", body))["status"] == "COMPLETED"
