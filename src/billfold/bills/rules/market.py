"""The market for bills: the on-the-run bill, its rate and its price at any instant.

Built from securities, auctions and daily rates, and immutable except that it can be replaced by a
newer one. Derived values are cached by bill and day. Published rates are bids; the ask is one
tick lower. A composite of dealers' quotes replaces the rates of its day, with its own spread.
Beyond the records, the nearest curve is used and the weekday rule determines the
issue: a bill on record that matures on that day, or else a simulated one. In production
no bills are simulated, and prices that are too old stop purchases.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple, Self, TypeVar

from billfold.bills import market_data
from billfold.bills.rules import pricing, yields
from billfold.bills.rules.accretion import MICROSECONDS, AccretionLine, microseconds
from billfold.bills.rules.issue_calendar import TERMS, Term, latest_maturity, simulated_bill
from billfold.bills.types import Auction, Bill, BillPrices, DailyRates, PriceStrike, simulated_maturity
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date, et_instant, format_day, format_moment
from billfold.platform.errors import NotFound
from billfold.platform.money import PRICE_PAR_MICROS

_DAYS_PER_WEEK = 7
# A sandbox may run through years in minutes; past these sizes a cache is cleared.
_CACHE_MAX = 100_000
_TICKS_CACHED_MAX = 64

Key = TypeVar("Key")
Value = TypeVar("Value")


class TickPrices(dict[str, BillPrices]):
    """The prices of one tick by CUSIP, as of one Eastern day, each computed on first use."""

    def __init__(self, market: "Market", tick: datetime, day: date, *, settles_on: date) -> None:
        super().__init__()
        self.tick = tick
        self._market = market
        self._day, self._settles_on = day, settles_on

    def __missing__(self, cusip: str) -> BillPrices:
        bill_prices = self._market.bill_prices(cusip, self.tick, self._day, settles_on=self._settles_on)
        self[cusip] = bill_prices
        return bill_prices


class Market:
    """Bills, curves and prices. Pure: every instant and every day is a parameter."""

    version: tuple[object, ...] = ()
    """Version of the tables it was read from, by `bills/store.py`; it differs when they do."""

    def __init__(
        self,
        calendars: Calendars,
        securities: Iterable[Bill],
        auctions: Iterable[Auction],
        *,
        rates: Iterable[DailyRates],
        age_max_days: int | None = None,
        strikes: Iterable[PriceStrike] = (),
        quotes_age_max: timedelta | None = None,
    ) -> None:
        """Set `age_max_days`, the maximum age of rates in bond market days for trading; None allows simulation.

        `strikes` are the last composites of each day; with `quotes_age_max`, nothing trades by older ones.
        """
        self.calendars = calendars
        self.age_max_days = age_max_days
        self.quotes_age_max = quotes_age_max
        self._strikes = {} if quotes_age_max is None else {each.day: each for each in strikes}
        self._last_strike = max(self._strikes.values(), key=lambda each: each.struck_at, default=None)
        self._bills = {bill.cusip: bill for bill in securities}
        self._bills_by_maturity = {bill.maturity: bill for bill in self._bills.values()}
        self._issues = _issues_by_term(auctions, self._bills)
        curves = sorted(rates, key=lambda published: published.day)
        self._curve_days = [published.day for published in curves]
        self._curves = [_nodes(published) for published in curves]
        if not self._curves:
            raise ValueError("a market needs the rates of at least one day")
        self._rates: dict[tuple[str, date], int] = {}
        self._accretion_lines: dict[tuple[str, date], AccretionLine] = {}
        self._matures_at: dict[date, datetime] = {}
        self._on_the_run: dict[tuple[int, date], Bill] = {}
        self._tick_prices: dict[tuple[datetime, date], TickPrices] = {}
        self._closing_marks: dict[tuple[str, date], int] = {}

    @classmethod
    def packaged(cls, calendars: Calendars) -> Self:
        """Return the market of the rates and auctions that ship with the package."""
        return cls(calendars, market_data.securities(), market_data.auctions(), rates=market_data.rates())

    def bill(self, cusip: str) -> Bill:
        """Return the bill under a CUSIP, real or simulated. Raises NotFound."""
        known = self._bills.get(cusip)
        if known is not None:
            return known
        maturity = simulated_maturity(cusip)
        if maturity is None:
            raise NotFound("There is no bill under this CUSIP.", cusip=cusip)
        return self._bills.setdefault(cusip, simulated_bill(maturity, self.calendars))

    def add_bills_of(self, newer: "Market") -> None:
        """Make the bills of a newer market known by CUSIP, without buying any of them yet."""
        self._bills = newer._bills | self._bills  # noqa: SLF001 - same class

    def replace_with(self, newer: "Market") -> None:
        """Replace the contents of this market with the newer one, for all holders of a reference."""
        self.__dict__.update(newer.__dict__)

    @property
    def first_day(self) -> date:
        """The first day with prices."""
        return self._curve_days[0]

    @property
    def last_day(self) -> date:
        """The day of the newest rates."""
        return self._curve_days[-1]

    def age_days(self, at: datetime) -> int:
        """Return the number of bond market days opened by an instant since the newest rates."""
        return self.calendars.count_bond_days(self.last_day, self.calendars.pricing_day(at))

    def is_current(self, at: datetime) -> bool:
        """Return whether the newest rates, and quotes if there are to be any, are recent enough to trade by."""
        if self.quotes_age_max is not None:
            quoted_at = self.last_strike.oldest_at if self.last_strike else self.calendars.opens_at(self.first_day)
            if self.calendars.last_tick(at) - quoted_at > self.quotes_age_max:
                return False
        return self.age_max_days is None or self.age_days(at) <= self.age_max_days

    @property
    def last_strike(self) -> PriceStrike | None:
        """The newest composite of dealers' quotes."""
        return self._last_strike

    def on_the_run(self, weeks: int, day: date) -> Bill:
        """Return the bill of a term most recently issued on or before `day`.

        If the auctions on record do not reach the day, it is the weekday rule's. It matures after
        the next settlement day. Raises NotFound for a term that is not sold, and in production
        for a bill that would be a simulated one.
        """
        key = weeks, day
        found = self._on_the_run.get(key)
        if found is None:
            term = TERMS.get(weeks)
            if term is None:
                raise NotFound(f"There is no {weeks}-week bill.", weeks=weeks)
            found = self._auctioned_on_the_run(term, day) or self._scheduled_on_the_run(term, day)
            _cache(self._on_the_run, key, found)
        return found

    def bid_rate(self, bill: Bill, day: date) -> int:
        """Return the bid in thousandths of a percent: the day's curve at the remaining days, never below 0.

        A negative rate would sell a bill above par for the same day and buy it for less for the next one.
        """
        key = bill.cusip, day
        rate = self._rates.get(key)
        if rate is None:
            rate = max(0, pricing.interpolated_rate(self.curve(day)[1], (bill.maturity - day).days))
            _cache(self._rates, key, rate)
        return rate

    def curve(self, day: date) -> tuple[date, Sequence[tuple[int, int]]]:
        """Return the curve of a day with its publication date: (days to maturity, thousandths of a percent).

        It is the composite of the day, or the last one published on or before `day`, or else the first one.
        """
        strike = self._strikes.get(day)
        if strike is not None:
            return day, [(point.days, point.bid_milli) for point in strike.points]
        return self.published_curve(day)

    def published_curve(self, day: date) -> tuple[date, Sequence[tuple[int, int]]]:
        """Return the curve that the Treasury published last on or before `day`, like `curve`."""
        index = max(0, bisect_right(self._curve_days, day) - 1)
        return self._curve_days[index], self._curves[index]

    def spread(self, day: date) -> int:
        """Return the distance of the ask rate under the bid in thousandths of a percent: dealers' widest, or a tick.

        The bank covers itself at dealers' asks: a narrower one would be paid by the house.
        """
        strike = self._strikes.get(day)
        widest = max(point.bid_milli - point.ask_milli for point in strike.points) if strike else 0
        return max(pricing.RATE_TICK_MILLI, widest)

    def is_quoted(self, day: date) -> bool:
        """Return whether the prices of a day come from dealers' quotes."""
        return day in self._strikes

    def ask_rate(self, bill: Bill, day: date) -> int:
        """Return the ask in thousandths of a percent: the spread under the bid, never below 0."""
        return max(0, self.bid_rate(bill, day) - self.spread(day))

    def t0_bid(self, bill: Bill, at: datetime) -> int:
        """Return the price in micros for selling with settlement on the pricing day itself.

        A matured bill sells at par, even before the market of that day has opened.
        """
        if at >= self.matures_at(bill):
            return PRICE_PAR_MICROS
        day = self.calendars.pricing_day(at)
        return self._bid(bill, day, day)

    def t1_bid(self, bill: Bill, at: datetime) -> int:
        """Return the price in micros for selling with the regular settlement of a trade made now."""
        return self._bid(bill, self.calendars.pricing_day(at), self.settles_on(at))

    def ask(self, bill: Bill, at: datetime) -> int:
        """Return the price in micros for buying, settling on the day after the pricing day."""
        day = self.calendars.pricing_day(at)
        settles_on = self.calendars.next_settlement_day(day)
        return pricing.price_from_rate(self.ask_rate(bill, day), (bill.maturity - settles_on).days)

    def settles_on(self, at: datetime) -> date:
        """Return the day a trade made now settles: one settlement day after its business date."""
        return self.calendars.next_settlement_day(self.calendars.business_date(at))

    def tick_at(self, at: datetime) -> datetime:
        """Return the instant at which the prices valid at `at` were computed."""
        return self.calendars.last_tick(at)

    def price_at(self, bill: Bill, at: datetime) -> int:
        """Return the bid in micros at any instant, on the straight line to par at maturity.

        The line starts at 00:00 Eastern of the pricing day with that day's same-day bid.
        """
        remaining = microseconds(self.matures_at(bill) - at)
        if remaining <= 0:
            return PRICE_PAR_MICROS
        return self._accretion_line(bill, self.calendars.pricing_day(at)).price(remaining)

    def mark(self, bill: Bill, at: datetime) -> int:
        """Return the price in micros at the last tick, which customers see until the next tick.

        Par from maturity on, because no tick falls into the night before.
        """
        if at >= self.matures_at(bill):
            return PRICE_PAR_MICROS
        return self.price_at(bill, self.tick_at(at))

    def closing_mark(self, cusip: str, day: date) -> int:
        """Return a bill's mark at the close of a day, or at the last one when it was closed."""
        key = cusip, day
        mark = self._closing_marks.get(key)
        if mark is None:
            closes_at = self.calendars.closes_at
            priced_on = self.calendars.pricing_day(closes_at(day))
            mark = self.mark(self.bill(cusip), closes_at(priced_on))
            _cache(self._closing_marks, key, mark)
        return mark

    def matures_at(self, bill: Bill) -> datetime:
        """Return 00:00 Eastern of the maturity date, from when the bill is worth par."""
        at = self._matures_at.get(bill.maturity)
        if at is None:
            at = et_instant(bill.maturity, 0)
            _cache(self._matures_at, bill.maturity, at)
        return at

    def tick_prices(self, at: datetime, *, real_time: bool = False) -> TickPrices:
        """Return the prices of the last tick, shared by all callers until the next tick or midnight.

        In real time every second is a tick, whether the market is open or not.
        """
        key = at.replace(microsecond=0) if real_time else self.tick_at(at), et_date(at)
        tick_prices = self._tick_prices.get(key)
        if tick_prices is None:
            tick_prices = TickPrices(self, *key, settles_on=self.settles_on(at))
            if len(self._tick_prices) >= _TICKS_CACHED_MAX:
                self._tick_prices.clear()
            self._tick_prices[key] = tick_prices
        return tick_prices

    def bill_prices(self, cusip: str, tick: datetime, today: date, *, settles_on: date) -> BillPrices:
        """Return one bill's prices at a tick, as of the tick's day or a closed day after it.

        `settles_on` is the settlement day of a next-day sale now, which is one day later after the close.

        A bill that has matured by then is at par and no longer accretes. The yield is that of the day's
        same-day bid.

        The mark is this bid accreted through the day, so both have the same yield;
        taking whole days from the accreted price would understate it more every hour.
        """
        bill = self.bill(cusip)
        day = self.calendars.pricing_day(tick)
        matured = bill.maturity <= today
        t0_bid = PRICE_PAR_MICROS if matured else self._bid(bill, day, day)
        rate = yields.investment_rate(t0_bid, day, bill.maturity)
        seconds_left = microseconds(self.matures_at(bill) - tick) // MICROSECONDS
        return BillPrices(
            bill=bill,
            mark_micros=PRICE_PAR_MICROS if matured else self.price_at(bill, tick),
            t0_bid_micros=t0_bid,
            t1_bid_micros=self._bid(bill, day, settles_on),
            yield_to_maturity=format(rate.scaleb(-2), "f"),
            seconds_left=0 if matured else seconds_left,
        )

    def _auctioned_on_the_run(self, term: Term, day: date) -> Bill | None:
        issue_days, bills = self._issues.get(term.weeks, ((), ()))
        index = bisect_right(issue_days, day) - 1
        if index < 0 or (day - issue_days[index]).days > term.data_days_max:
            return None
        bill = bills[index]
        return bill if bill.maturity > self.calendars.next_settlement_day(day) else None

    def _scheduled_on_the_run(self, term: Term, day: date) -> Bill:
        maturity = latest_maturity(term, day, self.calendars)
        reopened = self._bills_by_maturity.get(maturity)
        if reopened is not None and reopened.first_issue <= day:
            return reopened
        if self.age_max_days is not None:
            raise NotFound(f"No auction of a {term.label} bill that is on record was issued by {day}.")
        cusip = simulated_bill(maturity, self.calendars).cusip
        return self.bill(cusip)

    def _bid(self, bill: Bill, day: date, settles_on: date) -> int:
        days = (bill.maturity - settles_on).days
        return pricing.price_from_rate(self.bid_rate(bill, day), days)

    def _accretion_line(self, bill: Bill, day: date) -> AccretionLine:
        """Return the line of a pricing day, from its same-day bid at 00:00 Eastern."""
        key = bill.cusip, day
        line = self._accretion_lines.get(key)
        if line is None:
            discount = PRICE_PAR_MICROS - self._bid(bill, day, day)
            line = AccretionLine(discount, microseconds(self.matures_at(bill) - et_instant(day, 0)))
            _cache(self._accretion_lines, key, line)
        return line


def _issues_by_term(
    auctions: Iterable[Auction], bills: dict[str, Bill]
) -> dict[int, tuple[Sequence[date], Sequence[Bill]]]:
    """Return per term the issue days in order and, next to each, the bill issued."""
    issued: dict[int, dict[date, Bill]] = {}
    for auction in auctions:
        if auction.weeks is not None:
            issued.setdefault(auction.weeks, {})[auction.issue_date] = bills[auction.cusip]
    return {weeks: (days := sorted(by_day), [by_day[day] for day in days]) for weeks, by_day in issued.items()}


def _nodes(published: DailyRates) -> tuple[tuple[int, int], ...]:
    return tuple((quote.weeks * _DAYS_PER_WEEK, quote.discount_milli) for quote in published.quotes)


def _cache(memory: dict[Key, Value], key: Key, value: Value) -> None:
    if len(memory) >= _CACHE_MAX:
        memory.clear()
    memory[key] = value


class MarketDataState(NamedTuple):
    """One kind of market data: its newest item, and why trading by it is blocked; empty if it is not."""

    what: str
    newest: str
    problem: str = ""


def market_data_states(market: Market, at: datetime) -> Iterator[MarketDataState]:
    """Yield the state at an instant of the rates, then of the bills of each term."""
    problem = "" if market.is_current(at) else "too old: nothing is bought, and sales cost more"
    age, strike = market.age_days(at), market.last_strike
    days = f"{age} bond market {'day' if age == 1 else 'days'} ago" if age else "the newest"
    yield MarketDataState("rates", f"{format_day(market.last_day)}, {days}", problem)
    if market.quotes_age_max is not None:
        yield MarketDataState("dealers' quotes", format_moment(strike.struck_at) if strike else "none", problem)
    for weeks in TERMS:
        try:
            bill = market.on_the_run(weeks, market.calendars.business_date(at))
            issued = f"issued {format_day(bill.first_issue)}" + (", simulated" if bill.simulated else "")
            yield MarketDataState(f"{weeks}-week bill", f"{bill.cusip}, {issued}")
        except NotFound as missing:
            yield MarketDataState(f"{weeks}-week bill", "none", missing.detail)
