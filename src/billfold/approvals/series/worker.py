"""Makes the runs of series when they are due, and reports them.

Everything about one run is in one transaction: its request, the day up to which the series is handled, and the job that
executes the request and raises its event. The request's id is derived from the series and the day, and unique in the
table, so that a run is made once, whatever process stops or repeats, and wherever the clock goes.
"""

from datetime import date, datetime
from typing import Final
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.approvals import transfer_requests
from billfold.approvals.execute_transfers import POLICY_REFUSED, REASONS, execute_request
from billfold.approvals.series import rules
from billfold.approvals.series.commands import ReportRun, ReportState
from billfold.approvals.store.approval_rules import update
from billfold.approvals.store.policies import requirement_for
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.transfer_orders import RequestContent, check_same_payee, content_of
from billfold.approvals.types import (
    REPORT_SERIES,
    RUN_SERIES,
    Actor,
    ApprovalRequirement,
    SeriesState,
    Status,
    StoredRequest,
    TransferRequest,
)
from billfold.audit.record import AuditedAction, audited
from billfold.data_keys.keys import DataKey, DataKeys
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import Origin, ScheduledJob
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection
from billfold.platform.errors import BillfoldError, InvariantError
from billfold.platform.ids import command_id, derive

RUN_REASONS = {
    **REASONS,
    "amount-not-allowed": "AMOUNT_NOT_ALLOWED",
    "approval-impossible": "REQUESTER_NOT_ALLOWED",
    "content-changed": "COUNTERPARTY_CHANGED",
    "policy-refused": POLICY_REFUSED,
}
"""Refusal code -> reason why a run, or the row of a batch, was not made; others: INVALID_TRANSFER."""
_RUNS_MAX = 20
"""Runs of one series at a time; others come first before the rest."""
_APPROVED: Final[Status] = "APPROVED"
_CLOSED = "SELECT closed_at IS NOT NULL FROM customer WHERE customer_id = $1"


async def run_series(bank: Bank, job: ScheduledJob) -> None:
    """Make the runs of a series that are due, and schedule the next. Running it twice has no further effect."""
    assert job.customer_id is not None
    if await run_due(bank, job.customer_id, job.object_id):
        again = ScheduledJob(RUN_SERIES, job.object_id, job.customer_id, at=await bank.now())
        await scheduler.schedule(bank.pool, [again])


async def run_due(bank: Bank, customer_id: UUID, series_id: UUID) -> bool:
    """Make the runs of a series that are due; return whether there may be more of them."""
    ring = await bank.ports[DataKeys].load(bank.pool, (customer_id,))
    for _ in range(_RUNS_MAX):
        if not await _run_next(bank, customer_id, series_id, ring.get(customer_id)):
            return False
    return True


async def _run_next(bank: Bank, customer_id: UUID, series_id: UUID, data_key: DataKey | None) -> bool:
    """Make the next run if it is due, or schedule it; return whether it was made."""
    now = await bank.now()
    async with audited(
        bank, customer_id, Origin.system(), f"{TRANSFER_REQUESTS.table}.run", resource_id=series_id
    ) as audited_action:
        conn = audited_action.conn
        series = await TRANSFER_REQUESTS.lock(conn, customer_id, series_id, now=now)
        schedule, state = content_of(series).schedule, series.series_state
        if schedule is UNSET or series.status != "APPROVED" or state not in {"ACTIVE", "PAUSED"}:
            audited_action.skip()
            return False
        run = rules.next_run(schedule, bank.calendars, series.handled_through, now=now, paused=state == "PAUSED")
        if run is None or await conn.fetchval(_CLOSED, customer_id):
            await change_state(audited_action, series, "ENDED", now=now)
            return False
        if run.at > now:
            audited_action.skip()
            await scheduler.schedule(conn, [ScheduledJob(RUN_SERIES, series_id, customer_id, at=run.at)])
            return False
        await _make(bank, audited_action, series, run=run, data_key=data_key, now=now)
        return True


async def _make(
    bank: Bank,
    audited_action: AuditedAction,
    series: TransferRequest,
    *,
    run: rules.Run,
    data_key: DataKey | None,
    now: datetime,
) -> None:
    """Insert the request of a run, APPROVED, or with the reason why nothing moves, or waiting for its own approval."""
    by = bank_for(bank, series, now, name="A schedule")
    content = _content_of(bank, series, run.day)
    terms, status = msgspec.structs.replace(series.terms, required=0), _APPROVED
    reason: str | None = run.skipped
    if reason is None:
        try:
            await transfer_requests.check_requester(audited_action.conn, series)
            await check_same_payee(audited_action.conn, series.customer_id, content, data_key)
            terms, status = await _required_approvals(bank, audited_action.conn, by, series=series, content=content)
        except BillfoldError as refusal:
            reason = RUN_REASONS.get(refusal.code, "INVALID_TRANSFER")
    columns = {"series_id": series.request_id, "run_on": run.day, "reason": reason}
    made = await transfer_requests.insert_content(audited_action, by, content, terms=terms, status=status, **columns)
    if not made:
        raise InvariantError("a run of a series was made before its day was handled")
    key = (series.customer_id, series.request_id)
    where = "series_state IN ('ACTIVE', 'PAUSED')"
    await update(audited_action, TRANSFER_REQUESTS.table, *key, where=where, handled_through=run.day)
    audited_action.details |= {"run_on": run.day, "transfer_request_id": content.request_id, "reason": reason}
    if status == "PENDING":
        await transfer_requests.after_submission(audited_action, by, content)
    if reason is not None and reason not in rules.SKIPPED:
        await _notify_failed(audited_action, by, content, reason=reason)
    report = ScheduledJob(REPORT_SERIES, content.request_id, series.customer_id, at=now)
    await scheduler.schedule(audited_action.conn, [report])


async def _notify_failed(audited_action: AuditedAction, by: Actor, content: RequestContent, *, reason: str) -> None:
    """Notify the team of a run that nothing is executed of, so that no event of a transfer follows."""
    await transfer_requests.notify_team(
        audited_action,
        by,
        await TRANSFER_REQUESTS.get(audited_action.conn, by.customer_id, content.request_id, now=by.now),
        kind="TRANSFER_REJECTED",
        title="A transfer of a series was not made",
        verb="could not make",
        metadata={"reason": reason},
    )


async def _required_approvals(
    bank: Bank, conn: Connection, by: Actor, *, series: TransferRequest, content: RequestContent
) -> tuple[ApprovalRequirement, Status]:
    """Return what a run requires today, and its status. Raises as requesting its transfer does."""
    terms = await requirement_for(bank, conn, by, content)
    if rules.is_covered(series.terms, terms):
        return msgspec.structs.replace(terms, required=0), "APPROVED"
    return await transfer_requests.required_approvals(bank, conn, by, content), "PENDING"


def bank_for(bank: Bank, request: StoredRequest, now: datetime, *, name: str) -> Actor:
    """Return the bank as the actor who makes what was approved, in the name of its requester."""
    return Actor(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=request.customer_id,
        member_id=request.member_id,
        user_id=request.user_id,
        client_id=request.client_id,
        role="INITIATOR",
        scopes=None,
        name=name,
        origin=Origin.system(),
        now=now,
        business_date=bank.calendars.business_date(now),
        wall=wall_now(),
    )


def _content_of(bank: Bank, series: TransferRequest, day: date) -> RequestContent:
    content = content_of(series)
    run_id = derive(bank.seed, command_id("series", f"{series.request_id} {day}"), 0)
    transfer = msgspec.structs.replace(content.transfer, id=run_id)
    return msgspec.structs.replace(content, transfer=transfer, schedule=UNSET)


async def change_state(
    audited_action: AuditedAction, series: TransferRequest, state: SeriesState, *, now: datetime
) -> None:
    """Record another state of a series, and schedule its event and what follows."""
    key, where = (series.customer_id, series.request_id), "series_state IN ('ACTIVE', 'PAUSED')"
    await update(audited_action, TRANSFER_REQUESTS.table, *key, where=where, series_state=state, updated_at=now)
    audited_action.details["state"] = state
    if state in {"CANCELLED", "ENDED"}:
        await scheduler.cancel(audited_action.conn, RUN_SERIES, series.request_id)
    report = ScheduledJob(REPORT_SERIES, series.request_id, series.customer_id, at=now)
    await scheduler.schedule(audited_action.conn, [report])


async def report(bank: Bank, job: ScheduledJob) -> None:
    """Execute the request of a run, if it is approved, and raise the event of the run; or that of a series' state."""
    assert job.customer_id is not None
    named = (job.customer_id, job.object_id)
    await execute_request(bank, *named)
    found = await TRANSFER_REQUESTS.get(bank.pool, *named, now=await bank.now())
    if found.series_state is not None:
        key = command_id("series", f"{found.request_id} {found.updated_at.isoformat()}")
        command: Command = ReportState(
            caller="series", key=key, customers=named[:1], series_id=found.request_id, state=found.series_state
        )
    else:
        assert found.series_id is not None
        assert found.run_on is not None
        command = ReportRun(
            caller="series",
            key=found.request_id,
            customers=named[:1],
            series_id=found.series_id,
            run_on=found.run_on,
            reason=found.reason,
        )
    await bank.engine.submit(command)
