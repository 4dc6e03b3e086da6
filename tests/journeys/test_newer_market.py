"""A running bank imports newer prices and bills, as seen by its partner."""

from datetime import date
from uuid import uuid4

from billfold.bills.rules.market import Market


async def test_a_sale_with_stale_prices_returns_503_and_its_retry_succeeds_with_current_ones(bank, partner_desk):
    payer = await partner_desk.funded(1_000_000_00)
    payee = await partner_desk.pocket(payer.customer)
    market = bank.market = bank.engine.market = Market.packaged(bank.calendars)
    key = str(uuid4())
    market.age_max_days, newest = 1, market._curve_days[-1]
    market._curve_days[-1] = date(2020, 1, 1)
    body = {
        "type": "INTERNAL_REALLOCATION",
        "from_account": {"id": payer.id, "type": "SERVICE_ACCOUNT"},
        "to_account": {"id": payee.id, "type": "SERVICE_ACCOUNT"},
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_000_00},
    }
    assert await partner_desk.get(payer.path)
    path = "/api/v1/transfers/on-us/"
    stale = await partner_desk.refused("POST", path, body, status=503, code="market-data-stale", key=key)
    assert stale["retryable"]
    market._curve_days[-1] = newest
    assert (await partner_desk.post(path, body, key=key))["status"] == "COMPLETED"
