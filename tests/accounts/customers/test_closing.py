"""Closing a customer: its money is paid out after the last fee, open work ends, and its team can still read."""

import asyncio
from datetime import timedelta

import pytest
from tests.accounts.customers.test_freezing import CLOSING, PATH, freeze
from tests.documents.test_routes import PAGE, sent
from tests.support.applications import run_jobs
from tests.support.approvals import REQUESTS, decide, on_us, wire, wire_counterparty
from tests.wiring.test_worker import set_clock

from billfold.data_keys.rotation import shred_after_retention

HOOK = {
    "url": "https://hooks.example/in",
    "events": ["trades.maturity"],
    "shared_secret": "a secret of 32 characters ......",
}


@pytest.fixture
async def world(partner_desks):
    """The desk of a partner who may close customers."""
    return await partner_desks("acme", features=("customer_closure",))


async def pay_everything_out(customer_desk, manager, pocket):
    """Send the whole balance of a Pocket by wire, including the accrued fee; return the wire's id."""
    accrued = (await customer_desk.get(pocket.path))["portfolio"]["fees"]
    order = wire(pocket, 1, await wire_counterparty(customer_desk))
    order["transfer"]["amount"] = {"type": "FULL_WITHDRAWAL"}
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    paid = await decide(manager, await customer_desk.post(REQUESTS, order))
    charged = (await customer_desk.get("/api/v2/transactions/", {"type[]": "FEE", "pocket[]": pocket.id}))["items"]
    assert [each["amount"] for each in charged] == [each["amount"] for each in accrued]
    return paid["id"]


async def test_closing_a_customer_charges_the_last_fee_and_keeps_read_access_for_its_team(
    customer_desk, manager, world, funded, payroll_pocket, service_users
):
    bank, path = customer_desk.bank, f"{PATH}{customer_desk.team.customer}/"
    program, _ = await service_users(customer_desk, "pockets.read")
    hook = await customer_desk.post("/api/v1/subscriptions/", HOOK)
    await customer_desk.days(10)
    waiting = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    wired = await pay_everything_out(customer_desk, manager, funded)
    problem = await world.refused("PATCH", path, CLOSING, status=422, code="customer-has-balance")
    assert "in process" in problem["detail"]
    for step in ("submit", "acknowledge"):
        await world.post(f"/api/v1/sandbox/wires/{wired}/{step}/", {}, 202)
    closed = await world.patch(path, CLOSING | {"closure_description": "Moved to another bank"})
    shown = {"account_status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    assert closed.items() >= (shown | {"closure_description": "Moved to another bank"}).items()
    await world.refused("PATCH", path, CLOSING, status=409, code="customer-not-open")
    upload = f"{path}documents/OTHER/file/"
    await world.refused("POST", upload, PAGE, status=409, code="customer-not-open", headers=sent())
    # The service user's token ends with the closing; pending work is ended by the worker.
    await program.ask("GET", "/api/v2/pockets/", status=401)
    await run_jobs(bank)
    assert (await customer_desk.get(f"{REQUESTS}{waiting['id']}/"))["status"] == "CANCELLED"
    assert (await customer_desk.get(f"/api/v1/subscriptions/{hook['id']}/"))["status"] == "disabled"
    for read in ("/api/v1/customer/", "/api/v2/transactions/", "/api/v1/team/"):
        await customer_desk.get(read)
    for write, body in (("/api/v1/subscriptions/", HOOK), (REQUESTS, on_us(funded, 1_00, to=payroll_pocket))):
        await customer_desk.refused("POST", write, body, status=403, code="forbidden")
    late = {"portal_id": funded.portal, "amount_usdc": 5_00, "sender_name": "Contoso"}
    await world.refused("POST", "/api/v1/sandbox/wire/", late, status=409, code="no-open-portal")
    await set_clock(bank, await bank.now() + timedelta(days=6 * 366))
    assert await shred_after_retention(bank) == 1
    forgotten = await world.get(path)
    assert forgotten.items() >= (shown | {"closure_description": None, "email": None}).items()


async def test_a_refused_customer_closure_names_every_obstacle_and_changes_nothing(world):
    pocket = await world.funded(1_000_00)
    other = await world.pocket(pocket.customer, name="Payroll")
    path = f"{PATH}{pocket.customer}/"
    problem = await world.refused("PATCH", path, CLOSING, status=422, code="customer-has-balance")
    assert "Reserve" in problem["detail"]
    assert "Payroll" not in problem["detail"]
    await freeze(world, pocket.customer)
    await world.refused("PATCH", path, CLOSING, status=409, code="customer-not-open")
    await freeze(world, pocket.customer, "OPEN")
    await world.post(f"/api/v1/sandbox/pockets/{other.id}/", {"status": "FROZEN"}, 200)
    await world.refused("PATCH", path, CLOSING, status=409, code="pocket-frozen")
    assert (await world.get(path))["closure_reason"] is None
    assert {(await world.get(each.path))["status"] for each in (pocket, other)} == {"OPEN", "FROZEN"}


async def test_closing_a_customer_during_concurrent_deposits_never_closes_it_with_money(world):
    pocket = await world.pocket()
    path = f"{PATH}{pocket.customer}/"
    wire_in = {"portal_id": pocket.portal, "amount_usdc": 1_00, "sender_name": "Contoso"}

    async def deposit(nth):
        await asyncio.sleep(nth / 1000)
        return (await world.send("POST", "/api/v1/sandbox/wire/", wire_in)).status_code

    closing, *arrived = await asyncio.gather(world.send("PATCH", path, CLOSING), *(deposit(nth) for nth in range(50)))
    held = sum(
        each["amount"]["value"] for each in (await world.get(f"{pocket.path}transactions/", {"limit": 100}))["items"]
    )
    status = (await world.get(path))["account_status"]
    assert (closing.status_code, status) in {(200, "CLOSED"), (422, "OPEN")}
    assert held == (0 if status == "CLOSED" else 50_00)
    assert set(arrived) <= {202, 409}
