"""Operations on the schedule of a series: its next days, and pausing, resuming and cancelling it."""

from datetime import date, datetime
from itertools import islice
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.approvals.routes import principal_of
from billfold.approvals.schemas import ShownTransferRequest
from billfold.approvals.series import rules, worker
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.transfer_orders import content_of
from billfold.approvals.transfer_requests_routes import ONE, READS, WRITES, read_transfer_request
from billfold.approvals.types import RUN_SERIES, Actor, TransferRequest
from billfold.http.operations import get, patch
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.oauth.caller import CustomerCaller
from billfold.platform.errors import NotFound, Refused

_SHOWN = 12


class ChangeSeries(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """PAUSED leaves out the runs that fall due, ACTIVE makes those that follow, CANCELLED ends the series."""

    state: Literal["ACTIVE", "PAUSED", "CANCELLED"]


class UpcomingRun(msgspec.Struct, kw_only=True):
    """A day of the rule, and when its transfer is made; null if the day is closed and left out."""

    run_on: date
    runs_at: datetime | None


class UpcomingRuns(msgspec.Struct, kw_only=True):
    """The next runs, at most 12."""

    items: list[UpcomingRun]
    object_type: Literal["List"] = "List"


@get(f"{ONE}upcoming-runs/", READS)
async def list_upcoming_runs(member: CustomerCaller, bank: Bank, transfer_id: UUID) -> UpcomingRuns:
    """List upcoming runs.

    Returns the next days of a series. A day that is declared closed in the meantime moves as its schedule says.
    """
    found = await TRANSFER_REQUESTS.get(bank.pool, member.customer_id, transfer_id, now=member.now)
    schedule = content_of(found).schedule
    if schedule is UNSET or found.status not in {"PENDING", "APPROVED"} or found.series_state in {"CANCELLED", "ENDED"}:
        return UpcomingRuns(items=[])
    days = islice(rules.upcoming(schedule, bank.calendars, found.handled_through), _SHOWN)
    return UpcomingRuns(
        items=[UpcomingRun(run_on=each.day, runs_at=rules.due_at(each) if each.moved_to else None) for each in days]
    )


@patch(f"{ONE}schedule/", WRITES, refuses=("series-not-running",))
async def update_schedule_state(
    member: CustomerCaller, bank: Bank, transfer_id: UUID, data: ChangeSeries
) -> ShownTransferRequest:
    """Update schedule state.

    Pause, resume or cancel an approved series, as its requester or as an administrator. One that waits for approval is
    cancelled like any request. Its content does not change: cancel it and request another.
    """
    by = await principal_of(member, bank)
    found = await TRANSFER_REQUESTS.get(bank.pool, member.customer_id, transfer_id, now=member.now)
    _check_changeable(by, found)
    if data.state == "ACTIVE":
        # What fell due while it was paused stays left out, also if no worker has seen it yet.
        while await worker.run_due(bank, member.customer_id, transfer_id):
            pass
    await _change_state(by, transfer_id, data)
    return await read_transfer_request(member, bank, transfer_id)


async def _change_state(by: Actor, series_id: UUID, data: ChangeSeries) -> None:
    async with TRANSFER_REQUESTS.audited(by, "schedule_changed", series_id) as audited_action:
        conn = audited_action.conn
        series = await TRANSFER_REQUESTS.lock(conn, by.customer_id, series_id, now=by.now)
        _check_changeable(by, series)
        if series.series_state == data.state:
            audited_action.skip()
            return
        await worker.change_state(audited_action, series, data.state, now=by.now)
        if data.state == "ACTIVE":
            await scheduler.schedule(conn, [ScheduledJob(RUN_SERIES, series_id, by.customer_id, at=by.now)])


def _check_changeable(by: Actor, series: TransferRequest) -> None:
    if not series.is_series:
        raise NotFound("The transfer request has no schedule.")
    if by.member_id != series.member_id and by.role != "ADMIN":
        raise Refused("forbidden", "Only the requester or an ADMIN can change the schedule.")
    if series.status != "APPROVED" or series.series_state not in {"ACTIVE", "PAUSED"}:
        state = series.status if series.status != "APPROVED" else series.series_state
        raise Refused("series-not-running", f"The series is {state}.")
