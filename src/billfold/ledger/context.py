"""The context of rules besides books: the time, the market, calendars, ids, and the policy of the bank."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time
from typing import NamedTuple, Protocol
from uuid import UUID

import msgspec

from billfold.bills.rules.market import Market
from billfold.bills.rules.pricing import NO_BID, subtract_spread
from billfold.bills.types import Bill
from billfold.ledger.types import Agreements
from billfold.platform.calendars import Calendars, WireHours
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound
from billfold.platform.ids import IdSource


class Screening(Protocol):
    """Screens payments, payees and documents. Pure: the same input has the same result."""

    def stopped_wire(self, _amount: int | None, /) -> str | None:
        """Return why a wire of so many cents (None: the whole balance) is rejected."""
        return None

    def stops_card(self, _amount: int, /) -> bool:
        """Tell whether a payment of so many cents by card is suspected of fraud."""
        return False

    def unverifiable_name(self, _name: str, /) -> str | None:
        """Return why a counterparty of this name cannot be verified."""
        return None

    def invalid_file(self, _name: str | None, /) -> str | None:
        """Return why an uploaded file is not accepted as a document."""
        return None

    def deposit_amounts(self) -> tuple[int, int] | None:
        """Return the two micro-deposit amounts in cents; None to draw them at random."""
        return None


class NoScreening(Screening):
    """Accepts everything."""


class BankPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The bank's policy as far as it affects money: its settings, and its agreements."""

    aum_fee_bps: int = 25
    haircut_bps: int = 0
    stale_haircut_bps: int = 0
    """The further cost of a sale while prices are too old: payments never wait for them."""
    ach_credit_hold_days: int = 0
    screening: Screening = NoScreening()
    routing_number: str = ""
    ach_review_above_cents: int = 1_000_000_00
    ach_cutoff: time = time(12)
    wire_hours: WireHours = WireHours()
    wire_fee_cents: int = 0
    usdc_minimum_cents: int = 0
    correspondent: str = ""
    card_blocked_categories: frozenset[str] = frozenset()
    """Merchant categories at which no card of the bank pays."""
    dispute_days: int = 120
    """Days after a card payment in which it can be disputed."""
    dispute_credit_max_cents: int = 2_500_00
    """The maximum of what a customer has been credited provisionally without a decision of operators."""
    reversal_days: int = 60
    """Days after an on-us transfer in which it can be reversed."""
    reversal_request_days: int = 10
    """Banking days after which a request to reverse one expires."""
    delivers_bills: bool = True
    """True if the bank has a custodian that delivers bills to other institutions."""
    dealers: tuple[str, ...] = ()
    """The dealers with whom the bank covers its trades. Without any, every trade is assumed to be filled."""
    desk_max_slippage_bps: int = 5
    desk_quotes_wanted: int = 0
    desk_quote_seconds: int = 60
    agreements: Agreements = msgspec.field(default_factory=Agreements)
    """Published by an operator while the bank runs."""


class SaleTerms(NamedTuple):
    """The bid at which bills are sold (micro-dollars per $100), the day the trades settle, and that of the proceeds.

    A same-day sale is financed by the bank: the trade settles on the business date, which after the close is
    that of the next day, and the proceeds can be used at once.
    """

    price_of: Callable[[str], int]
    settles_on: date
    cash_on: date


class Context:
    """The context of a decision besides its books: now, market, calendars, ids, policy.

    Prices are looked up once per bill and moment. `at` returns the same context at another
    instant, for work that was due earlier.
    """

    def __init__(self, *, now: datetime, market: Market, calendars: Calendars, terms: BankPolicy, seed: bytes) -> None:
        self.now = now
        self.market = market
        self.calendars = calendars
        self.terms = terms
        self.seed = seed
        self.business_date: date = calendars.business_date(now)
        self.today: date = et_date(now)
        self.pricing_day: date = calendars.pricing_day(now)
        self.investing: bool = calendars.may_invest(now)
        self.settles_on: date = market.settles_on(now)
        self.command_id: UUID = UUID(int=0)
        self.ids: IdSource = IdSource(seed, self.command_id)
        self._t0: dict[str, int] = {}
        self._t1: dict[str, int] = {}
        self._others: dict[datetime, Context] = {}
        self._offers: dict[int, tuple[Bill, int] | None] = {}

    def serve(self, command_id: UUID) -> None:
        """Derive ids from this command from now on."""
        self.command_id = command_id
        self.ids = IdSource(self.seed, command_id)

    def at(self, now: datetime) -> Context:
        """Return the same bank at another instant; prices looked up there are kept."""
        other = self._others.get(now)
        if other is None:
            other = self._others[now] = Context(
                now=now, market=self.market, calendars=self.calendars, terms=self.terms, seed=self.seed
            )
        return other

    def bill(self, cusip: str) -> Bill:
        """Return the bill of a CUSIP."""
        return self.market.bill(cusip)

    def t0_bid(self, cusip: str) -> int:
        """Return the bank's own bid for a bill now, micro-dollars per $100, settling today (T+0).

        Zero for a bill that has matured: it waits for its redemption.
        """
        price = self._t0.get(cusip)
        if price is None:
            bill, haircut = self._bill_to_sell(cusip), self.terms.haircut_bps + self._stale_bps
            price = self._t0[cusip] = subtract_spread(self.market.t0_bid(bill, self.now), haircut) if bill else NO_BID
        return price

    def t1_bid(self, cusip: str) -> int:
        """Return the dealers' bid for a bill now, micro-dollars per $100, settling on the next business day (T+1)."""
        price = self._t1.get(cusip)
        if price is None:
            bill = self._bill_to_sell(cusip)
            bid = self.market.t1_bid(bill, self.now) if bill else NO_BID
            price = self._t1[cusip] = subtract_spread(bid, self._stale_bps)
        return price

    @property
    def same_day(self) -> SaleTerms:
        """Return the terms of a sale for a payment that leaves today (T+0)."""
        return SaleTerms(self.t0_bid, self.business_date, self.pricing_day)

    @property
    def next_day(self) -> SaleTerms:
        """Return the terms of a sale for the next business day (T+1)."""
        return SaleTerms(self.t1_bid, self.settles_on, self.settles_on)

    def mark(self, cusip: str) -> int:
        """Return the price at which bills are moved now, micro-dollars per $100; zero for a bill that has matured."""
        bill = self.market.bill(cusip)
        return self.market.mark(bill, self.now) if self.now < self.market.matures_at(bill) else NO_BID

    def find_offer(self, weeks: int) -> tuple[Bill, int] | None:
        """Return the bill a strategy buys now, and its ask in micro-dollars per $100; None without current data."""
        if weeks not in self._offers:
            self._offers[weeks] = None
            with suppress(NotFound):
                if self.market.is_current(self.now):
                    bill = self.market.on_the_run(weeks, self.business_date)
                    self._offers[weeks] = (bill, self.market.ask(bill, self.now))
        return self._offers[weeks]

    def _bill_to_sell(self, cusip: str) -> Bill | None:
        bill = self.market.bill(cusip)
        return None if self.now >= self.market.matures_at(bill) else bill

    @property
    def _stale_bps(self) -> int:
        return 0 if self.market.is_current(self.now) else self.terms.stale_haircut_bps
