"""Decides which day of a series is next, whether its approval covers a run, and raises the events. Pure."""

from collections.abc import Iterator
from datetime import date, datetime
from enum import StrEnum
from itertools import dropwhile
from typing import NamedTuple

from msgspec import UNSET

from billfold.approvals.series.commands import ReportRun, ReportState
from billfold.approvals.types import ApprovalRequirement, Schedule
from billfold.bills.rules.recurrence import Occurrence
from billfold.events import kinds
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant
from billfold.treasury.rules.withdraw import NOTHING_TO_MOVE

_HOUR = 8
"""The hour of every run, New York time: Fedwire takes wires from then on."""


class Skipped(StrEnum):
    """The reason of a run that is not made."""

    PAUSED = "PAUSED"
    CLOSED_DAY = "CLOSED_DAY"
    MISSED = "MISSED"


SKIPPED = frozenset({*Skipped, NOTHING_TO_MOVE})
"""Reasons of a run that was left out, as the schedule or the amount says; with others it failed."""


class Run(NamedTuple):
    """A day of the rule, when it is due, and why it is left out, if it is."""

    day: date
    at: datetime
    skipped: Skipped | None


def upcoming(schedule: Schedule, calendars: Calendars, after: date | None) -> Iterator[Occurrence]:
    """Yield the days of a schedule, all or those after one that was handled."""
    found = schedule.recurrence().occurrences(calendars, schedule.on_closed_day)
    return found if after is None else dropwhile(lambda each: each.day <= after, found)


def due_at(occurrence: Occurrence) -> datetime:
    """Return when a day is handled."""
    return et_instant(occurrence.moved_to or occurrence.day, _HOUR)


def next_run(
    schedule: Schedule, calendars: Calendars, after: date | None, *, now: datetime, paused: bool = False
) -> Run | None:
    """Return the next run, due or not; None at the end.

    Of the business days that nobody handled in time, only the last is made up for: a run is missed once the next one
    is due.
    """
    found = upcoming(schedule, calendars, after)
    first = next(found, None)
    if first is None:
        return None
    skipped = Skipped.PAUSED if paused else None
    if first.moved_to is None:
        skipped = Skipped.CLOSED_DAY
    elif not paused:
        days = (each.moved_to for each in found if each.moved_to is not None)
        later = next((day for day in days if day > first.moved_to), None)
        skipped = Skipped.MISSED if later is not None and et_instant(later, _HOUR) <= now else None
    return Run(first.day, due_at(first), skipped)


def is_covered(approved: ApprovalRequirement, now: ApprovalRequirement) -> bool:
    """Tell whether the approval of a series is enough for a run: it needs none, or the same as the series did."""
    return not now.required or _approvals_of(now) == _approvals_of(approved)


def _approvals_of(terms: ApprovalRequirement) -> tuple[object, ...]:
    return terms.rule_id, terms.required, terms.roles, terms.ids, terms.ordered, terms.policy_roles


@decides(ReportRun)
def report_run(books: Books, cmd: ReportRun, ctx: Context) -> Outcome:
    """Raise the event of a run."""
    kind = kinds.SERIES_RUN
    if cmd.reason is not None:
        kind = kinds.SERIES_RUN_SKIPPED if cmd.reason in SKIPPED else kinds.SERIES_RUN_FAILED
    payload = kinds.SeriesRunPayload(
        series_id=cmd.series_id, transfer_request_id=cmd.key, run_on=cmd.run_on, reason=cmd.reason or UNSET
    )
    event(book_of(books, cmd.customers[0]), ctx, kind, payload)
    return {"series_id": str(cmd.series_id)}


@decides(ReportState)
def report_state(books: Books, cmd: ReportState, ctx: Context) -> Outcome:
    """Raise the event of another state of a series."""
    payload = kinds.SeriesPayload(series_id=cmd.series_id, state=cmd.state)
    event(book_of(books, cmd.customers[0]), ctx, kinds.SERIES_UPDATED, payload)
    return {"series_id": str(cmd.series_id)}
