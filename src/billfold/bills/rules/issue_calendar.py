"""The weekday rule: issue and maturity dates of bills for which no auction is on record.

4-week bills are issued on Tuesdays, 13- and 26-week bills on Thursdays, 52-week bills on every
fourth Thursday. A day on which nothing settles moves to the next one that does, for the issue
and for the maturity alike; the term is counted from the day before the move.
"""

from dataclasses import dataclass
from datetime import date, timedelta

from billfold.bills.types import Bill, isin_of, simulated_cusip
from billfold.platform.calendars import Calendars

_TUESDAY = 1
_THURSDAY = 3
# Treasury's own 52-week series runs through this Thursday.
_ANCHOR_52_WEEKS = date(2026, 8, 6)


@dataclass(frozen=True, slots=True)
class Term:
    """One regular series, issued every `cadence_days`.

    `data_days_max` is the maximum age of the newest auction on record before the rule takes over.
    """

    weeks: int
    anchor: date
    cadence_days: int
    data_days_max: int

    @property
    def label(self) -> str:
        """The term as the Treasury writes it."""
        return f"{self.weeks}-Week"


def _weekly(weeks: int, weekday: int) -> Term:
    return Term(weeks, date(2026, 8, 3) + timedelta(days=weekday), 7, data_days_max=8)


TERMS = {
    4: _weekly(4, _TUESDAY),
    13: _weekly(13, _THURSDAY),
    26: _weekly(26, _THURSDAY),
    52: Term(52, _ANCHOR_52_WEEKS, 28, data_days_max=36),
}
"""The terms a strategy can buy, by weeks."""


def latest_maturity(term: Term, day: date, calendars: Calendars) -> date:
    """Return the maturity date of the bill most recently issued on or before `day`."""
    nominal = day - timedelta(days=(day - term.anchor).days % term.cadence_days)
    if calendars.settlement_on_or_after(nominal) > day:
        nominal -= timedelta(days=term.cadence_days)
    return calendars.settlement_on_or_after(nominal + timedelta(weeks=term.weeks))


def simulated_bill(maturity: date, calendars: Calendars) -> Bill:
    """Return the one simulated bill of a maturity date.

    Its first issue is that of the longest term that ends there: 52 weeks on the 52-week Thursdays,
    26 weeks on other Thursdays, 4 weeks on Tuesdays. Only the issue date depends on the calendar, so the
    identity of a bill does not change when a day is closed later.
    """
    # A maturity moved off a closed day lies shortly after its Tuesday or its Thursday.
    is_tuesday_series = maturity.weekday() in {_TUESDAY, _TUESDAY + 1}
    weekday = _TUESDAY if is_tuesday_series else _THURSDAY
    nominal = maturity - timedelta(days=(maturity.weekday() - weekday) % 7)
    term = _first_term(nominal, is_tuesday_series=is_tuesday_series)
    issue = calendars.settlement_on_or_after(nominal - timedelta(weeks=term.weeks))
    cusip = simulated_cusip(maturity)
    return Bill(cusip, isin_of(cusip), maturity, first_issue=issue, original_term=term.label)


def _first_term(nominal: date, *, is_tuesday_series: bool) -> Term:
    if is_tuesday_series:
        return TERMS[4]
    ends_52_weeks = (nominal - _ANCHOR_52_WEEKS).days % TERMS[52].cadence_days == 0
    return TERMS[52] if ends_52_weeks else TERMS[26]
