"""Commands, the context in which rules decide, and how they refuse.

A command is a frozen struct. A rule is a plain function `rule(books, command, ctx)` that
changes books and returns the outcome, a JSON-ready dict from which the answer is rendered.
A rule that refuses raises `Refused`; a book that is not loaded raises `Missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from uuid import UUID

import msgspec

from billfold.ledger.types import (Origin)
from billfold.bills.rules.pricing import NO_BID, subtract_spread
from billfold.ledger.screening import (NoScreening, Screening)
from billfold.ledger.types import Agreements
from billfold.platform.calendars import WireHours
from billfold.platform.database.rows import Row
from billfold.platform.dates import et_date
from billfold.platform.errors import MarketDataStale
from billfold.platform.ids import IdSource, command_id

if TYPE_CHECKING:
    from billfold.bills.rules.market import Market
    from billfold.bills.types import Bill
    from billfold.ledger.book.book import Book
    from billfold.platform.calendars import Calendars

Outcome = dict[str, Any]
Books = Mapping[UUID, "Book"]
Rule = Callable[..., Outcome]
"""`rule(books, command, ctx)`. The parameters are left open: decoding a command from JSON resolves this type."""


class Reference(StrEnum):
    """What a rule may use besides the books of its customers."""

    ACH_ENTRY = "ach_entry"
    CARD = "card"
    CARD_AUTHORIZATION = "card_authorization"
    COUNTERPARTY = "counterparty"
    CUSTOMER_PROFILE = "customer_profile"
    CRYPTO_WITHDRAWAL = "crypto_withdrawal"
    CRYPTO_DEPOSIT = "crypto_deposit"
    DOCUMENT = "document"
    OPEN_ACH_ENTRIES = "open_ach_entries"
    OPEN_WIRES = "open_wires"
    OPEN_WITHDRAWALS = "open_withdrawals"
    SANCTIONS_HIT = "sanctions_hit"
    SECURITY_TRANSFER = "security_transfer"
    SUSPENSE_ITEM = "suspense_item"
    TRANSACTION = "transaction"
    WIRE = "wire"


class AuditedAction(NamedTuple):
    """What the audit log says of a command: `fields` are the fields of the command it shows."""

    resource: str
    verb: str | Callable[[Any], str]
    fields: tuple[str, ...] = ()


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all commands: caller, idempotency key, customers.

    `customers[0]` owns the command row. `request_hash` is the fingerprint of the request;
    the same (caller, key) with another fingerprint is refused. `origin` is the user or client,
    for the audit log; it decides nothing. `references` are ids of whatever else the rule must see:
    it finds them in `Book.referenced`.
    """

    rule: ClassVar[Rule]
    # How the objects behind `references` are read.
    reference_kinds: ClassVar[tuple[Reference, ...]] = ()
    # What the audit log says of it when a user or client requests it. Payments and ends of days are
    # proven by their own rows and the chain of the ledger.
    audit: ClassVar[AuditedAction | None] = None
    # Rows that change later and of which the outcome keeps a fingerprint.
    fingerprints: ClassVar[tuple[type[Row], ...]] = ()
    # Does the rule use portals, counterparties or pending transfers?
    needs_identifiers: ClassVar[bool] = True
    creates_customer: ClassVar[bool] = False
    # Does it leave a command row? Under the name of its class: earlier ones stay readable.
    is_recorded: ClassVar[bool] = True
    former_names: ClassVar[tuple[str, ...]] = ()

    caller: str
    key: UUID
    customers: tuple[UUID, ...]
    request_hash: bytes = b""
    origin: Origin | None = None
    references: tuple[UUID, ...] = ()

    @property
    def command_id(self) -> UUID:
        """The id of this command, derived from caller and key."""
        return command_id(self.caller, self.key)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names under which its rows stand in the database."""
        return (cls.__name__, *cls.former_names)

    def decide(self, books: Books, ctx: Context) -> Outcome:
        """Apply the rule to these books."""
        return type(self).rule(books, self, ctx)

    def audited_fields(self) -> dict[str, Any]:
        """Return the fields of this command that the audit log shows, as far as they are given."""
        names = self.audit.fields if self.audit else ()
        fields = {name: getattr(self, name) for name in names}
        return {name: value for name, value in fields.items() if value is not None}


def commands() -> Iterator[type[Command]]:
    """Every command whose module is loaded; a base of several commands has no rule."""
    waiting = Command.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if hasattr(kind, "rule"):
            yield kind


class Missing(Exception):
    """A rule needs a customer whose book is not loaded."""

    def __init__(self, customer_id: UUID) -> None:
        super().__init__(str(customer_id))
        self.customer_id = customer_id


class BankPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What of the bank decides money: its settings, and its agreements."""

    aum_fee_bps: int = 25
    haircut_bps: int = 0
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
    delivers_bills: bool = True
    """Whether the bank has a custodian that delivers bills to others."""
    agreements: Agreements = msgspec.field(default_factory=Agreements)
    """Published by an operator while the bank runs."""


class SaleTerms(NamedTuple):
    """The bid at which bills are sold (micro-dollars per $100), the day the trades settle, and that of the proceeds.

    A sale for the same day is carried by the bank: the trade settles on the business date, which after the close is
    that of the next day, and the proceeds can be used at once.
    """

    price_of: Callable[[str], int]
    settles_on: date
    cash_on: date


class Context:
    """What a rule decides by besides books: now, market, calendars, ids, terms.

    Prices are looked up once per bill and moment. `at` gives the same bank at another
    instant, for things that were due earlier.
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
        """Derive ids from this command from here on."""
        self.command_id = command_id
        self.ids = IdSource(self.seed, command_id)

    def at(self, now: datetime) -> Context:
        """The same bank at another instant; prices looked up there are kept."""
        other = self._others.get(now)
        if other is None:
            other = self._others[now] = Context(
                now=now, market=self.market, calendars=self.calendars, terms=self.terms, seed=self.seed
            )
        return other

    def bill(self, cusip: str) -> Bill:
        """The bill behind a CUSIP."""
        return self.market.bill(cusip)

    def t0_bid(self, cusip: str) -> int:
        """The bank's own bid for a bill now, micro-dollars per $100, settling today (T+0).

        Nothing for a bill that has matured: it waits for its redemption. Raises MarketDataStale, as `t1_bid`.
        """
        price = self._t0.get(cusip)
        if price is None:
            bill = self._bill_to_sell(cusip)
            price = subtract_spread(self.market.t0_bid(bill, self.now), self.terms.haircut_bps) if bill else NO_BID
            self._t0[cusip] = price
        return price

    def t1_bid(self, cusip: str) -> int:
        """The dealers' bid for a bill now, micro-dollars per $100, settling on the next business day (T+1)."""
        price = self._t1.get(cusip)
        if price is None:
            bill = self._bill_to_sell(cusip)
            price = self._t1[cusip] = self.market.t1_bid(bill, self.now) if bill else NO_BID
        return price

    @property
    def same_day(self) -> SaleTerms:
        """The terms of a sale for a payment that leaves today (T+0)."""
        return SaleTerms(self.t0_bid, self.business_date, self.pricing_day)

    @property
    def next_day(self) -> SaleTerms:
        """The terms of a sale for the next business day (T+1)."""
        return SaleTerms(self.t1_bid, self.settles_on, self.settles_on)

    def mark(self, cusip: str) -> int:
        """The price at which bills are moved now, micro-dollars per $100; nothing for a bill that has matured."""
        bill = self.market.bill(cusip)
        return self.market.mark(bill, self.now) if self.now < self.market.matures_at(bill) else NO_BID

    def find_offer(self, weeks: int) -> tuple[Bill, int] | None:
        """The bill a strategy buys now, and its ask in micro-dollars per $100; None without current market data."""
        if weeks not in self._offers:
            try:
                self.market.require_current(self.now)
                bill = self.market.on_the_run(weeks, self.business_date)
                self._offers[weeks] = (bill, self.market.ask(bill, self.now))
            except MarketDataStale:
                self._offers[weeks] = None
        return self._offers[weeks]

    def _bill_to_sell(self, cusip: str) -> Bill | None:
        bill = self.market.bill(cusip)
        if self.now >= self.market.matures_at(bill):
            return None
        self.market.require_current(self.now)
        return bill


def book_of(books: Books, customer_id: UUID) -> Book:
    """The customer's book. Raises Missing, so that the engine loads it and runs the rule again."""
    book = books.get(customer_id)
    if book is None:
        raise Missing(customer_id)
    return book
