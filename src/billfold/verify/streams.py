"""Tables read in parallel in the order of customers, a few thousand rows in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record
from asyncpg.cursor import Cursor

from billfold.ledger.book import postings
from billfold.ledger.book.draft import PocketColumns
from billfold.ledger.book.pocket_versions import PocketVersion
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS
from billfold.platform.database.connection import Connection
from billfold.platform.database.rows import Row

_BATCH_SIZE = 2_000

LEDGER_HEAD_COLUMNS = (
    "customer_id, version, entry_no, event_no, account_no, booked_at, business_date, due_at, chain, serialized_book"
)
ACCOUNT_COLUMNS = (
    "customer_id, account_no, kind, pocket_id, asset, acquired_on, "
    "live, debits, credits, reserved, tax_basis, earnings_basis"
)
CUSTOMER_COLUMNS = (
    "customer_id, partner_id, role, name, account_status, opened_at, closed_at, closure_reason, agreement_version"
)


class Part(NamedTuple):
    """Customers by their ids, both included."""

    first: UUID = UUID(int=0)
    last: UUID = UUID(int=2**128 - 1)


class Table:
    """The columns of a table, its order within a customer, and its key, unless that is the order's."""

    def __init__(self, name: str, columns: Sequence[str], *order: str, key: Sequence[str] = ()) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.key = ("customer_id", *(key or order))
        self.number = self.columns.index(order[0]) if order else 0
        listed = ", ".join(("customer_id", *order))
        self.query = f"SELECT {', '.join(columns)} FROM {name} WHERE customer_id BETWEEN $1 AND $2 ORDER BY {listed}"

    @classmethod
    def of(cls, row: type[Row], *order: str, key: Sequence[str] = ()) -> Table:
        """Return the table of a row class."""
        return cls(row.table, row.__struct_fields__, *order, key=key)

    def key_of(self, row: Record) -> dict[str, object]:
        """Return the primary key of a row, by name."""
        return {name: row[name] for name in self.key}


LEDGER_HEADS = Table("ledger_head", LEDGER_HEAD_COLUMNS.split(", "))
CUSTOMERS = Table("customer", CUSTOMER_COLUMNS.split(", "))
ACCOUNTS = Table("account", ACCOUNT_COLUMNS.split(", "), "account_no")
POCKETS = Table("pocket", ("customer_id", *PocketColumns.__struct_fields__), "pocket_id")
CHAIN_ENTRIES = Table.of(postings.ChainEntry, "version")
JOURNAL_ENTRIES = Table.of(postings.JournalEntry, "entry_no")
POSTINGS = Table.of(postings.Posting, "entry_no", "posting_no")
TRADES = Table.of(postings.TradeEntry, "entry_no", "trade_no", "pocket_id")
TRANSACTIONS = Table.of(postings.TransactionEntry, "entry_no", "posting_no", "pocket_id")
EVENTS = Table.of(postings.EventEntry, "event_no")
COMMANDS = Table.of(postings.CommandEntry, "version", "command_id", key=("command_id",))
SNAPSHOTS = Table.of(
    postings.PocketSnapshot, "entry_no", "pocket_id", "business_date", key=("pocket_id", "business_date")
)
POCKET_VERSIONS = Table.of(PocketVersion, "version", "pocket_id", key=("pocket_id", "known_at", "version"))
HOLDS = Table("hold", ("customer_id", "hold_id", "pocket_id", "amount", "until", "status"), "hold_id")

CUSTOMER_TABLES = (
    CUSTOMERS,
    ACCOUNTS,
    POCKETS,
    HOLDS,
    CHAIN_ENTRIES,
    JOURNAL_ENTRIES,
    POSTINGS,
    TRADES,
    TRANSACTIONS,
    EVENTS,
    COMMANDS,
    SNAPSHOTS,
    POCKET_VERSIONS,
)


class TableReader:
    """A table from the first customer of a part to its last."""

    def __init__(self, table: Table, cursor: Cursor[Record]) -> None:
        self.table = table
        self.read = 0
        self._cursor = cursor
        self._rows: list[Record] = []
        self._next = 0
        self._ended = False

    @classmethod
    async def of(cls, conn: Connection, table: Table, part: Part) -> TableReader:
        """Begin to read a table in this transaction."""
        return cls(table, await conn.cursor(table.query, *part, timeout=STATEMENT_TIMEOUT_SECONDS))

    async def next(self) -> Record | None:
        """Return the next row, or None after the last."""
        if self._next == len(self._rows):
            await self._fetch()
        if self._next == len(self._rows):
            return None
        self._next += 1
        return self._rows[self._next - 1]

    async def skip_to(self, customer_id: UUID | None) -> Record | None:
        """Skip rows of customers before this one (None: of all); return the first of them."""
        skipped: Record | None = None
        while True:
            row = await self.next()
            if row is None:
                return skipped
            if customer_id is not None and row[0] >= customer_id:
                self._next -= 1
                return skipped
            skipped = row if skipped is None else skipped

    async def take(self, customer_id: UUID, through: object = None) -> list[Record]:
        """Return the customer's rows whose number is at most `through`; without it, all of them."""
        taken: list[Record] = []
        at = self.table.number
        while True:
            rows, first = self._rows, self._next
            last, end = first, len(self._rows)
            while last < end and rows[last][0] == customer_id:
                if through is not None and rows[last][at] > through:
                    break
                last += 1
            taken += rows[first:last]
            self._next = last
            if last < end or self._ended:
                return taken
            await self._fetch()

    async def drop(self, customer_id: UUID) -> None:
        """Skip the rest of this customer."""
        while (row := await self.next()) is not None:
            if row[0] != customer_id:
                self._next -= 1
                return

    async def _fetch(self) -> None:
        if self._ended:
            return
        self._rows = await self._cursor.fetch(_BATCH_SIZE, timeout=STATEMENT_TIMEOUT_SECONDS)
        self._next = 0
        self.read += len(self._rows)
        self._ended = len(self._rows) < _BATCH_SIZE
