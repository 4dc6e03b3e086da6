"""The fee on assets: a rate per year on each day's value, exact to the last fraction.

Accrued fees are integers in units of 1/3,650,000 cent, the value of one cent at one basis point
for one day of a 365-day year; nothing is rounded until a whole cent is charged.
"""

from collections.abc import Iterable
from datetime import date, timedelta

from billfold.bills.rules.market import Market
from billfold.platform.calendars import Calendars
from billfold.platform.money import cents_for

ACCRUED_UNITS_PER_CENT = 10_000 * 365
"""Units of accrued fee per cent."""

_LONGEST_MONTH = timedelta(days=31)
_ONE_DAY = timedelta(days=1)


def accrue_fee(value_cents: int, bps: int, days: int) -> int:
    """Return the fee that accrues on a value over some days; nothing on a value below zero."""
    return max(0, value_cents) * bps * days


def split_accrued_fee(accrued: int) -> tuple[int, int]:
    """Return the whole cents of an accrued fee and the rest, which stays accrued."""
    return divmod(accrued, ACCRUED_UNITS_PER_CENT)


def fee_charge_date(day: date, calendars: Calendars) -> date:
    """Return the date on which the fee of the month of `day` is charged: the next month's first business day.

    A business day here is one on which both the Fed and the bond market are open, because
    paying the fee may mean selling a bill.
    """
    next_month = (day.replace(day=1) + _LONGEST_MONTH).replace(day=1)
    return calendars.settlement_on_or_after(next_month)


def accrue_days(
    positions: Iterable[tuple[str, int]], cash_cents: int, *, after: date, through: date, market: Market, bps: int
) -> int:
    """Return the fee that accrues on an unchanged holding for each calendar day after `after` up to `through`.

    A day is valued at the mark of its close; a day when the market is closed, at that of
    the last close before it.
    """
    positions = list(positions)
    total = 0
    day = after + _ONE_DAY
    while day <= through:
        value = cash_cents
        for cusip, units in positions:
            value += cents_for(units, market.closing_mark(cusip, day))
        total += accrue_fee(value, bps, 1)
        day += _ONE_DAY
    return total
