"""The time in which an entry may be returned, and which returns may be retried."""

from datetime import date, timedelta

import pytest

from billfold.payments.return_codes import (
    CONTESTED_RETURN_REASONS,
    DISHONORED_RETURN_REASONS,
    RECEIVED_RETURN_REASONS,
    RETURN_REASONS,
    may_reinitiate,
    returnable_until,
)
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant

CALENDARS = Calendars()


@pytest.mark.parametrize(
    ("code", "settled_on", "until"),
    [
        ("R01", date(2025, 6, 3), date(2025, 6, 5)),
        ("R01", date(2025, 6, 5), date(2025, 6, 9)),
        ("R29", date(2025, 6, 18), date(2025, 6, 23)),
        ("R10", date(2025, 6, 3), date(2025, 8, 4)),
        ("R07", date(2025, 6, 2), date(2025, 8, 4)),
        ("R05", date(2025, 5, 5), date(2025, 7, 7)),
    ],
)
def test_a_return_must_arrive_by_the_opening_of_a_banking_day(code, settled_on, until):
    assert returnable_until(code, settled_on, CALENDARS) == et_instant(until, 8, 30)


@pytest.mark.parametrize("code", ["R06", "R23", "R19", "R32", "R40", "R80", "R85"])
def test_some_return_codes_have_no_deadline(code):
    assert returnable_until(code, date(2025, 6, 3), CALENDARS) is None


def test_dishonored_and_contested_codes_have_no_return_deadline():
    for code in (*DISHONORED_RETURN_REASONS, *CONTESTED_RETURN_REASONS):
        with pytest.raises(KeyError):
            returnable_until(code, date(2025, 6, 3), CALENDARS)


def test_every_return_code_has_one_meaning():
    meanings = (RECEIVED_RETURN_REASONS, DISHONORED_RETURN_REASONS, CONTESTED_RETURN_REASONS)
    codes = sorted(code for each in meanings for code in each)
    unused = {*range(48, 50), *range(54, 61), *range(63, 67), 78, 79}
    assert codes == [f"R{number:02}" for number in range(1, 86) if number not in unused]


@pytest.mark.parametrize("code", ["R18", "R40", "R80", "R85"])
def test_return_codes_of_operators_agencies_and_gateways_are_not_usable_by_the_bank(code):
    assert code not in RETURN_REASONS


FIRST = date(2025, 6, 3)


@pytest.mark.parametrize(
    ("code", "times", "days", "may"),
    [
        ("R01", 0, 10, True),
        ("R09", 1, 180, True),
        ("R01", 2, 10, False),
        ("R01", 1, 181, False),
        ("R02", 0, 1, False),
        ("R10", 0, 1, False),
    ],
)
def test_only_returns_for_insufficient_funds_may_be_reinitiated_within_limits(code, times, days, may):
    today = FIRST + timedelta(days=days)

    assert may_reinitiate(code, times=times, sent_on=FIRST, today=today) is may
