"""The whole bank in memory: the same rules and the same planning, with lists as tables.

Dictionaries replace the database of the engine, with one command per commit; a run through Postgres with the same
commands must agree to the cent and to the last hash.
"""

from bisect import insort
from collections import Counter, defaultdict
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec
from tests.simulation.drafts import columns_of, fingerprinted, unwritten

from billfold.accounts.customers.commands import EnrolCustomer
from billfold.accounts.transactions.settlement import BankBooking
from billfold.bills.types import BillSettlement
from billfold.ledger.book.book import Book
from billfold.ledger.book.postings import (
    RESERVED,
    AccountEntry,
    ChainEntry,
    CommandEntry,
    JournalEntry,
    Posting,
    TradeEntry,
    TransactionEntry,
    Update,
)
from billfold.ledger.context import Context
from billfold.ledger.engine.engine import Engine
from billfold.ledger.engine.write_batch import append_chain_entry, reset_drafts, tuples_of
from billfold.ledger.scheduler import CatchUp, bank_customer_id
from billfold.payments.clearing.rules import RAILS, CloseBankDay, RailSettlement, RailTotals, SettlementBlock
from billfold.payments.crypto.chains import units_of
from billfold.payments.crypto.deposits.rules import CarriedUnits, CryptoDepositRow, DepositStatus
from billfold.payments.crypto.withdrawals.rules import WithdrawalRow
from billfold.payments.wires.commands import ReferencedWire, WireRow
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id
from billfold.treasury.rules.catch_up import catch_up
from billfold.wiring.open_bank import load_rules

load_rules()  # also in processes that pytest does not start

BlockKey = tuple[date, str, int, str]
"""settles_on, cusip, price_micros, side."""
CUSTOMERS_OWN = frozenset({"cash", "lot"})


class Planned:
    """A pending command in the form that the engine's planning expects."""

    def __init__(self, command):
        self.command = command
        self.command_id = command.command_id
        self.customers = tuple(dict.fromkeys(command.customers))
        self.answer = None


class Balance:
    """An account as stored in the database."""

    __slots__ = ("asset", "credits", "debits", "kind", "reserved")

    def __init__(self, kind, asset):
        self.kind, self.asset = kind, asset
        self.debits = self.credits = self.reserved = 0


class Rails:
    """Unsettled payments: (rail, settles_at, incoming, cents)."""

    def __init__(self):
        self.payments = []
        self._kinds = {}
        self._closing = datetime.max.replace(tzinfo=UTC)

    def learn(self, book):
        for row in book.draft.rows_of(TransactionEntry):
            rail = "CRYPTO" if "crypto_transfer_id" in row.details else row.type
            if rail in RAILS and row.swept:
                incoming = row.direction == "CREDIT"
                self.payments.append((rail, row.settles_at, incoming, row.amount))
        for row in book.draft.rows_of(RailSettlement):
            until = self._closing
            self.payments = [
                p for p in self.payments if p[0] != row.rail or et_date(p[1]) != row.settles_on or p[1] > until
            ]
        if book.role == "house":
            self._learn_of_house(book)

    def _learn_of_house(self, book):
        # An account that is empty for good leaves the book, not the ledger.
        self._kinds |= {row.account_no: row.kind for row in book.draft.rows_of(AccountEntry)}
        begun = {row.entry_no: row for row in book.draft.rows_of(JournalEntry)}
        for leg in book.draft.rows_of(Posting):
            journal, sides = begun[leg.entry_no], (self._kinds[leg.debit], self._kinds[leg.credit])
            rail = next((side for side in sides if side.startswith("rail:")), None)
            if rail is not None and journal.kind != "clearing":
                at = et_instant(journal.settles_on, 0)
                self.payments.append((rail[5:].upper(), at, sides[0] == rail, leg.amount))

    def until(self, day, closing):
        """Amounts that settle by the close of this day, by rail and date."""
        self._closing = closing
        sums: Counter[tuple[str, date, bool]] = Counter()
        for rail, settles_at, incoming, cents in self.payments:
            if settles_at <= closing:
                sums[rail, et_date(settles_at), incoming] += cents
        return tuple(
            RailTotals(on, rail, sums[rail, on, True], outflow=sums[rail, on, False])
            for rail, on in sorted({(rail, on) for rail, on, _ in sums})
        )

    def left(self, rail):
        """The expected balances of the accounts of this rail."""
        return sum(-p[3] if p[2] else p[3] for p in self.payments if p[0] == rail)


class Seen:
    """The rows that commands reference, as the tables would have them."""

    def __init__(self):
        self._all: defaultdict[UUID, dict[UUID, Any]] = defaultdict(dict)

    def of(self, customer_id):
        return dict(self._all[customer_id])

    def put(self, customer_id, object_id, shown):
        """Replace the referenced row with this id."""
        self._all[customer_id][object_id] = shown

    def learn(self, book):
        known = self._all[book.customer_id]
        known |= book.referenced
        self._learn_wires(known, book)
        for withdrawal in book.draft.rows_of(WithdrawalRow):
            known[withdrawal.withdrawal_id] = withdrawal
        for table, key, columns in book.draft.rows_of(Update):
            if table in {WithdrawalRow, CryptoDepositRow}:
                known[key] = msgspec.structs.replace(known[key], **columns)
                assert known[key] == book.referenced[key], "what later commands of a batch see"
        if book.draft.rows_of(CryptoDepositRow) or any(
            update.row is CryptoDepositRow for update in book.draft.rows_of(Update)
        ):
            carried = carried_of([row for row in known.values() if isinstance(row, CryptoDepositRow)])
            assert all(book.referenced.get(portal, units) == units for portal, units in carried.items())
            known |= carried
        kinds = {row.entry_no: row.kind for row in book.draft.rows_of(JournalEntry)}
        for row in book.draft.rows_of(TransactionEntry):
            if row.type in {"FEE", "CREDIT", "GENERIC"}:
                told = msgspec.json.decode(row.details)
                known[row.activity_id] = BankBooking(
                    row.activity_id,
                    row.pocket_id,
                    row.entry_no,
                    journal_kind=kinds[row.entry_no],
                    type=row.type,
                    direction=row.direction,
                    amount=row.amount,
                    cause=told.get("cause"),
                    is_corrected=False,
                )

    def _learn_wires(self, known, book):
        """Update the wires to their current rows, and which of them were returned."""
        for wire in book.draft.rows_of(WireRow):
            known[wire.wire_id] = ReferencedWire(wire, outstanding=wire.amount, booked_journal_no=wire.entry_no)
            if wire.original_wire_id is not None:
                original = known[wire.original_wire_id]
                known[wire.original_wire_id] = original._replace(outstanding=original.outstanding - wire.amount)
        for table, key, columns in book.draft.rows_of(Update):
            if table is WireRow:
                seen = known[key]
                known[key] = seen._replace(row=msgspec.structs.replace(seen.row, **columns))


def carried_of(deposits):
    """Return the unbooked remainders of each portal, by token."""
    carried: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
    for row in deposits:
        unbooked = int(row.units) - units_of(row.amount, row.decimals)
        counted = {DepositStatus.QUESTIONED: 0, DepositStatus.REORGED: min(unbooked, 0)}.get(row.status, unbooked)
        carried[row.portal_id][row.token] += counted
    return {portal_id: CarriedUnits(dict(by_token)) for portal_id, by_token in carried.items()}


class MemoryBank:
    """Books and tables of one bank in memory. `submit` responds like the engine."""

    def __init__(self, market, calendars, terms, seed, now):
        assert calendars is market.calendars
        self.market, self.terms, self.seed = market, terms, seed
        self.now: datetime = now
        self.books = {}
        self.tables = defaultdict(list)
        self.commands = {}
        self.balances = {}
        self.identities = set()
        self.links = {}
        self.totals: Counter[tuple[str, str]] = Counter()
        self.unsettled: Counter[tuple[BlockKey, str]] = Counter()
        self.under_way = Rails()
        self.seen = Seen()
        self._dues = []
        self._ctx = None
        no_pool: Any = None  # planning asks no database
        self._engine = Engine(
            no_pool,
            market=market,
            terms=terms,
            seed=seed,
            test_clock=True,
            references={},
            identifiers=(),
            catch_up=catch_up,
        )

    @property
    def calendars(self):
        return self.market.calendars

    # -- commands -----------------------------------------------------------------------

    def submit(self, command):
        """Execute a command in its own commit; raise its refusal."""
        job: Any = Planned(command)
        planned = False
        while not planned:
            ctx = self._moment()
            if isinstance(command, EnrolCustomer):
                self._new_head(command.customers[0], ctx)
            for customer in job.customers if command.references else ():
                self.books[customer].referenced = self.seen.of(customer)
            books = {c: self.books[c] for c in sorted(job.customers) if c in self.books}
            earlier = self.commands.get((job.customers[0], job.command_id))
            known = {} if earlier is None else {job.command_id: earlier}
            before = {key: columns_of(pocket) for book in books.values() for key, pocket in book.pockets.items()}
            planned = self._engine._plan(job, books, known, ctx=ctx)
            changed = [book for book in books.values() if book.is_changed()]
            for book in books.values():
                assert not book.draft.banks, "a journal entry is open"
                assert not list(unwritten(book, before))
            for book in changed:
                self._write(book)
            reset_drafts(changed)
        if isinstance(job.answer, BillfoldError):
            raise job.answer
        return job.answer

    def _moment(self):
        """Return the context of this instant, with its cached prices."""
        if self._ctx is None or self._ctx.now != self.now:
            self._ctx = Context(
                now=self.now, market=self.market, calendars=self.calendars, terms=self.terms, seed=self.seed
            )
        return self._ctx

    def _new_head(self, customer_id, ctx):
        if customer_id not in self.books:
            self.books[customer_id] = Book(
                customer_id=customer_id,
                version=0,
                entry_no=0,
                event_no=0,
                account_no=0,
                booked_at=ctx.now,
                business_date=ctx.business_date,
                chain=b"",
            )

    def _write(self, book):
        was_due = book.due_at
        rows = tuples_of(book)
        head = append_chain_entry(book, rows, self.calendars)
        (link,) = rows[ChainEntry]
        assert head[3] - head[2] == len(book.draft.rows_of(JournalEntry))
        if book.due_at != was_due and book.due_at is not None:
            insort(self._dues, (book.due_at, book.customer_id.bytes))
        self.links[book.customer_id, link[1]] = link
        for kind, made in book.draft:
            self.tables[kind] += made
        decided = book.draft.rows_of(CommandEntry)
        proved = [each for row in decided for each in msgspec.json.decode(row.outcome).get("proves", {}).values()]
        assert not decided or {str(key) for key in fingerprinted(book)} <= {key for rows in proved for key in rows}
        for row in decided:
            self.commands[row.customer_id, row.command_id] = {
                "command_id": row.command_id,
                "request_hash": row.request_hash,
                "accepted": row.accepted,
                "outcome": row.outcome,
            }
        self._fold(book)
        self.seen.learn(book)
        self.under_way.learn(book)
        for row in book.draft.rows_of(TradeEntry):
            if row.activity in {"BUY", "SELL", "MATURITY"}:
                block = (row.settles_on, row.cusip, row.price_micros, row.activity)
                self.unsettled[block, "units"] += row.units
                self.unsettled[block, "cents"] += row.notional
        for row in book.draft.rows_of(BillSettlement):
            block = (row.settles_on, row.cusip, row.price_micros, row.side)
            self.unsettled[block, "units"] -= row.units
            self.unsettled[block, "cents"] -= row.customers_cents
        self.unsettled = +self.unsettled if book.draft.rows_of(BillSettlement) else self.unsettled

    def _fold(self, book):
        """Apply a batch like `ledger_apply`, and check its constraints."""
        customer_id = book.customer_id
        for account in book.draft.rows_of(AccountEntry):
            key = customer_id, account.account_no
            identity = customer_id, account.kind, account.pocket_id, account.asset, account.acquired_on
            assert key not in self.balances
            assert identity not in self.identities
            self.identities.add(identity)
            self.balances[key] = Balance(account.kind, account.asset)
        touched = set()
        for posting in book.draft.rows_of(Posting):
            debit = self.balances[customer_id, posting.debit]
            credit = self.balances[customer_id, posting.credit]
            asset, amount = posting.asset, posting.amount
            assert asset == debit.asset == credit.asset
            assert amount > 0
            touched |= {debit, credit}
            if posting.phase:
                debit.reserved += amount if posting.phase == RESERVED else -amount
                continue
            debit.debits += amount
            credit.credits += amount
            self.totals[debit.kind, asset] -= amount
            self.totals[credit.kind, asset] += amount
        for account in touched:
            assert account.reserved >= 0
            assert account.kind != "bank" or account.debits == account.credits
            assert account.kind not in CUSTOMERS_OWN or account.credits - account.debits >= account.reserved

    # -- time ---------------------------------------------------------------------------

    def advance(self, to):
        """Advance to an instant through all due instants on the way, like the clock."""
        while (due := self._next_due()) is not None and due <= to:
            self.now = max(due, self.now)
            self._catch_up()
            self._close_bank_days()
        self.now = max(to, self.now)

    def _next_due(self):
        while self._dues:
            due, customer = self._dues[0]
            book = self._by_bytes(customer)
            if book.due_at == due:
                return due
            self._dues.pop(0)
        return None

    def _by_bytes(self, customer):
        return self.books[UUID(bytes=customer)]

    def _catch_up(self):
        house = bank_customer_id(self.seed)
        while True:
            due = [
                book.customer_id
                for book in self.books.values()
                if book.due_at is not None and book.due_at <= self.now and book.customer_id != house
            ]
            if not due:
                return
            for customer in due:
                self.submit(CatchUp(caller="due", key=customer, customers=(customer,)))

    def _close_bank_days(self):
        house = bank_customer_id(self.seed)
        book = self.books.get(house)
        while book is not None and book.due_at is not None and book.due_at <= self.now:
            day = book.business_date
            self.submit(
                CloseBankDay(
                    caller="house",
                    key=command_id("house-day", day.isoformat()),
                    customers=(house,),
                    day=day,
                    blocks=self._blocks(day),
                    clearings=self.under_way.until(day, self.calendars.closes_at(day)),
                )
            )

    def _blocks(self, day):
        keys = sorted({block for block, _ in self.unsettled if block[0] <= day})
        return tuple(SettlementBlock(*key, self.unsettled[key, "units"], self.unsettled[key, "cents"]) for key in keys)
