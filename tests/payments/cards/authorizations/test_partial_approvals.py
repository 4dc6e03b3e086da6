"""What of a payment by card can be approved when the Pocket has less: purchases in part, cash never."""

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
async def test_cash_is_declined_and_not_approved_in_part_when_the_pocket_has_less(cardholder, fields):
    terminal = {"is_partial_allowed": True, "is_purchase_only_allowed": True}
    await cardholder.declined("INSUFFICIENT_FUNDS", _MORE, **fields, **terminal)


async def test_a_purchase_is_approved_without_its_cash_back_when_that_is_what_the_pocket_has(cardholder):
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


async def test_more_for_a_purchase_is_declined_where_it_is_cash_and_the_pocket_has_less(cardholder):
    reference = await cardholder.held(10_00, merchant={"name": "Vantorp Teller", "category_code": "6010"})
    more = await cardholder.simulate("increment", network_reference=reference, amount_usdc=_MORE)
    assert (more["decision"], more["reason"]) == ("DECLINED", "INSUFFICIENT_FUNDS")


async def test_cash_of_more_than_the_whole_amount_is_an_invalid_message(cardholder):
    body = {"card_id": cardholder.card, "amount_usdc": 10_00, "cash_usdc": 10_01}
    refused = await cardholder.desk.post("/api/v1/sandbox/card-authorization/", body, status=422)
    assert "cash" in str(refused)
