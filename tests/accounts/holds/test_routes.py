"""Holds over HTTP: payments capture those that they name, both APIs place and release them, the clock ends them."""

import pytest
from tests.payments.on_us.test_routes import PATH as ON_US
from tests.payments.on_us.test_routes import reallocation
from tests.support import payees
from tests.support.approvals import decide, on_us, status_of
from tests.support.world import UNKNOWN

from billfold.platform import ids

SANDBOX = "/api/v1/sandbox/"


@pytest.fixture
async def desk(partner_desks):
    return await partner_desks("acme", features=("wires",))


async def linked(desk, pocket, body):
    """Link and verify an account; return the counterparty's id."""
    made = await desk.post(f"/api/v2/customers/{pocket.customer}/counterparties/", body)
    verified = {"counterparty_id": made["id"], "status": "APPROVED"}
    await desk.ask("POST", f"{SANDBOX}counterparty-verification/", verified, status=202)
    return made["id"]


async def events_of(desk):
    kinds = [each["event"]["event_type"] for each in await desk.pages("/api/v1/events/")]
    return sorted(each for each in kinds if each.startswith("hold."))


async def test_transfers_wires_and_ach_credits_capture_what_a_partner_has_held(desk, other_partner):
    pocket = await desk.funded(10_000_00)
    there = await desk.pocket(pocket.customer)
    holds = f"{pocket.path}holds/"
    deposit = {"amount_usdc": 9_000_00, "reason": "Deposit for unit 4"}
    key = ids.new()
    made = await desk.post(holds, deposit, key=key)
    assert await desk.post(holds, deposit, key=key) == made
    named, one = {"hold_id": made["id"]}, f"{holds}{made['id']}/"
    await desk.refused("POST", holds, deposit, status=422, code="insufficient-funds")
    await desk.invalid("POST", holds, {**deposit, "expires_at": "2031-01-01T00:00:00Z"}, loc="body.expires_at")
    portfolio = (await desk.get(pocket.path))["portfolio"]
    assert portfolio["held"]["value"] == 9_000_00
    assert (await desk.post(ON_US, reallocation(pocket, there, 5_000_00)))["reason"] == "INSUFFICIENT_FUNDS"

    transfer = reallocation(pocket, there, 4_000_00, transfer_id=str(ids.new()), **named)
    assert [(await desk.post(ON_US, transfer))["status"] for _ in range(2)] == ["COMPLETED"] * 2
    wire = {"counterparty_id": await linked(desk, pocket, payees.wire()), "amount_usdc": 3_000_00, **named}
    await desk.post(f"/api/v1/service-accounts/{pocket.id}/wires/", wire)
    credit = {"counterparty_id": await linked(desk, pocket, payees.ach()), "amount_usdc": 1_500_00, **named}
    path = f"/api/v1/service-accounts/{pocket.id}/ach-originating/"
    await desk.invalid("POST", path, {**credit, "direction": "DEBIT"}, loc="body.hold_id")
    await desk.post(path, {**credit, "direction": "CREDIT"}, status=200)
    shown = await desk.get(one)
    assert [shown[name]["value"] for name in ("amount", "captured", "held")] == [9_000_00, 8_500_00, 500_00]
    await desk.refused(
        "POST", ON_US, reallocation(pocket, there, 500_01, **named), status=422, code="amount-not-allowed"
    )
    for path in (f"{there.path}holds/{made['id']}/", f"{holds}{UNKNOWN}/"):
        await desk.ask("GET", path, status=404)
    await other_partner.ask("POST", f"{one}release/", {}, status=404)
    assert (await desk.post(f"{one}release/", {}, status=200))["status"] == "RELEASED"
    await desk.refused("POST", f"{one}release/", {}, status=409, code="hold-not-active")
    assert (await desk.get(pocket.path))["portfolio"]["held"]["value"] == 0
    assert await events_of(desk) == [*["hold.captured"] * 3, "hold.created", "hold.released"]


async def test_a_member_captures_a_hold_by_an_approved_request_and_the_clock_ends_the_rest(
    customer_desk, customer_desks, manager, world, funded, payroll_pocket
):
    holds = f"{funded.path}holds/"
    viewer = await customer_desks(customer_desk.team.customer, role="VIEWER")
    until = {"expires_at": "2025-06-05T21:00:00Z", "reason": "Rent of July"}
    await viewer.refused("POST", holds, {**until, "amount_usdc": 1}, status=403, code="forbidden")
    first, second = [
        (await customer_desk.post(holds, {**until, "amount_usdc": cents}))["id"] for cents in (2_000_00, 600_00)
    ]
    asked = await customer_desk.post(
        "/api/v1/transfer-requests/", on_us(funded, 1_500_00, to=payroll_pocket, hold_id=first)
    )
    await decide(manager, asked)
    assert await status_of(customer_desk, asked) == ("APPROVED", "COMPLETED")
    assert [each["id"] for each in (await viewer.get(holds, {"filter[status]": "ACTIVE"}))["items"]] == [second, first]
    explained = await viewer.get(f"{funded.path}explain/", {"field": "held"})
    inputs = explained["explanation"]["inputs"]
    assert sorted((each["value"], each["rows"][0]["id"]) for each in inputs) == sorted(
        [("50000", first), ("60000", second)]
    )
    await world.until("2025-06-05T17:00:00-04:00")
    shown = (await viewer.get(holds))["items"]
    assert [(each["status"], each["held"]["value"]) for each in shown] == [("EXPIRED", 0)] * 2
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    late = await customer_desk.post("/api/v1/transfer-requests/", on_us(funded, 100, to=payroll_pocket, hold_id=second))
    refusal = {"status": "APPROVED"}
    path = f"/api/v1/transfer-requests/{late['id']}/status/"
    await manager.refused("PATCH", path, refusal, status=409, code="hold-not-active")
