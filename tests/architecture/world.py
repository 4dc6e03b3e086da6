"""Two customers and the house on books in memory, and what flows leave in their drafts.

No database and no engine: a flow is called as the engine calls it, and the draft is read.
"""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from tests.payments.wires.iso20022.wires import a_credit_transfer

from billfold.accounts.commands import EnrolCustomer, OpenPocket
from billfold.accounts.counterparties.types import CounterpartyStatus, Payee
from billfold.bills.rules.market import Market
from billfold.ledger.book.book import Book
from billfold.ledger.book.due import refresh_due
from billfold.ledger.book.rows import AccountEntry, Posting, RetiredLot, Update
from billfold.ledger.commands import BankPolicy, Context
from billfold.ledger.jobs.commands import CatchUp
from billfold.ledger.jobs.types import ScheduledJob
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.wires.commands import SendWire
from billfold.payments.wires.types import IncomingWireFields, ReferencedWire, WireRow
from billfold.platform.calendars import Calendars
from billfold.platform.database.rows import Row
from billfold.platform.dates import et_instant
from billfold.platform.ids import command_id, derive
from billfold.sandbox.simulated_screening import SimulatedScreening
from billfold.treasury.rules.catch_up import catch_up

CALENDARS = Calendars()
MARKET = Market.packaged(CALENDARS)
SEED = b"seed of the architecture tests"
PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000aaaa")
PAYEE = Payee(
    counterparty_id=UUID("5c2a0f6e-8a55-4a0a-9d0e-2f8f0f3f7b11"),
    type="wire",
    status=CounterpartyStatus.VERIFIED,
    counterparty_name={"type": "business", "business_name": "Beta LLC"},
    verification={"type": "supporting_documents"},
    details={"routing_number": "121182904", "identifier": "5647772655"},
)
ARRIVED = IncomingWireFields(
    uetr="8a562c67-ca16-48ba-b074-65581be6f011",
    imad="20250529SIMFED01000001",
    omad=None,
    sender_name="Acme",
    reference_number="W000000000001",
    instructions=None,
    end_to_end=None,
    message=msgspec.json.encode(a_credit_transfer()).decode(),
)
OPENING = datetime(2025, 5, 29, 13, tzinfo=UTC)

# What a draft holds besides rows, and the tables it goes to.
_TABLES = {RetiredLot: "account", ScheduledJob: "scheduled_job"}


class Moved(NamedTuple):
    """What one movement left in the draft: legs as `debit>credit`, tables in alphabet order."""

    legs: list[str]
    tables: list[str]


class World:
    """Two customers and the house, their books in memory, and a clock that is set."""

    def __init__(self, *, lien_days: int = 0) -> None:
        self.terms = BankPolicy(
            ach_credit_hold_days=lien_days, routing_number="061199992", screening=SimulatedScreening()
        )
        self.now = OPENING
        self.books: dict[UUID, Book] = {}
        self._names: dict[tuple[UUID, int], str] = {}
        self._count = 0

    # -- what happens -------------------------------------------------------------------

    def do(self, kind, *customers, **fields):
        """Carry out one command and return its outcome."""
        self._count += 1
        key = command_id("architecture", str(self._count))
        command = kind(caller="architecture", key=key, customers=customers, **fields)
        ctx = self.moment()
        for customer in customers:
            book = self.books.setdefault(customer, _empty_book(customer, ctx))
            catch_up(book, ctx)
            book.savepoint()
        ctx.serve(command.command_id)
        return command.decide(self.books, ctx)

    def at(self, day, hour=10):
        """Set the clock; what is due on the way is done by the next command."""
        self.now = et_instant(day, hour)

    def moment(self):
        """The context of now."""
        return Context(now=self.now, market=MARKET, calendars=CALENDARS, terms=self.terms, seed=SEED)

    def customer(self, name):
        """Enrol a customer and return his id."""
        customer = derive(SEED, command_id("architecture", name), 0)
        self.do(EnrolCustomer, customer, partner_id=PARTNER, role="customer", type="BUSINESS", name=name, profile={})
        return customer

    def pocket(self, customer, *, reinvest=4):
        """Open a pocket; return its id and that of its portal."""
        opened = self.do(
            OpenPocket, customer, partner_id=PARTNER, name="A pocket", deposit_weeks=4, reinvestment_weeks=reinvest
        )
        return UUID(opened["pocket_id"]), UUID(opened["portal_id"])

    def receive(self, customer, pocket, cents, rail="WIRE", **fields):
        """Let money arrive."""
        return self.do(
            ReceiveMoney,
            customer,
            rail=rail,
            portal_id=pocket[1],
            pocket_id=pocket[0],
            amount=cents,
            description="a deposit",
            details={},
            **fields,
        )

    def pay(self, payer, origin, payee, destination, cents, **fields):
        """Move money or bills between two pockets."""
        within = payer == payee
        return self.do(
            TransferOnUs,
            *((payer,) if within else (payer, payee)),
            transfer_id=None,
            type="INTERNAL_REALLOCATION" if within else "PEER_TO_PEER",
            from_pocket_id=origin[0],
            to_pocket_id=destination[0],
            amount=cents,
            partner_id=PARTNER,
            **fields,
        )

    def send_wire(self, customer, origin, cents):
        """Send a wire to a counterparty that the book has looked at."""
        self.books[customer].referenced = {PAYEE.counterparty_id: PAYEE}
        return self.do(
            SendWire, customer, wire_id=None, pocket_id=origin[0], amount=cents, counterparty_id=PAYEE.counterparty_id
        )

    def see_wire(self, customer, status):
        """Let the book look at the wire it drafted last, as it is later; return its id."""
        book = self.books[customer]
        row = msgspec.structs.replace(book.draft.rows_of(WireRow)[-1], status=status)
        self.forget()
        book.referenced = {row.wire_id: ReferencedWire(row, False, row.entry_no)}
        return row.wire_id

    def catch_up(self, customer):
        """Do what is due."""
        self.do(CatchUp, customer)

    # -- what it left --------------------------------------------------------------------

    def forget(self):
        """What was drafted so far is written: only what comes now is looked at."""
        for book in self.books.values():
            self._note_names(book)
            book.due_at = refresh_due(book, CALENDARS)
            book.reset_draft()

    def moved(self, *customers):
        """Return what the books of these customers, or of all, have drafted."""
        legs, tables = [], set()
        for customer in customers or self.books:
            book = self.books[customer]
            self._note_names(book)
            for row in book.draft.rows_of(Posting):
                debit, credit = (self._names[customer, no] for no in (row.debit, row.credit))
                legs.append(f"{debit}>{credit}")
            tables |= _tables_of(book)
        return Moved(legs, sorted(tables))

    def _note_names(self, book):
        for account in book.draft.rows_of(AccountEntry):
            self._names[book.customer_id, account.account_no] = account.kind


def _tables_of(book):
    draft = book.draft
    tables = {change.row.table for change in draft.rows_of(Update)}
    for kind, _ in draft:
        if issubclass(kind, Row):
            tables.add(kind.table)
        elif kind in _TABLES:
            tables.add(_TABLES[kind])
    if draft.rows_of(Posting):
        tables.add("account")
    return tables | ({"pocket"} if book.draft.touched_pockets else set())


def _empty_book(customer, ctx):
    return Book(
        customer_id=customer,
        version=0,
        entry_no=0,
        event_no=0,
        account_no=0,
        booked_at=ctx.now,
        business_date=ctx.business_date,
        chain=b"",
    )
