"""Every number of the worked examples in docs/domain is one the code works out."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from tests.architecture.pages import section, table_rows, text_of
from tests.architecture.worked import CALENDARS, EARNINGS_FIELDS, earned, worked

EASTERN = ZoneInfo("America/New_York")
NUMBERS = worked()
INSTANTS = table_rows(section("docs/domain/calendar.md", "Business date"))


@pytest.mark.parametrize("name", NUMBERS)
def test_a_worked_number_appears_on_its_page(name):
    number = re.escape(NUMBERS[name])
    assert re.search(rf"(?<![\w.,]){number}(?![\w]|[.,]\d)", text_of("docs/domain/tbill_maths.md"))


def test_the_entries_of_the_worked_example_match_the_page():
    rows = table_rows(section("docs/domain/earnings.md", "Worked example"))
    assert [row[0].strip("`") for row in rows] == list(EARNINGS_FIELDS)
    assert [row[1:] for row in rows] == [list(row) for row in zip(*earned(), strict=True)]


@pytest.mark.parametrize("row", INSTANTS, ids=lambda row: row[0])
def test_an_instant_matches_its_row_on_the_calendar_page(row):
    at = datetime.strptime(row[0], "%Y-%m-%d %H:%M").replace(tzinfo=EASTERN)
    assert row[1:] == [
        CALENDARS.business_date(at).isoformat(),
        "yes" if CALENDARS.is_trading(at) else "no",
        "yes" if CALENDARS.may_invest(at) else "no",
        CALENDARS.pricing_day(at).isoformat(),
        f"{CALENDARS.last_tick(at).astimezone(EASTERN):%m-%d %H:%M}",
        f"{CALENDARS.next_open(at).astimezone(EASTERN):%m-%d %H:%M}",
    ]
