"""The calendar for those who plan payments: open days, and the cut-offs of each rail as instants."""

from datetime import date, datetime, timedelta
from typing import Annotated, Final, Literal

import msgspec

from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get, with_scope
from billfold.http.parameters import DayQuery
from billfold.http.schemas import one_of
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction, Rail
from billfold.payments.ach.rules.windows import SAME_DAY_BELOW_CENTS, schedule
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import InvalidInput

DAYS_MAX: Final = 92
_DAYS_DEFAULT: Final = 14
_INSTANT: Final = timedelta(microseconds=1)


class CutOff(msgspec.Struct, kw_only=True):
    """Until when a payment of a rail counts as of the day: from `at` on it counts as of the rail's next one.

    An ACH origination that is accepted just before is sent at `sent_at` and settles at `settles_at`; a wire is sent and
    settles at once, from `opens_at` on. ACH amounts from `from_cents` to `to_cents`, null for no bound.
    """

    rail: Annotated[str, one_of(Rail.ACH, Rail.WIRE, Rail.INTERNATIONAL_WIRE)]
    at: datetime
    direction: Annotated[str, one_of(*Direction)]
    opens_at: datetime | None = None
    from_cents: int | None = None
    to_cents: int | None = None
    sent_at: datetime | None = None
    settles_at: datetime | None = None


class CalendarDay(msgspec.Struct, kw_only=True):
    """A day. Payments move on days of the Federal Reserve, bills trade on those of the bond market, and settle on both.

    Cash that arrives before `invests_until` is invested on the day. On-us transfers and cards have no cut-offs.
    """

    date: date
    is_fed_day: bool
    is_bond_market_day: bool
    is_settlement_day: bool
    closed_for: str | None
    market_opens_at: datetime | None
    market_closes_at: datetime | None
    closes_early: bool
    invests_until: datetime | None
    cut_offs: list[CutOff]


class Calendar(msgspec.Struct, kw_only=True):
    """Days in their order."""

    items: list[CalendarDay]
    object_type: Literal["Calendar"] = "Calendar"


@get("/api/v1/calendar/", SIGNED, with_scope("pockets.read", "pockets"), tag="calendar")
async def get_calendar(caller: Call, bank: Bank, date_from: DayQuery = None, date_to: DayQuery = None) -> Calendar:
    """Get calendar

    Returns the days from `date_from`, by default today, to `date_to`, by default two weeks, at most 92 days. Days that
    the bank declares closed later change.
    """
    first = date_from or et_date(caller.now)
    count = _DAYS_DEFAULT if date_to is None else (date_to - first).days + 1
    if not 1 <= count <= DAYS_MAX:
        raise InvalidInput.at("query", "date_to", msg=f"must be within {DAYS_MAX} days from {first}")
    return Calendar(items=[_day_of(bank, first + timedelta(days=n)) for n in range(count)])


def _day_of(bank: Bank, day: date) -> CalendarDay:
    calendars = bank.calendars
    trades, settles = calendars.is_bond_day(day), calendars.is_settlement_day(day)
    return CalendarDay(
        date=day,
        is_fed_day=calendars.is_fed_day(day),
        is_bond_market_day=trades,
        is_settlement_day=settles,
        closed_for=calendars.closed_for(day),
        market_opens_at=calendars.opens_at(day) if trades else None,
        market_closes_at=calendars.closes_at(day) if trades else None,
        closes_early=trades and calendars.closes_at(day) < et_instant(day, calendars.closes),
        invests_until=min(et_instant(day, calendars.invests_until), calendars.closes_at(day)) if settles else None,
        cut_offs=_cut_offs(bank, day) if calendars.is_fed_day(day) else [],
    )


def _cut_offs(bank: Bank, day: date) -> list[CutOff]:
    hours, ach = bank.terms.wire_hours, et_instant(day, bank.terms.ach_cutoff)
    wires = ((Rail.WIRE, hours.domestic_cutoff), (Rail.INTERNATIONAL_WIRE, hours.international_cutoff))
    found = [
        CutOff(rail=rail, direction=Direction.CREDIT, opens_at=et_instant(day, hours.opens), at=et_instant(day, until))
        for rail, until in wires
    ]
    for direction in Direction:
        for low, high in ((None, SAME_DAY_BELOW_CENTS - 1), (SAME_DAY_BELOW_CENTS, None)):
            is_credit = direction == Direction.CREDIT
            times = schedule(
                ach - _INSTANT, low or 1, bank.calendars, is_credit=is_credit, cutoff=bank.terms.ach_cutoff
            )
            more = {"sent_at": times.due_at, "settles_at": times.settles_at}
            found.append(CutOff(rail=Rail.ACH, at=ach, direction=direction, from_cents=low, to_cents=high, **more))
    return found
