"""Business days: Federal Reserve days move payments, bond market days move bills.

A trade needs the bond market, a payment the Reserve, the settlement of a bill needs both.
Days come from the `holidays` package, corrected by an operator's overrides.
A `Calendars` never changes; it caches its results per day.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import holidays

from billfold.platform.dates import ET, et_date, et_instant, require_aware

_ONE_DAY = timedelta(days=1)
_SATURDAY, _SUNDAY = 5, 6
_MATURITY_TIME = time(8, 30)
_CLOSING_TIME_PATTERN = re.compile(r"close at (\d{1,2}):(\d{2})pm")


@dataclass(frozen=True, slots=True)
class DayOverride:
    """An operator's correction of one day of the calendars. None leaves it as it is."""

    fed_open: bool | None = None
    bond_open: bool | None = None
    closes: time | None = None


class WireHours(NamedTuple):
    """The hours of outgoing wires on a day on which the Reserve is open, Eastern time."""

    opens: time = time(8)
    domestic_cutoff: time = time(16)
    international_cutoff: time = time(15)


class _Day(NamedTuple):
    fed: bool
    bond: bool
    closes: time


class _Span(NamedTuple):
    """A period, up to `until`, during which every answer stays the same."""

    until: datetime
    business_date: date
    trading: bool
    investing: bool
    pricing_day: date
    last_close: datetime | None
    next_open: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Calendars:
    """Both calendars and the hours of the bond market, all hours Eastern time."""

    overrides: Mapping[date, DayOverride] = field(default_factory=lambda: MappingProxyType({}))
    opens: time = time(8)
    closes: time = time(17)
    invests_until: time = time(15)
    _day_cache: dict[date, _Day] = field(default_factory=dict, init=False, repr=False)
    _span_cache: dict[date, tuple[_Span, ...]] = field(default_factory=dict, init=False, repr=False)
    _open_cache: dict[date, datetime] = field(default_factory=dict, init=False, repr=False)
    _close_cache: dict[date, datetime] = field(default_factory=dict, init=False, repr=False)
    _maturity_cache: dict[date, datetime] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse hours out of order, and protect the overrides from later changes."""
        if not self.opens < self.invests_until <= self.closes:
            msg = "the market opens before it stops investing, and closes after that"
            raise ValueError(msg)
        for day, override in self.overrides.items():
            if override.closes is not None and not self.opens < override.closes <= self.closes:
                raise ValueError(f"the override of {day} closes outside market hours")
        object.__setattr__(self, "overrides", MappingProxyType(dict(self.overrides)))

    def is_fed_day(self, day: date) -> bool:
        """Tell whether payments (ACH, Fedwire) move on this day."""
        return self._day(day).fed

    def is_bond_day(self, day: date) -> bool:
        """Tell whether the government bond market trades on this day."""
        return self._day(day).bond

    def is_settlement_day(self, day: date) -> bool:
        """Tell whether a bill can settle on this day: Reserve and market are both open."""
        cached = self._day(day)
        return cached.fed and cached.bond

    def closed_for(self, day: date) -> str | None:
        """Return why the Reserve or the bond market is closed on a day; None if both are open."""
        if self.is_settlement_day(day):
            return None
        return "Weekend" if day.weekday() >= _SATURDAY else _holiday_of(day) or "Declared by the bank"

    def count_bond_days(self, after: date, through: date) -> int:
        """Return the number of trading days of the bond market after one day, up to another."""
        days = (after + timedelta(n) for n in range(1, (through - after).days + 1))
        return sum(map(self.is_bond_day, days))

    def next_settlement_day(self, day: date) -> date:
        """Return the first settlement day strictly after this day."""
        return self.settlement_on_or_after(day + _ONE_DAY)

    def has_settled(self, agreed_on: date, today: date) -> bool:
        """Tell whether bills due on a day have settled by another: on that day, or on the next open one after it."""
        return agreed_on <= self.settlement_on_or_before(today)

    def settlement_on_or_after(self, day: date) -> date:
        """Return this day if bills settle on it, else the next day on which they do."""
        while not self.is_settlement_day(day):
            day += _ONE_DAY
        return day

    def settlement_on_or_before(self, day: date) -> date:
        """Return this day if bills settle on it, else the previous day on which they did."""
        while not self.is_settlement_day(day):
            day -= _ONE_DAY
        return day

    def settles_at(self, agreed_at: datetime) -> datetime:
        """Return when a payment settles that was due to settle at an instant.

        On a day that was declared closed since, it settles at the same hour of the next open Reserve day.
        """
        if not self.overrides:
            return agreed_at
        day = et_date(agreed_at)
        if day not in self.overrides or self.is_fed_day(day):
            return agreed_at
        return et_instant(self.fed_on_or_after(day), agreed_at.astimezone(ET).time())

    def closures(self) -> dict[date, tuple[int, int]]:
        """Return the overridden days on which not everything settles, and the delay in days.

        First for payments due then, as in `settles_at`, then for bills, as in `settlement_on_or_after`.
        """
        return {
            day: ((self.fed_on_or_after(day) - day).days, (self.settlement_on_or_after(day) - day).days)
            for day in self.overrides
            if not self.is_settlement_day(day)
        }

    def next_fed_day(self, day: date) -> date:
        """Return the first Reserve day strictly after this day."""
        return self.fed_on_or_after(day + _ONE_DAY)

    def fed_on_or_after(self, day: date) -> date:
        """Return this day if the Reserve is open, else the next day on which it is."""
        while not self._day(day).fed:
            day += _ONE_DAY
        return day

    def fed_on_or_before(self, day: date) -> date:
        """Return this day if the Reserve is open, else the previous day on which it was."""
        while not self._day(day).fed:
            day -= _ONE_DAY
        return day

    def add_fed_days(self, day: date, n: int) -> date:
        """Return the n-th Reserve day after `day`, or before it when n is negative.

        Zero moves a closed day forward to the next open one and leaves an open day unchanged.
        """
        if n == 0:
            return self.fed_on_or_after(day)
        step = _ONE_DAY if n > 0 else -_ONE_DAY
        for _ in range(abs(n)):
            day += step
            while not self._day(day).fed:
                day += step
        return day

    def opens_at(self, day: date) -> datetime:
        """Return the instant (UTC) at which the market opens on a day, or would if it traded."""
        cached = self._open_cache.get(day)
        if cached is None:
            cached = self._open_cache[day] = et_instant(day, self.opens)
        return cached

    def closes_at(self, day: date) -> datetime:
        """Return the instant (UTC) at which the market closes on a day, early closes included."""
        cached = self._close_cache.get(day)
        if cached is None:
            cached = self._close_cache[day] = et_instant(day, self._day(day).closes)
        return cached

    def matures_at(self, day: date) -> datetime:
        """Return the instant (UTC) a bill due on `day` pays: 08:30 ET, on the next Reserve day."""
        cached = self._maturity_cache.get(day)
        if cached is None:
            cached = et_instant(self.fed_on_or_after(day), _MATURITY_TIME)
            self._maturity_cache[day] = cached
        return cached

    def is_trading(self, at: datetime) -> bool:
        """Tell whether the bond market is open at this instant, the close excluded."""
        return self._span(at).trading

    def may_invest(self, at: datetime) -> bool:
        """Tell whether cash is invested at this instant: trading, on a settlement day, in time."""
        return self._span(at).investing

    def next_open(self, at: datetime) -> datetime:
        """Return the next instant, strictly after `at`, at which investing starts for the day."""
        return self._span(at).next_open

    def pricing_day(self, at: datetime) -> date:
        """Return the latest bond day that had opened by this instant: its rates apply."""
        return self._span(at).pricing_day

    def last_tick(self, at: datetime) -> datetime:
        """Return the latest whole minute of market time up to this instant, the close included."""
        span = self._span(at)
        if span.last_close is not None:
            return span.last_close
        utc = at if at.tzinfo is UTC else at.astimezone(UTC)
        # Three times as fast as replace(), and every valuation calls it.
        return utc - timedelta(0, utc.second, utc.microsecond)

    def business_date(self, at: datetime) -> date:
        """Return the settlement day this instant belongs to: from the close on, the next one."""
        return self._span(at).business_date

    def _day(self, day: date) -> _Day:
        cached = self._day_cache.get(day)
        if cached is None:
            cached = self._day_cache[day] = self._compute_day(day)
        return cached

    def _compute_day(self, day: date) -> _Day:
        weekday = day.weekday() < _SATURDAY
        fed = weekday and day not in _fed_closures(day.year)
        bond = weekday and day not in _bond_closures(day.year)
        closes = min(_early_closes(day.year).get(day, self.closes), self.closes)
        override = self.overrides.get(day, DayOverride())
        return _Day(
            fed if override.fed_open is None else override.fed_open,
            bond if override.bond_open is None else override.bond_open,
            closes if override.closes is None else override.closes,
        )

    def _span(self, at: datetime) -> _Span:
        if at.tzinfo is not UTC:
            at = require_aware(at).astimezone(UTC)
        spans = self._span_cache.get(at.date())
        if spans is None:
            spans = self._span_cache[at.date()] = self._spans_of(at.date())
        index = 0
        while at >= spans[index].until:
            index += 1
        return spans[index]

    def _spans_of(self, utc_day: date) -> tuple[_Span, ...]:
        """Split a UTC day at every instant that may change an answer."""
        start = datetime.combine(utc_day, time(), tzinfo=UTC)
        end = start + _ONE_DAY
        cuts = {start, end}
        for day in (utc_day - _ONE_DAY, utc_day):
            cuts |= {
                et_instant(day, time()),
                self.opens_at(day),
                et_instant(day, self.invests_until),
                self.closes_at(day),
            }
        boundaries = sorted(cut for cut in cuts if start <= cut <= end)
        return tuple(self._span_from(since, until) for since, until in pairwise(boundaries))

    def _span_from(self, at: datetime, until: datetime) -> _Span:
        today = at.astimezone(ET).date()
        cached = self._day(today)
        trading = cached.bond and self.opens_at(today) <= at < self.closes_at(today)
        pricing_day = self._last_open_day(at, today)
        return _Span(
            until=until,
            business_date=self.settlement_on_or_after(today if at < self.closes_at(today) else today + _ONE_DAY),
            trading=trading,
            investing=trading and cached.fed and at < et_instant(today, self.invests_until),
            pricing_day=pricing_day,
            last_close=None if trading else self.closes_at(pricing_day),
            next_open=self.opens_at(
                self.settlement_on_or_after(today if at < self.opens_at(today) else today + _ONE_DAY)
            ),
        )

    def _last_open_day(self, at: datetime, today: date) -> date:
        day = today
        while not self._day(day).bond or self.opens_at(day) > at:
            day -= _ONE_DAY
        return day


@cache
def _fed_closures(year: int) -> frozenset[date]:
    """Return the days the Reserve is closed: a Sunday holiday moves to Monday, a Saturday holiday is dropped."""
    closures = holidays.country_holidays("US", years=year, observed=False)
    return frozenset(
        day + _ONE_DAY if day.weekday() == _SUNDAY else day for day in closures if day.weekday() != _SATURDAY
    )


@cache
def _holiday_of(day: date) -> str | None:
    """Return the name of a holiday of either calendar."""
    of_fed = holidays.country_holidays("US", years=day.year, observed=False)
    name = of_fed.get(day - _ONE_DAY if day.weekday() == 0 and day - _ONE_DAY in of_fed else day)
    return name or holidays.financial_holidays("USGS", years=day.year).get(day)


@cache
def _bond_closures(year: int) -> frozenset[date]:
    return frozenset(holidays.financial_holidays("USGS", years=year))


@cache
def _early_closes(year: int) -> dict[date, time]:
    closures = holidays.financial_holidays("USGS", years=year, categories=("half_day",))
    return {day: _closing_time(name) for day, name in closures.items()}


def _closing_time(name: str) -> time:
    """Parse the hour of an early close, which the package gives only in the name of the day."""
    found = _CLOSING_TIME_PATTERN.search(name)
    if found is None:
        raise ValueError(f"an early close without an hour: {name}")
    return time(int(found[1]) % 12 + 12, int(found[2]))
