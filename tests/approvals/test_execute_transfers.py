"""Approved transfers are executed once, also when a process is killed meanwhile."""

from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

import pytest
from tests.support.approvals import REQUESTS, counterparty, decide, on_us, status_of, wire, wire_counterparty

from billfold.approvals.execute_transfers import execute_request, reject_request
from billfold.approvals.types import EXECUTE_TRANSFER_REQUEST
from billfold.ledger import scheduler
from billfold.ledger.types import ScheduledJob
from billfold.verify.runner import verify_bank


@contextmanager
def not_executed(bank):
    """Do not execute approved requests during the block."""
    settings = bank.settings
    bank.settings = replace(settings, execute_transfers=False)
    yield
    bank.settings = settings


async def schedule_execution(customer_desk, made):
    """Schedule the job of an approved request again."""
    key = (UUID(made["id"]), UUID(customer_desk.team.customer))
    job = ScheduledJob(EXECUTE_TRANSFER_REQUEST, *key, at=await customer_desk.bank.now())
    await scheduler.schedule(customer_desk.bank.pool, [job])


async def test_a_wire_is_sent_when_it_is_approved(customer_desk, manager, world, funded):
    linked = await wire_counterparty(customer_desk)
    body = wire(funded, 2_000_00, linked, description="Invoice 77")
    made = await customer_desk.post(REQUESTS, body)
    assert made["transfer"]["counterparty_name"] == "Contoso"
    done = await decide(manager, made)
    shown = done["transfer"]
    assert (done["status"], shown["execution_status"]) == ("APPROVED", "PROCESSING")
    (transaction,) = shown["transaction_ids"]
    booked = await customer_desk.get(f"/api/v2/transactions/{transaction}/")
    assert (booked["type"], booked["wire_id"]) == ("WIRE", made["id"])
    pool = customer_desk.bank.pool
    assert await pool.fetchval("SELECT count(*) FROM wire_message WHERE wire_id = $1::uuid", made["id"]) == 1


async def test_a_wire_to_an_unverified_or_wrong_type_counterparty_is_refused(customer_desk, world, funded):
    on_us_one = await counterparty(world, customer_desk.team.customer, await world.pocket())
    pending = await wire_counterparty(customer_desk, verification="incoming_wire")
    for to, code in ((on_us_one, "counterparty-type-mismatch"), (pending, "counterparty-not-verified")):
        await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
        await customer_desk.refused("POST", REQUESTS, wire(funded, 1_00, to), status=422, code=code)


async def test_an_approved_request_is_not_executed_when_the_sandbox_disables_execution(
    customer_desk, manager, funded, payroll_pocket
):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    with not_executed(customer_desk.bank):
        done = await decide(manager, made)
    assert (done["status"], done["transfer"]["execution_status"]) == ("APPROVED", "NOT_STARTED")


@pytest.mark.parametrize("decision", [None, "DENIED"])
async def test_executing_an_unapproved_request_does_nothing(customer_desk, manager, funded, payroll_pocket, decision):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    if decision is not None:
        await decide(manager, made, decision)
    named = (customer_desk.bank, UUID(customer_desk.team.customer), UUID(made["id"]))
    await execute_request(*named)
    await reject_request(*named, reason="INVALID_TRANSFER")
    assert await customer_desk.bank.pool.fetchval("SELECT count(*) FROM transfer") == 0
    assert await customer_desk.bank.pool.fetchval("SELECT reason FROM transfer_request") is None
    assert await status_of(customer_desk, made) == (decision or "PENDING", "NOT_STARTED")


async def test_an_approved_request_is_executed_when_the_api_process_is_killed(
    customer_desk, manager, world, funded, payroll_pocket
):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    with not_executed(customer_desk.bank):
        await decide(manager, made)
    await schedule_execution(customer_desk, made)
    assert await status_of(customer_desk, made) == ("APPROVED", "NOT_STARTED")
    await world.later(seconds=1)
    await world.later(seconds=1)
    assert await status_of(customer_desk, made) == ("APPROVED", "COMPLETED")


async def test_re_executing_a_sent_wire_after_a_feature_change_sends_nothing(customer_desk, manager, world, funded):
    made = await customer_desk.post(REQUESTS, wire(funded, 2_000_00, await wire_counterparty(customer_desk)))
    await decide(manager, made)
    pool = customer_desk.bank.pool
    await pool.execute("UPDATE partner SET features = features || '{unverified_wires}'")
    await schedule_execution(customer_desk, made)
    await world.later(seconds=1)
    assert await status_of(customer_desk, made) == ("APPROVED", "PROCESSING")
    assert await pool.fetchval("SELECT count(*) FROM wire_message") == 1


async def test_a_wire_that_became_unsendable_is_reported_once(customer_desk, manager, funded):
    linked = await wire_counterparty(customer_desk)
    made = await customer_desk.post(REQUESTS, wire(funded, 2_000_00, linked))
    with not_executed(customer_desk.bank):
        await decide(manager, made)
    await customer_desk.patch(f"/api/v2/counterparties/{linked}/", {"status": "UNLINKED"})
    for _ in range(2):
        await execute_request(customer_desk.bank, UUID(customer_desk.team.customer), UUID(made["id"]))
    shown = (await customer_desk.get(f"{REQUESTS}{made['id']}/"))["transfer"]
    assert (shown["execution_status"], shown["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    events = [each["event"] for each in (await customer_desk.get("/api/v1/events/"))["items"]]
    (told,) = [each for each in events if each["event_type"] == "transfers.wire.out.rejected"]
    assert told["payload"] == {"wire_id": made["id"], "service_account_id": funded.id}
    async with customer_desk.bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=customer_desk.bank.market, vault=customer_desk.bank.vault)
    assert not report.findings


async def test_a_wire_to_an_unverified_payee_is_not_sent_after_the_partner_loses_the_feature(
    customer_desk, manager, funded
):
    pool = customer_desk.bank.pool
    await pool.execute("UPDATE partner SET features = features || '{unverified_wires}'")
    body = wire(funded, 2_000_00, await wire_counterparty(customer_desk, verification="unverified"))
    made = await customer_desk.post(REQUESTS, body)
    with not_executed(customer_desk.bank):
        await decide(manager, made)
    await pool.execute("UPDATE partner SET features = array_remove(features, 'unverified_wires')")
    await execute_request(customer_desk.bank, UUID(customer_desk.team.customer), UUID(made["id"]))
    assert await status_of(customer_desk, made) == ("APPROVED", "REJECTED")
    assert await pool.fetchval("SELECT count(*) FROM wire_message") == 0
