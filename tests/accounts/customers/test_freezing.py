"""A frozen customer reads and receives; nothing goes out, and it starts nothing new."""

from uuid import UUID

import pytest
from tests.approvals.test_execute_transfers import not_executed
from tests.support.approvals import REQUESTS, counterparty, decide, on_us, refused, status_of, wire, wire_counterparty
from tests.support.payees import ach
from tests.support.whole_bank import EngineCommands

from billfold.approvals.execute_transfers import execute_request
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.on_us.worker import execute_all_pending

PATH = "/api/v1/customers/"
CLOSING = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}


async def freeze(partner, customer, status="FROZEN", reason="Court order 7/25"):
    """Freeze a customer, or lift the freeze with OPEN; return the customer."""
    path = f"/api/v1/sandbox/customers/{customer}/"
    return (await partner.post(path, {"status": status, "reason": reason}, 200))["account_status"]


@pytest.fixture
async def partner(partner_desks):
    """A partner with every feature enabled."""
    return await partner_desks("initech", features=("ccd", "customer_closure", "unverified_wires", "wires"))


def account(pocket):
    return {"id": pocket.id, "type": "SERVICE_ACCOUNT"}


async def instructions(partner, pocket, other):
    """Return the bodies that a partner can send for a customer, by path."""
    own = await partner.facilitation()
    customer = pocket.customer
    counterparties, accounts = f"/api/v2/customers/{customer}/counterparties/", "/api/v1/service-accounts/"
    payee = (await partner.post(counterparties, ach()))["id"]
    await partner.ask(
        "POST",
        "/api/v1/sandbox/wire/",
        {
            "portal_id": pocket.portal,
            "amount_usdc": 1_00,
            "sender_name": "Ada Stone",
            "sender_account_number": "000123456789",
            "sender_routing_number": "021000021",
        },
        status=202,
    )
    amount = {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_00}
    within = {"type": "INTERNAL_REALLOCATION", "from_account": account(pocket), "to_account": account(other)}
    out = {"type": "PARTNER_CUSTOMER_DEFUNDING", "from_account": account(pocket), "to_account": account(own)}
    entry = {"counterparty_id": payee, "amount_usdc": 1_00, "sec_code": "PPD"}
    bills = {"account_id": pocket.id, "direction": "OUT", "quantity": 1, "counterparty_name": "Harbor Custody"}
    (held, *_) = (await partner.get(pocket.path))["portfolio"]["securities"]
    return [
        ("POST", "/api/v1/transfers/on-us/", within | {"amount": amount}),
        ("POST", "/api/v1/transfers/on-us/", within | {"amount": amount, "async_mode": True}),
        ("POST", "/api/v1/transfers/on-us/", out | {"amount": {"type": "FULL_WITHDRAWAL"}, "target": "all of it"}),
        ("POST", f"{accounts}{pocket.id}/wires/", {"counterparty_id": payee, "amount_usdc": 1_00}),
        ("POST", f"{accounts}{pocket.id}/ach-originating/", entry | {"direction": "CREDIT"}),
        ("POST", f"{accounts}{pocket.id}/ach-originating/", entry | {"direction": "DEBIT"}),
        ("POST", "/api/v1/sandbox/security-transfer/", bills | {"cusip": held["cusip"]}),
        ("POST", f"/api/v2/customers/{customer}/pockets/", {"pocket_name": "New", "deposit_strategy_id": "UST-4W"}),
        ("POST", f"{pocket.path}portals/", {"name": "New"}),
        ("POST", counterparties, ach(account_number="000987654321")),
        ("PATCH", f"/api/v2/customers/{customer}/pockets/{pocket.id}/", {"deposit_strategy_id": "UST-52W"}),
        ("PATCH", f"/api/v2/customers/{customer}/pockets/{other.id}/", CLOSING),
        ("PATCH", f"{PATH}{customer}/", CLOSING),
    ]


async def test_a_frozen_customer_can_read_and_receive_but_not_send(partner):
    pocket = await partner.funded(50_000_00)
    other = await partner.pocket(pocket.customer)
    path = f"{PATH}{pocket.customer}/"
    begun = await instructions(partner, pocket, other)
    assert await freeze(partner, pocket.customer) == "FROZEN"
    before = await partner.counts()
    for method, where, body in begun:
        await partner.refused(method, where, body, status=409, code="customer-not-open")
    assert await partner.counts() == before
    assert (await partner.get(path))["account_status"] == "FROZEN"
    listed = await partner.get(PATH, {"account_status": "FROZEN"})
    assert [each["id"] for each in listed["items"]] == [pocket.customer]
    # Money comes in, contact details change, and what falls due happens.
    await partner.wire(pocket, 1_000_00)
    own = await partner.facilitation(5_000_00)
    await partner.transfer(own, other, 2_000_00, type="PARTNER_CUSTOMER_FUNDING", source="payroll")
    assert (await partner.patch(path, {"email": "new@northwind.example"}))["email"] == "new@northwind.example"
    await partner.days(30)
    trades = (await partner.get(f"/api/v2/pockets/{pocket.id}/trades/"))["items"]
    assert {"MATURITY", "BUY"} <= {each["activity"] for each in trades}
    charged = await partner.get(f"{pocket.path}transactions/", {"type[]": "FEE"})
    assert charged["items"]
    # Only the freeze of the customer is lifted: a Pocket that is frozen for another reason stays frozen.
    await partner.post(f"/api/v1/sandbox/pockets/{other.id}/", {"status": "FROZEN"}, 200)
    assert await freeze(partner, pocket.customer, "OPEN", reason="The order was lifted") == "OPEN"
    assert (await partner.get(other.path))["status"] == "FROZEN"
    await partner.transfer(pocket, other, 1_00)
    await partner.refused(
        "POST",
        "/api/v1/transfers/on-us/",
        begun[0][2] | {"from_account": account(other), "to_account": account(pocket)},
        status=409,
        code="pocket-frozen",
    )


async def test_unfreezing_a_customer_without_pockets_sets_it_pending_and_a_closed_one_cannot_be_frozen(partner):
    path = f"{PATH}{await partner.customer()}/"
    customer = path.split("/")[-2]
    for status, after in (("FROZEN", "FROZEN"), ("FROZEN", "FROZEN"), ("OPEN", "PENDING"), ("OPEN", "PENDING")):
        assert await freeze(partner, customer, status) == after
    await partner.patch(path, CLOSING)
    where = f"/api/v1/sandbox/customers/{customer}/"
    for status in ("FROZEN", "OPEN"):
        body = {"status": status, "reason": "late"}
        await partner.refused("POST", where, body, status=409, code="customer-not-open")
    for reason in ("", " ", "two\nlines", "\u202eback", "x" * 501):
        await partner.invalid("POST", where, {"status": "OPEN", "reason": reason}, loc="body.reason")


async def test_requests_approved_or_accepted_before_a_freeze_are_not_executed(
    customer_desk, manager, world, funded, payroll_pocket
):
    customer = customer_desk.team.customer
    payee = await world.pocket()
    linked = await counterparty(world, customer, payee)
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, counterparty=linked))
    accepted = await EngineCommands(customer_desk.bank).submit(
        TransferOnUs,
        UUID(customer),
        transfer_id=None,
        type="INTERNAL_REALLOCATION",
        from_pocket_id=UUID(funded.id),
        to_pocket_id=UUID(payroll_pocket.id),
        amount=2_00,
        partner_id=world.partner.partner_id,
        later=True,
    )
    assert await freeze(world, customer) == "FROZEN"
    await refused(manager, made, "customer-not-open", answers=409)
    assert await status_of(customer_desk, made) == ("PENDING", "NOT_STARTED")
    body = on_us(funded, 1_00, to=payroll_pocket)
    await manager.refused("POST", REQUESTS, body, status=409, code="customer-not-open")
    await execute_all_pending(customer_desk.bank)
    done = await world.get(f"/api/v1/transfers/on-us/{accepted['transfer_id']}/")
    assert (done["status"], done["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    assert await world.value(payee) == 0
    (entry,) = (e for e in await _log(customer_desk) if e["action"] == "customer.frozen")
    assert (entry["details"], entry["resource_id"]) == ({"reason": "Court order 7/25"}, customer)
    await freeze(world, customer, "OPEN")
    assert (await decide(manager, made))["transfer"]["execution_status"] == "COMPLETED"


async def _log(customer_desk):
    return (await customer_desk.get("/api/v1/team/audit-logs/", {"limit": 100}))["items"]


@pytest.mark.parametrize("kind", ["on us", "wire"])
async def test_a_freeze_between_approval_and_execution_stops_the_transfer(customer_desk, manager, world, funded, kind):
    customer, bank = customer_desk.team.customer, customer_desk.bank
    linked = (
        await wire_counterparty(customer_desk)
        if kind == "wire"
        else await counterparty(world, customer, await world.pocket())
    )
    body = wire(funded, 1_00, linked) if kind == "wire" else on_us(funded, 1_00, counterparty=linked)
    before = await world.value(funded)
    with not_executed(bank):
        made = await decide(manager, await customer_desk.post(REQUESTS, body))
    await freeze(world, customer)
    await execute_request(bank, UUID(customer), UUID(made["id"]))
    assert await status_of(customer_desk, made) == ("APPROVED", "REJECTED")
    assert await world.value(funded) == before
