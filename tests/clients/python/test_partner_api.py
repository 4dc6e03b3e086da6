"""A program works with the Partner API: it signs, repeats under its key, and renews its token."""

import asyncio
from datetime import date
from uuid import UUID

import pytest
from tests.clients.python.bridge import in_thread

from billfold_client.errors import ApiError

RESERVE = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"}


@in_thread
def test_a_partner_opens_funds_and_reads(partner_calls, customer_id):
    assert customer_id in {each.id for each in partner_calls.list_customers()}
    assert partner_calls.get_customer(customer_id).name == "Northwind"
    made = partner_calls.create_pocket(customer_id, **RESERVE, idempotency_key=customer_id)
    assert partner_calls.create_pocket(customer_id, **RESERVE, idempotency_key=customer_id).id == made.id
    other = partner_calls.create_pocket(customer_id, pocket_name="Other", deposit_strategy_id="UST-4W")
    (portal,) = partner_calls.list_portals(made.id)
    partner_calls.sandbox_wire(portal_id=portal.id, amount_usdc=9_000_00, sender_name="Contoso")
    moved = partner_calls.create_on_us_transfer(
        type="INTERNAL_REALLOCATION",
        from_account={"id": made.id, "type": "SERVICE_ACCOUNT"},
        to_account={"id": other.id, "type": "SERVICE_ACCOUNT"},
        amount={"type": "REQUESTED_AMOUNT", "amount_usdc": 1_000_00},
    )
    assert moved.status == "COMPLETED"
    assert len(list(partner_calls.list_transactions(limit=1))) == 3
    assert partner_calls.list_earnings().aggregate.contributions.value == 10_000_00
    earned = partner_calls.get_pocket_earnings(made.id)
    assert earned.contributions.value == 9_000_00
    assert earned.date_to == date(2025, 6, 2).isoformat()
    hours = {"date_from": "2025-06-02T00:00:00-04:00", "date_to": "2025-06-02T08:00:00-04:00"}
    assert partner_calls.get_pocket_earnings(made.id, period="range", **hours).date_to == "2025-06-02T12:00:00Z"
    assert len(list(partner_calls.list_pocket_trades(made.id))) >= 2
    assert {each.id for each in partner_calls.list_customer_pockets(customer_id)} == {made.id, other.id}
    assert len(list(partner_calls.list_pockets())) == 2
    assert list(partner_calls.list_counterparties(customer_id)) == []
    assert next(partner_calls.list_trading_strategies().by_page()).count == 4
    told = partner_calls.get_funding_instructions(made.id, portal.id)
    assert told.portal_id == portal.id
    assert partner_calls.get_pocket(made.id).id == made.id


async def test_an_unknown_partner_token_is_renewed(bank, partner_calls):
    assert len(await asyncio.to_thread(lambda: list(partner_calls.list_pockets()))) == 0
    await bank.pool.execute("DELETE FROM partner_token")
    await asyncio.sleep(1.1)
    assert len(await asyncio.to_thread(lambda: list(partner_calls.list_pockets()))) == 0


@in_thread
def test_a_refused_partner_api_call_raises_api_error_with_its_code(partner_calls):
    with pytest.raises(ApiError) as refused:
        partner_calls.get_customer(UUID(int=0))
    assert (refused.value.status, refused.value.code) == (404, "not-found")
