"""Checks of approvals: `verify` names transfers that were approved by unauthorized members or not at all."""

from datetime import timedelta
from functools import partial
from uuid import UUID

import asyncpg
import pytest
from tests.support.approvals import REQUESTS, ask_for_two, decide, on_us, path_of, require_mfa
from tests.support.damage import report_of, undetected

from billfold.approvals.execute_transfers import reject_request
from billfold.approvals.store.approval_rules import KEYS
from billfold.verify.fingerprints import AUDITED_TABLES, check_fingerprints
from billfold.verify.runner import verify_bank

DAMAGES = {
    "content_hash is not the hash of its content": "UPDATE transfer_request SET content_hash = sha256('x')",
    "approved with fewer approvals than required": "UPDATE review SET voided_at = now()",
    "the audit log has no entry of this review": "UPDATE review SET decision = 'DENIED'",
    "the reviewer is the requester": "UPDATE transfer_request q SET user_id = v.user_id "
    "FROM review v WHERE v.request_id = q.request_id",
    "the reviewer was not eligible when the request was made": "UPDATE transfer_request "
    "SET terms = jsonb_set(terms::jsonb, '{candidates}', '{}')::json",
    "its transfer request is not approved": "UPDATE transfer_request SET status = 'DENIED'",
}


@pytest.fixture
async def approved_transfer(customer_desk, manager, funded, payroll_pocket):
    """An approved and executed transfer."""
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    await decide(manager, made)
    return made


async def test_verify_reports_requests_without_their_approvals(customer_desk, approved_transfer):
    bank = customer_desk.bank
    async with bank.pool.acquire() as conn:
        for message, damage in DAMAGES.items():
            transaction = conn.transaction(isolation="repeatable_read")
            await transaction.start()
            await conn.execute(damage)
            report = await verify_bank(conn, market=bank.market, vault=bank.vault)
            await transaction.rollback()
            assert message in {each.message for each in report.findings}, message


RULES, CHANGES = "/api/v1/approval-rules/", "/api/v1/authorization-requests/"
# Each kind of row, as each way of leaving it leaves it.
ROWS_BY_STATE = {
    "transfer_request": (
        "status = 'PENDING'",
        "status = 'CANCELLED'",
        "status = 'EXPIRED'",
        "status = 'APPROVED' AND reason IS NULL",
        "reason IS NOT NULL",
    ),
    "authorization_request": (
        "status = 'PENDING'",
        "status = 'DENIED'",
        "status = 'EXPIRED'",
        "action = 'approval_rule.create' AND status = 'APPROVED'",
        "action = 'member.invite' AND status = 'APPROVED'",
    ),
    "review": ("decision = 'APPROVED'", "decision = 'DENIED'", "voided_at IS NOT NULL"),
    "approval_rule": ("true",),
    "dual_control": ("true",),
    "batch": ("true",),
    "policy": ("true",),
}
NOBODY = {"first_name": "Ben", "last_name": "Ode", "email": "b@b.example", "role": "VIEWER"}


@pytest.fixture
async def requests_in_every_state(customer_desk, customer_desks, manager, funded, payroll_pocket):
    """A team with one request in each state."""

    async def ask(path, body):
        return (await customer_desk.ask("POST", path, body, status=202)).json()

    async def confirm(change, status="APPROVED"):
        path = f"{CHANGES}{change['id']}/status/"
        await manager.ask("PATCH", path, {"status": status}, status=200)

    async def transfer():
        # A member may make one request per second.
        asker = await customer_desks(customer_desk.team.customer)
        return asker, await asker.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))

    rule = {"name": "Roles", "actions": ["MEMBER_ROLE"], "required_approvals": 1}
    await transfer()
    await ask(RULES, rule)
    await customer_desk.clock.advance(timedelta(days=7))
    await confirm(await ask(RULES, rule))
    await confirm(await ask(RULES, rule), "DENIED")
    await confirm(await ask("/api/v1/team/invite/", NOBODY))
    gone = (await customer_desk.get(RULES))["items"][0]["id"]
    await confirm(await ask(RULES, rule | {"name": "Others"}))
    await confirm((await customer_desk.ask("DELETE", f"{RULES}{gone}/", status=202)).json())
    await ask(RULES, rule)
    (_, done), (_, failed) = await transfer(), await transfer()
    for each in (done, failed):
        await decide(manager, each)
    customer_id, failed_id = UUID(customer_desk.team.customer), UUID(failed["id"])
    await reject_request(customer_desk.bank, customer_id, failed_id, reason="ACCOUNT_UNAVAILABLE")
    asker, cancelled = await transfer()
    await asker.ask("DELETE", path_of(cancelled), status=204)
    asker, changed = await transfer()
    await ask_for_two(customer_desk)
    await decide(manager, changed)
    body = on_us(funded, 2_00, to=payroll_pocket, request_id=changed["id"])
    await asker.patch(path_of(changed), {"transfer": body["transfer"]})
    await require_mfa(customer_desk)


@pytest.fixture
async def empty_policy(customer_desk, manager):
    policy = (await customer_desk.ask("PUT", "/api/v1/policy/", {"document": {"rules": []}}, status=202)).json()
    await manager.patch(f"{CHANGES}{policy['id']}/status/", {"status": "APPROVED"})


@pytest.fixture
async def pending_batch(customer_desk, empty_policy, requests_in_every_state, funded, payroll_pocket):
    """The same team with a policy, and a batch that waits."""
    row = {"type": "INTERNAL_REALLOCATION", "from_pocket_id": funded.id, "to_pocket_id": payroll_pocket.id}
    listed = {"kind": "TRANSFERS", "mode": "ATOMIC", "rows": [row | {"amount_usdc": 1}]}
    return await customer_desk.post("/api/v1/batches/", listed)


def proofs_of(table):
    """Return the audit proof check of one table."""
    return partial(check_fingerprints, tables=[each for each in AUDITED_TABLES if each.table == table])


async def test_changing_any_column_of_a_transfer_request_is_detected_by_verify(bank_dsn, pending_batch):
    conn = await asyncpg.connect(bank_dsn)
    transaction = conn.transaction()
    await transaction.start()
    assert (await report_of(conn, check_fingerprints)).is_clean
    missed = {
        (table, where): message
        for table, states in ROWS_BY_STATE.items()
        for where in states
        if (message := await undetected(conn, table, proofs_of(table), where=where))
    }
    await transaction.rollback()
    await conn.close()
    assert missed == {}
    assert ROWS_BY_STATE.keys() == KEYS.keys()
