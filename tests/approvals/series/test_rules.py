"""The next day of a series: missed, skipped and moved days, and days around a change to summer time."""

from datetime import UTC, date, datetime, timedelta

import pytest

from billfold.approvals.series import rules
from billfold.approvals.types import ApprovalRequirement, Schedule
from billfold.bills.rules.recurrence import OnClosedDay
from billfold.platform.calendars import Calendars
from billfold.platform.ids import new

CALENDARS = Calendars()


def runs(schedule, now, *, paused=False, after=None):
    """Return the runs that a worker makes until nothing is due, as day and reason, and the time of the next."""
    made: list[tuple[str, rules.Skipped | None]] = []
    while True:
        run = rules.next_run(schedule, CALENDARS, after, now=now, paused=paused)
        if run is None or run.at > now:
            return made, run and run.at
        made.append((run.day.isoformat(), run.skipped))
        after = run.day


def test_only_the_last_run_is_made_up_for_when_the_worker_was_away():
    weekly = Schedule(start_on=date(2025, 6, 2), rule="FREQ=WEEKLY;COUNT=5")
    made, following = runs(weekly, datetime(2025, 6, 20, 15, tzinfo=UTC))
    assert made == [("2025-06-02", "MISSED"), ("2025-06-09", "MISSED"), ("2025-06-16", None)]
    assert following == datetime(2025, 6, 23, 12, tzinfo=UTC)
    assert runs(weekly, datetime(2025, 8, 1, tzinfo=UTC), after=date(2025, 6, 23)) == ([("2025-06-30", None)], None)


def test_days_that_are_moved_to_one_business_day_are_all_run():
    weekend = Schedule(start_on=date(2025, 6, 14), rule="FREQ=DAILY;COUNT=3")
    assert runs(weekend, datetime(2025, 6, 16, 12, tzinfo=UTC)) == (
        [("2025-06-14", None), ("2025-06-15", None), ("2025-06-16", None)],
        None,
    )


def test_a_closed_day_is_left_out_on_the_day_itself_and_misses_nothing():
    daily = Schedule(start_on=date(2025, 7, 3), rule="FREQ=DAILY;COUNT=3", on_closed_day=OnClosedDay.SKIP)
    made, _ = runs(daily, datetime(2025, 7, 6, tzinfo=UTC))
    assert made == [("2025-07-03", None), ("2025-07-04", "CLOSED_DAY"), ("2025-07-05", "CLOSED_DAY")]


def test_what_falls_due_while_paused_is_left_out():
    weekly = Schedule(start_on=date(2025, 6, 2), rule="FREQ=WEEKLY;COUNT=2")
    made, _ = runs(weekly, datetime(2025, 6, 20, tzinfo=UTC), paused=True)
    assert [reason for _, reason in made] == ["PAUSED", "PAUSED"]


@pytest.mark.parametrize(("day", "hour"), [(date(2025, 3, 7), 13), (date(2025, 3, 10), 12), (date(2025, 11, 3), 13)])
def test_a_run_is_at_eight_in_new_york_also_around_a_change_to_summer_time(day, hour):
    run = rules.next_run(Schedule(start_on=day), CALENDARS, None, now=datetime(2025, 1, 1, tzinfo=UTC))
    assert run is not None
    assert run.at == datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


def test_a_day_is_not_handled_again_when_the_clock_is_moved_back():
    daily = Schedule(start_on=date(2025, 6, 2), rule="FREQ=DAILY;COUNT=2")
    at = datetime(2025, 6, 2, 12, tzinfo=UTC)
    made, following = runs(daily, at, after=date(2025, 6, 2))
    assert (made, following) == ([], at + timedelta(days=1))


def test_an_approval_covers_runs_under_the_same_rule_only():
    approved = ApprovalRequirement(rule_id=new(), required=2, candidates={new(): "ADMIN"})
    same = ApprovalRequirement(rule_id=approved.rule_id, required=2)
    assert rules.is_covered(approved, same)
    assert rules.is_covered(approved, ApprovalRequirement(required=0))
    assert not rules.is_covered(approved, ApprovalRequirement(required=2))
    assert not rules.is_covered(approved, ApprovalRequirement(rule_id=approved.rule_id, required=3))
    assert not rules.is_covered(approved, ApprovalRequirement(rule_id=approved.rule_id, required=2, roles=("ADMIN",)))
