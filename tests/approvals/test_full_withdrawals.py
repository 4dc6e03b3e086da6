"""A Pocket is paid out in full, and under no weaker rule than its value asks for."""

import pytest
from msgspec.structs import replace
from tests.support.approvals import REQUESTS, decide, on_us, refused, wire, wire_counterparty

FULL = {"type": "FULL_WITHDRAWAL"}


async def value_of(customer_desk, pocket):
    return (await customer_desk.get(f"/api/v2/pockets/{pocket.id}/"))["portfolio"]["total_value"]["value"]


async def order(customer_desk, funded, other, kind):
    """Return the body of a wire of a Pocket's full balance, in money or in bills."""
    if kind == "WIRE":
        return wire(funded, 0, await wire_counterparty(customer_desk), amount=FULL)
    body = on_us(funded, 0, to=other, amount=FULL)
    body["transfer"]["details"]["transfer_type"] = kind
    return body


@pytest.mark.parametrize("kind", ["WIRE", "BANK_TRANSFER", "SECURITY_TRANSFER"])
async def test_a_full_withdrawal_shows_the_estimated_value_and_then_the_paid_amount(
    customer_desk, manager, world, funded, payroll_pocket, kind
):
    engine = customer_desk.bank.engine
    engine.terms = replace(engine.terms, wire_fee_cents=15_00)
    worth = await value_of(customer_desk, funded)
    body = await order(customer_desk, funded, payroll_pocket, kind)
    made = await customer_desk.post(REQUESTS, body)
    assert (made["transfer"]["amount_type"], made["transfer"]["amount"]["value"]) == ("FULL_WITHDRAWAL", worth)
    await world.days(2)
    done = (await decide(manager, made))["transfer"]
    assert done["execution_status"] in {"COMPLETED", "PROCESSING"}
    assert [(each["type"], each["amount"]["value"]) for each in done["fees"]] == [("WIRE_FEE", 15_00)] * (
        kind == "WIRE"
    )
    paid = done["amount"]["value"]
    left = await value_of(customer_desk, funded)
    if kind == "SECURITY_TRANSFER":
        assert paid + left == pytest.approx(worth, abs=worth // 500)
        return
    assert left == 0
    booked = await customer_desk.get(f"/api/v2/transactions/{done['transaction_ids'][0]}/")
    assert booked["amount"]["value"] == paid != worth
    await world.days(1)
    await customer_desk.patch(
        f"/api/v2/pockets/{funded.id}/", {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    )


@pytest.mark.parametrize("kind", ["WIRE", "BANK_TRANSFER", "SECURITY_TRANSFER"])
async def test_a_deposit_after_the_request_makes_approval_of_a_full_withdrawal_fail(
    customer_desk, manager, world, funded, payroll_pocket, kind
):
    body = await order(customer_desk, funded, payroll_pocket, kind)
    made = await customer_desk.post(REQUESTS, body)
    await world.wire(funded, 1_000_00)
    await refused(manager, made, "amount-not-allowed", answers=422)
    again = await customer_desk.patch(f"{REQUESTS}{made['id']}/", {"transfer": body["transfer"]})
    assert again["content_hash"] != made["content_hash"]
    assert again["transfer"]["amount"]["value"] == await value_of(customer_desk, funded)
    done = await decide(manager, again, content_hash=again["content_hash"])
    assert done["transfer"]["reason"] is None
    assert done["transfer"]["transaction_ids"] or kind == "SECURITY_TRANSFER"


async def test_a_full_withdrawal_from_an_empty_pocket_is_refused(customer_desk, payroll_pocket, funded):
    body = on_us(payroll_pocket, 0, to=funded, amount=FULL)
    await customer_desk.refused("POST", REQUESTS, body, status=422, code="insufficient-funds")
