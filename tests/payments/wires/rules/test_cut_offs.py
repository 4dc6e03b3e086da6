"""Cut-offs of wires: the last instant before and the first after, and the resulting errors."""

from datetime import date, timedelta
from uuid import UUID

import pytest

from billfold.payments.wires.rules.cut_offs import code_of, reason_of, reference_of, send_time, uetr_of
from billfold.platform.calendars import WireHours
from billfold.platform.dates import et_instant

HOURS = WireHours()
MONDAY, TUESDAY = date(2025, 6, 2), date(2025, 6, 3)
FRIDAY, NEXT_MONDAY = date(2025, 6, 6), date(2025, 6, 9)
JUST_BEFORE = timedelta(microseconds=-1)


@pytest.mark.parametrize(("international", "cut_off"), [(False, 16), (True, 15)])
def test_a_wire_at_the_cutoff_is_sent_the_next_day(calendars, international, cut_off):
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
def test_a_wire_is_sent_immediately_within_wire_hours_and_otherwise_when_they_begin(calendars, accepted, sent):
    assert send_time(accepted, calendars, HOURS, international=False) == sent


def test_network_codes_and_rejection_reasons_map_to_each_other():
    assert (reason_of("AC04"), reason_of("XX99"), reason_of(None)) == (
        "ACCOUNT_UNAVAILABLE",
        "INVALID_TRANSFER",
        "INVALID_TRANSFER",
    )
    assert (code_of("ACCOUNT_UNAVAILABLE"), code_of("AM09"), code_of("other")) == ("AC04", "AM09", "NARR")


def test_wire_references_are_derived_from_its_id_and_stable():
    wire_id = UUID("5c2a0f6e-8a55-4a0a-9d0e-2f8f0f3f7b11")
    assert (reference_of(b"seed", wire_id), uetr_of(b"seed", wire_id)) == (
        "W106769680836",
        "77832ba9-1e34-42d4-ab36-897814be1f46",
    )
