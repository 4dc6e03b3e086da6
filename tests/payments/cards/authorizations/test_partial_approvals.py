"""Partial approvals: purchases may be approved in part, cash never."""

import pytest
from tests.support.cards import FUNDED

_MORE = FUNDED + 100_00


@pytest.mark.parametrize(
    "fields",
    [
        {"entry_mode": "ATM"},
        {"cash_usdc": _MORE},
        {"merchant": {"name": "Vantorp Teller", "category_code": "6010"}},
        {"merchant": {"name": "Vantorp Machine", "category_code": "6011"}},
    ],
)
async def test_cash_over_the_pocket_balance_is_declined_without_partial_approval(cardholder, fields):
    terminal = {"is_partial_allowed": True, "is_purchase_only_allowed": True}
    await cardholder.declined("INSUFFICIENT_FUNDS", _MORE, **fields, **terminal)


async def test_a_purchase_is_approved_without_cash_back_when_the_balance_covers_only_the_purchase(cardholder):
    purchase = FUNDED - 100_00
    asked = {"cash_usdc": 200_00}
    await cardholder.declined("INSUFFICIENT_FUNDS", purchase + 200_00, **asked)
    for terminal in ({"is_purchase_only_allowed": True}, {"is_partial_allowed": True}):
        decided = await cardholder.authorize(purchase + 200_00, **asked, **terminal)
        assert (decided["decision"], decided["approved_amount"]) == ("PARTIALLY_APPROVED", purchase)
        await cardholder.simulate("reversal", network_reference=decided["network_reference"])
    await cardholder.declined("INSUFFICIENT_FUNDS", _MORE + 200_00, is_purchase_only_allowed=True, **asked)
    partial = await cardholder.authorize(_MORE + 200_00, is_partial_allowed=True, **asked)
    assert partial["decision"] == "PARTIALLY_APPROVED"
    assert FUNDED - 50_00 < partial["approved_amount"] <= FUNDED


async def test_an_increment_of_a_cash_withdrawal_over_the_balance_is_declined(cardholder):
    reference = await cardholder.held(10_00, merchant={"name": "Vantorp Teller", "category_code": "6010"})
    more = await cardholder.simulate("increment", network_reference=reference, amount_usdc=_MORE)
    assert (more["decision"], more["reason"]) == ("DECLINED", "INSUFFICIENT_FUNDS")


async def test_a_cash_amount_over_the_total_amount_is_an_invalid_card_message(cardholder):
    body = {"card_id": cardholder.card, "amount_usdc": 10_00, "cash_usdc": 10_01}
    refused = await cardholder.desk.post("/api/v1/sandbox/card-authorization/", body, status=422)
    assert "cash" in str(refused)
