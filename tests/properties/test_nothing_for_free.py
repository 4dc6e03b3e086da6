"""A planner that is greedy for profit finds none: whatever it orders, no more can be taken out than came in.

It owns customers with pockets of every term and tries each order that it can give, keeps the best one, and continues
from there. What it could take out today is the sum of what every pocket could pay at once, and what it has taken.
"""

from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import permutations
from random import Random
from typing import Any

import pytest
from tests.fixtures.teller import Customers
from tests.simulation.memory_bank import MemoryBank

from billfold.bills import market_data
from billfold.bills.rules.issue_calendar import TERMS
from billfold.bills.rules.market import Market
from billfold.bills.types import DailyRates, Quote
from billfold.ledger.book.postings import TradeEntry
from billfold.ledger.context import BankPolicy, NoScreening
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant
from billfold.platform.errors import BillfoldError
from billfold.platform.money import PRICE_PAR_MICROS
from billfold.treasury.rules.withdraw import payable_cents

MILLION = 1_000_000_00
WEEKS = (4, 13, 52)
DEPTH = 4
IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")


CALENDARS = Calendars()
REAL = Market.packaged(CALENDARS)


def market_of(*milli):
    """Return a market of these rates for 4, 13 and 52 weeks on every day, in thousandths of a percent."""
    quotes = tuple(Quote(weeks, each, each) for weeks, each in zip(WEEKS, milli, strict=True))
    rates = [DailyRates(date(2024, 1, 2), quotes)]
    return Market(CALENDARS, market_data.securities(), market_data.auctions(), rates=rates)


WORLDS = {
    "a quiet morning": (REAL, et_instant(date(2025, 6, 2), 9), 0),
    "after the close": (REAL, et_instant(date(2025, 6, 5), 17, 1), 0),
    "a Saturday": (REAL, et_instant(date(2025, 6, 7), 12), 0),
    "before Labor Day, inverted": (REAL, et_instant(date(2024, 8, 30), 11), 0),
    "after the close before Labor Day, inverted": (REAL, et_instant(date(2024, 8, 30), 17, 30), 0),
    "with a haircut": (REAL, et_instant(date(2025, 6, 5), 17, 1), 3),
    "no rates": (market_of(0, 0, 0), et_instant(date(2025, 6, 5), 11), 0),
    "negative rates": (market_of(-5_000, -5_000, -5_000), et_instant(date(2025, 6, 6), 11), 0),
    "negative rates after the close": (market_of(-5_000, -500, 200), et_instant(date(2025, 6, 6), 18), 2),
    "rates that cross zero": (market_of(-3_000, 0, 4_000), et_instant(date(2025, 7, 3), 11), 0),
    "steeply inverted": (market_of(9_000, 5_000, 1_000), et_instant(date(2025, 7, 3), 11), 0),
    "steeply inverted after the close": (market_of(9_000, 5_000, 1_000), et_instant(date(2025, 7, 3), 18), 0),
    "steep": (market_of(100, 4_000, 9_500), et_instant(date(2025, 7, 3), 11), 0),
}


class Planner(Customers):
    """Two customers, the first with a pocket of every term."""

    def __init__(self, market: Market, now: datetime, haircut_bps: int):
        terms = BankPolicy(routing_number="091000019", screening=NoScreening(), haircut_bps=haircut_bps)
        began = et_instant(date(2024, 8, 1), 10)
        self.bank, self.count = MemoryBank(market, CALENDARS, terms, seed=b"planner", now=began), 0
        anna, bert = self.new_customer("Anna"), self.new_customer("Bert")
        self.own = [self.new_pocket(anna, weeks=weeks, reinvest=weeks) for weeks in WEEKS]
        self.places = [*self.own, self.new_pocket(bert)]
        self.bank.advance(now)
        self.receive_money(self.places[0], MILLION)

    def orders(self):
        """Every order that may pay: all, or part, from each pocket to each other, in cash or in kind."""
        for origin, there in permutations(self.places, 2):
            within = origin.customer == there.customer
            for cents in (None, 99_99, 10_000_00):
                yield origin, there, cents, TransferOrder()
            if within:
                yield origin, there, None, IN_KIND

    def give(self, order):
        """Carry an order out; one that is refused moves nothing."""
        origin, there, cents, how = order
        try:
            self.transfer(origin, there, cents, order=how)
        except BillfoldError:
            return

    def worth(self):
        """Cents that all pockets together could pay today."""
        ctx = self.bank._moment()
        return sum(payable_cents(self.bank.books[at.customer].pockets[at.id], ctx) for at in self.places)

    @property
    def pricing_day(self):
        """The day whose rates apply now."""
        return CALENDARS.pricing_day(self.bank.now)

    @property
    def rounding(self):
        """Half a cent for every trade, in cents."""
        return (len(self.bank.tables[TradeEntry]) + 1) // 2


def replay(world, orders):
    planner = Planner(*WORLDS[world])
    for order in orders:
        planner.give(order)
    return planner


@pytest.mark.parametrize("world", WORLDS)
def test_a_greedy_planner_finds_no_arbitrage(world):
    begun = replay(world, [])
    assert begun.worth() <= MILLION
    orders: list[Any] = []
    for _ in range(DEPTH):
        tries = []
        for number, order in enumerate(begun.orders()):
            planner = replay(world, [*orders, order])
            assert planner.worth() <= begun.worth() + planner.rounding, (order, orders)
            tries.append((planner.worth(), -number, order))
        orders.append(max(tries)[2])


def test_prices_are_consistently_ordered_at_any_rate():
    """Same-day bid, next-day bid, ask and par do not cross, whatever the rates and the term.

    After the close a sale settles a day later than the day's ask, at which nothing is sold any more.
    """
    for milli in (-5_000, -1_000, -5, -1, 0, 1, 4, 5, 6, 100, 5_000, 20_000):
        market = market_of(milli, milli, milli)
        for day, hour in ((3, 11), (3, 18), (5, 3)):
            now = et_instant(date(2025, 7, day), hour)
            for weeks in TERMS:
                bill = market.on_the_run(weeks, CALENDARS.business_date(now))
                assert 0 < market.t0_bid(bill, now) <= market.t1_bid(bill, now) <= PRICE_PAR_MICROS
                if CALENDARS.may_invest(now):
                    assert market.t1_bid(bill, now) <= market.ask(bill, now) <= PRICE_PAR_MICROS


@pytest.mark.parametrize("milli", [(5_000, 5_000, 5_000), (9_000, 5_000, 1_000), (-1_000, 0, 1_000)])
@pytest.mark.parametrize("seed", range(4))
def test_the_total_value_of_pockets_grows_no_faster_than_the_best_bill(milli, seed):
    """At rates that do not change a bill grows by at most the highest rate of its lowest price a day."""
    planner, random = Planner(market_of(*milli), et_instant(date(2025, 7, 2), 11), 0), Random(seed)
    began = planner.pricing_day
    a_day = Fraction(max(milli), 360 * 100_000 - max(milli) * 366)
    for _ in range(60):
        planner.give(random.choice(list(planner.orders())))
        best = MILLION * (1 + a_day) ** (planner.pricing_day - began).days
        assert planner.worth() <= best + planner.rounding
        planner.bank.advance(planner.bank.now + timedelta(hours=random.choice((0, 1, 6, 6, 24))))
