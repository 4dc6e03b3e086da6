"""Earnings and values under random trades on the real market."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from billfold.bills.market_data import auctions, securities
from billfold.bills.rules.earnings import PocketState, compute_earnings, sum_earnings
from billfold.bills.rules.fees import ACCRUED_UNITS_PER_CENT, accrue_fee, split_accrued_fee
from billfold.bills.rules.lots import affordable_units, allocate_basis
from billfold.bills.rules.market import Market
from billfold.bills.rules.valuation import value_positions
from billfold.bills.types import DailyRates, Quote
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant
from billfold.platform.money import cents_for

MARKET = Market.packaged(Calendars())
FIRST = date(2026, 6, 1)
minutes = st.integers(0, 60 * 24 * 400)

moves = st.lists(
    st.tuples(
        st.sampled_from(["deposit", "withdraw", "buy", "sell", "receive", "fee"]),
        st.integers(1, 5_000_000),
        st.sampled_from([4, 13, 26, 52]),
    ),
    min_size=1,
    max_size=25,
)


class Book:
    """A pocket that trades: the counters of a state, kept the way the ledger keeps them."""

    def __init__(self) -> None:
        self.state = PocketState()
        self.held: dict[str, tuple[int, int]] = {}

    def move(self, kind: str, amount: int, weeks: int, day: date) -> None:
        getattr(self, kind)(amount, weeks, et_instant(day, 12))
        self._count()

    def mature(self, day: date) -> None:
        for cusip in [cusip for cusip in self.held if MARKET.bill(cusip).maturity <= day]:
            units, basis = self.held.pop(cusip)
            self._gain(units * 10_000, basis)
        self._count()

    def _count(self) -> None:
        self.state = replace(
            self.state,
            positions=tuple((cusip, units) for cusip, (units, _) in self.held.items()),
            earnings_basis=sum(basis for _, basis in self.held.values()),
        )

    def deposit(self, amount: int, _weeks: int, _at: datetime) -> None:
        self.state = replace(self.state, cash=self.state.cash + amount, inflow=self.state.inflow + amount)

    def withdraw(self, amount: int, _weeks: int, _at: datetime) -> None:
        paid = min(amount, self.state.cash)
        self.state = replace(self.state, cash=self.state.cash - paid, outflow=self.state.outflow + paid)

    def fee(self, amount: int, _weeks: int, _at: datetime) -> None:
        paid = min(amount // 1_000, self.state.cash)
        self.state = replace(self.state, cash=self.state.cash - paid, fees=self.state.fees + paid)

    def buy(self, amount: int, weeks: int, at: datetime) -> None:
        bill = MARKET.on_the_run(weeks, at.date())
        ask = MARKET.ask(bill, at)
        units = affordable_units(min(amount, self.state.cash), ask)
        cost = cents_for(units, ask)
        self.state = replace(self.state, cash=self.state.cash - cost)
        self._take(bill.cusip, units, cost)

    def receive(self, amount: int, weeks: int, at: datetime) -> None:
        bill = MARKET.on_the_run(weeks, at.date())
        units = amount // 10_000
        worth = cents_for(units, MARKET.mark(bill, at))
        self.state = replace(self.state, inflow=self.state.inflow + worth)
        self._take(bill.cusip, units, worth)

    def sell(self, amount: int, _weeks: int, at: datetime) -> None:
        if not self.held:
            return
        cusip = min(self.held, key=lambda held: MARKET.bill(held).maturity)
        units, basis = self.held[cusip]
        sold = min(units, max(1, amount // 10_000))
        part = allocate_basis(basis, sold, units)
        self.held[cusip] = units - sold, basis - part
        if sold == units:
            del self.held[cusip]
        self._gain(cents_for(sold, MARKET.t0_bid(MARKET.bill(cusip), at)), part)

    def _take(self, cusip: str, units: int, cost: int) -> None:
        if units:
            held, basis = self.held.get(cusip, (0, 0))
            self.held[cusip] = held + units, basis + cost

    def _gain(self, proceeds: int, basis: int) -> None:
        self.state = replace(
            self.state, cash=self.state.cash + proceeds, realised=self.state.realised + proceeds - basis
        )


@settings(deadline=None)
@given(moves, st.integers(1, 9))
def test_earnings_are_realized_plus_unrealized_and_periods_add_up(drawn, stride):
    book, day = Book(), FIRST
    ends = [(book.state, et_instant(day, 0))]
    for kind, amount, weeks in drawn:
        day = MARKET.calendars.settlement_on_or_after(day + timedelta(days=stride))
        book.mature(day)
        book.move(kind, amount, weeks, day=day)
        ends.append((book.state, et_instant(day + timedelta(days=1), 0)))

    steps = [compute_earnings(*before, *after, MARKET) for before, after in pairwise(ends)]
    whole = compute_earnings(*ends[0], *ends[-1], MARKET)

    total = sum_earnings(steps)
    assert total[:7] == whole[:7]
    assert whole.earnings == whole.realised + whole.unrealised_change
    assert whole.end_value == whole.start_value + whole.contributions - whole.withdrawals + whole.earnings_net


@settings(deadline=None)
@given(st.sampled_from([4, 13, 26, 52]), st.integers(1, 100_000), st.integers(0, 10_000), st.lists(minutes, min_size=2))
def test_earnings_at_constant_rates_are_never_negative(weeks, units, rate_milli, instants):
    """Whatever the two instants: nights, weekends, holidays, the maturity."""
    quotes = (Quote(4, rate_milli, rate_milli),)
    market = Market(MARKET.calendars, securities(), auctions(), rates=[DailyRates(FIRST, quotes)])
    bill = market.on_the_run(weeks, FIRST)
    state = PocketState(((bill.cusip, units),), earnings_basis=units * 9_900)
    ends = [et_instant(FIRST, 0) + timedelta(minutes=each) for each in sorted(instants)]
    steps = [compute_earnings(state, start, state, end, market) for start, end in pairwise(ends)]
    assert min(each.earnings for each in steps) >= 0
    assert sum(each.earnings for each in steps) == compute_earnings(state, ends[0], state, ends[-1], market).earnings


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([4, 13, 26, 52]), st.integers(1, 100_000)), max_size=6),
    st.integers(0, 10_000),
    st.integers(0, 50_000),
    st.integers(0, 60 * 24 * 20),
)
def test_the_value_slope_leads_every_portfolio_to_par(held, cash, fees, minutes):
    at = et_instant(FIRST, 12) + timedelta(minutes=minutes)
    positions = [(MARKET.on_the_run(weeks, FIRST).cusip, units, units // 2) for weeks, units in held]

    valued = value_positions(positions, cash, fees, market=MARKET, at=at)

    assert valued.total_value == cash + sum(item.market_value for item in valued.positions)
    assert 0 <= valued.liquidation_value_t0 <= max(0, valued.liquidation_value_t1)
    assert valued.pricing_timestamp <= at
    exact = sum(
        Decimal(10_000 * item.units - item.market_value) / Decimal(MARKET.tick_prices(at)[item.cusip].seconds_left)
        for item in valued.positions
        if MARKET.tick_prices(at)[item.cusip].seconds_left
    )
    assert abs(valued.appreciation_per_second - exact) <= Decimal("0.000000000001")


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 4)), max_size=30))
def test_fees_charged_monthly_add_up_to_the_accrued_fee(values):
    accrued = charged = 0
    for worth, days in values:
        accrued += accrue_fee(worth, 25, days)
        cents, accrued = split_accrued_fee(accrued)
        charged += cents

    assert charged * ACCRUED_UNITS_PER_CENT + accrued == sum(worth * 25 * days for worth, days in values)
    assert 0 <= accrued < ACCRUED_UNITS_PER_CENT
