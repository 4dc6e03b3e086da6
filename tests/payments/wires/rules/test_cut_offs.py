"""When a wire leaves: the last instant of a day's hours and the first beyond them."""

from datetime import date, timedelta

import pytest

from billfold.payments.wires.rules.cut_offs import code_of, reason_of, send_time
from billfold.platform.calendars import WireHours
from billfold.platform.dates import et_instant

HOURS = WireHours()
MONDAY, TUESDAY = date(2025, 6, 2), date(2025, 6, 3)
FRIDAY, NEXT_MONDAY = date(2025, 6, 6), date(2025, 6, 9)
JUST_BEFORE = timedelta(microseconds=-1)


@pytest.mark.parametrize(("international", "cut_off"), [(False, 16), (True, 15)])
def test_the_cut_off_itself_belongs_to_the_next_day(calendars, international, cut_off):
    at = et_instant(MONDAY, cut_off)

    assert send_time(at + JUST_BEFORE, calendars, HOURS, international=international) == at + JUST_BEFORE
    assert send_time(at, calendars, HOURS, international=international) == et_instant(TUESDAY, 8)


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        (et_instant(MONDAY, 8) + JUST_BEFORE, et_instant(MONDAY, 8)),
        (et_instant(MONDAY, 8), et_instant(MONDAY, 8)),
        (et_instant(MONDAY, 9), et_instant(MONDAY, 9)),
        (et_instant(FRIDAY, 16), et_instant(NEXT_MONDAY, 8)),
        (et_instant(FRIDAY + timedelta(days=1), 9), et_instant(NEXT_MONDAY, 8)),
    ],
)
def test_a_wire_leaves_at_once_within_the_hours_and_else_when_they_begin(calendars, accepted, sent):
    assert send_time(accepted, calendars, HOURS, international=False) == sent


def test_a_code_of_the_network_and_a_reason_of_the_bank_name_each_other():
    assert (reason_of("AC04"), reason_of("XX99"), reason_of(None)) == (
        "ACCOUNT_UNAVAILABLE",
        "INVALID_TRANSFER",
        "INVALID_TRANSFER",
    )
    assert (code_of("ACCOUNT_UNAVAILABLE"), code_of("AM09"), code_of("other")) == ("AC04", "AM09", "NARR")
