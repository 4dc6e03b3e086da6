"""Earnings of a pocket in a period, from its state at both ends.

Every field of an entry is an additive amount in cents, so sums over pockets and over adjoining
periods are exact. Rates do not belong here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from billfold.bills.rules.market import Market
from billfold.bills.types import EarningsPeriod, Period
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import FieldError, InvalidInput, InvariantError
from billfold.platform.money import cents_for

_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PocketState:
    """A pocket at one instant: units per CUSIP, cents, and counters that run since its opening.

    `earnings_basis` is the basis at which the current positions were acquired; `inflow` and `outflow` are
    external flows, securities at market value included; `fees` are those charged; `realised` is
    proceeds less basis of everything sold or matured.
    """

    positions: tuple[tuple[str, int], ...] = ()
    cash: int = 0
    earnings_basis: int = 0
    inflow: int = 0
    outflow: int = 0
    fees: int = 0
    realised: int = 0


class EarningsEntry(NamedTuple):
    """Earnings of one pocket over one period, in cents. `earnings` is before fees."""

    earnings: int
    earnings_net: int
    fees: int
    realised: int
    unrealised_change: int
    contributions: int
    withdrawals: int
    start_value: int
    end_value: int


def compute_earnings(
    start_state: PocketState, start_at: datetime, end_state: PocketState, end_at: datetime, market: Market
) -> EarningsEntry:
    """Return what was earned from `start_at` to `end_at`, given the states at both.

    Both ends are valued as the portfolio was shown then: at the last tick. So nothing is earned or lost
    while the market is closed. Raises InvariantError when gross earnings are not exactly
    realised plus the change of unrealised gains, because then the books
    have gained or lost a cent.
    """
    start_market, end_market = _market_value(start_state, market, start_at), _market_value(end_state, market, end_at)
    start_value, end_value = start_market + start_state.cash, end_market + end_state.cash
    contributions = end_state.inflow - start_state.inflow
    withdrawals = end_state.outflow - start_state.outflow
    fees = end_state.fees - start_state.fees
    earnings_net = end_value - start_value - contributions + withdrawals
    result = EarningsEntry(
        earnings=earnings_net + fees,
        earnings_net=earnings_net,
        fees=fees,
        realised=end_state.realised - start_state.realised,
        unrealised_change=(end_market - end_state.earnings_basis) - (start_market - start_state.earnings_basis),
        contributions=contributions,
        withdrawals=withdrawals,
        start_value=start_value,
        end_value=end_value,
    )
    if result.earnings != result.realised + result.unrealised_change:
        raise InvariantError("Earnings are not realised plus unrealised.", **result._asdict())
    return result


def value_at(state: PocketState, at: datetime, market: Market) -> int:
    """Return the value of a state at an instant, in cents: bills at their mark, and cash."""
    return _market_value(state, market, at) + state.cash


def sum_earnings(entries: Iterable[EarningsEntry]) -> EarningsEntry:
    """Return the sum of entries, field by field; all zero without any."""
    nothing = (0,) * len(EarningsEntry._fields)
    return EarningsEntry(*map(sum, zip(nothing, *entries, strict=True)))


def period_bounds(
    period: EarningsPeriod,
    now: datetime,
    created_at: datetime,
    date_from: date | None = None,
    date_to: date | None = None,
) -> Period:
    """Return the time span of a period, in UTC, never later than now.

    Weeks begin on Monday, all calendar periods at 00:00 Eastern; `all-time` begins when the
    pocket was created. A range runs from and through whole Eastern days for dates, and from the
    first instant up to the second, excluded, for date-times. Raises InvalidInput.
    """
    if period == "range":
        return _range_bounds(now, date_from, date_to)
    if date_from is not None or date_to is not None:
        given = "date_from" if date_from is not None else "date_to"
        raise InvalidInput.at("query", given, msg="is only taken with period=range")
    start = created_at if period == "all-time" else _calendar_start(period, et_date(now))
    return Period(min(start, now), now, live=True)


def shown_dates(name: EarningsPeriod, period: Period, calendars: Calendars) -> tuple[date, date]:
    """Return the bounds to show for a period: days, both included, or instants as they were given.

    A period that ends today is shown to end on the last business day, even if that is before its start.
    """
    by_start, by_end = period.by_instants
    first, last = et_date(period.start), last_day(period)
    if name != "range":
        last = calendars.settlement_on_or_before(et_date(period.end))
    return (period.start.astimezone(UTC) if by_start else first, period.end.astimezone(UTC) if by_end else last)


def last_day(period: Period) -> date:
    """Return the last day that overlaps the period, whose end is excluded."""
    return max(et_date(period.end - datetime.resolution), et_date(period.start))


def require_prices(market: Market, **days: date | None) -> None:
    """Raise InvalidInput, naming the parameter, for a day before the first prices."""
    for name, given in days.items():
        day = et_date(given) if isinstance(given, datetime) else given
        if day is not None and day < market.first_day:
            raise InvalidInput.at("query", name, msg=f"is before {market.first_day}, the first day with prices")


def _market_value(state: PocketState, market: Market, at: datetime) -> int:
    return sum(cents_for(units, market.mark(market.bill(cusip), at)) for cusip, units in state.positions)


def _calendar_start(period: EarningsPeriod, today: date) -> datetime:
    if period == "wtd":
        return et_instant(today - timedelta(days=today.weekday()), time())
    first_day = today.replace(day=1)
    return et_instant(first_day if period == "mtd" else first_day.replace(month=1), time())


def _range_bounds(now: datetime, date_from: date | None, date_to: date | None) -> Period:
    if date_from is None or date_to is None:
        raise InvalidInput(
            FieldError(("query", name), "is needed with period=range", "missing")
            for name, given in (("date_from", date_from), ("date_to", date_to))
            if given is None
        )
    start = _parse_bound("date_from", date_from)
    end = _parse_bound("date_to", date_to, through=True)
    # A whole day is never empty, so reversed dates end at or before their start.
    if start > end or (start == end and not isinstance(date_to, datetime)):
        raise InvalidInput.at("query", "date_to", msg="must not be before date_from")
    if start > now:
        raise InvalidInput.at("query", "date_from", msg="must not be later than now")
    by_instants = isinstance(date_from, datetime), isinstance(date_to, datetime)
    # At the first instant after a whole day, the day is over: later movements belong to the next day.
    live = end > now or (end == now and by_instants[1])
    return Period(start, min(end, now), live=live, by_instants=by_instants)


def _parse_bound(name: str, given: date, *, through: bool = False) -> datetime:
    """Return a date-time as it is; a date as its first instant, or as the next day's.

    `date.max` means no upper bound. Raises InvalidInput for an instant that
    has no Eastern date.
    """
    if through and given == date.max:
        return datetime.max.replace(tzinfo=UTC)
    try:
        if not isinstance(given, datetime):
            return et_instant(given + _ONE_DAY if through else given, time())
        et_date(given)
    except OverflowError:
        raise InvalidInput.at("query", name, msg="is outside of the calendar") from None
    except ValueError as naive:
        raise InvalidInput.at("query", name, msg=str(naive)) from None
    return given
