"""The rows of the ledger: all rows of one customer in a commit, in the order of the chain."""

from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from billfold.ledger.types import AccountKind, Direction, JournalKind, TradeActivity, TransactionType
from billfold.platform.database.rows import Row

RESERVED, RELEASED = 1, 2
"""Phases of a posting that moves nothing: it reserves, or releases, an amount of the debited account."""


class JournalEntry(Row, frozen=True):
    """An atomic entry of the journal. `reverses` is the number of the entry that it reverses."""

    table = "journal_entry"

    customer_id: UUID
    entry_no: int
    kind: JournalKind
    command_id: UUID
    booked_at: datetime
    business_date: date
    effective_date: date
    settles_on: date
    reverses: int | None


class Posting(Row, frozen=True):
    """One debit and one credit of one asset, in cents or bills; the accounts by their numbers.

    The postings of an entry are numbered from 1 on. `phase` is 0, or RESERVED or RELEASED.
    """

    table = "posting"

    customer_id: UUID
    entry_no: int
    posting_no: int
    debit: int
    credit: int
    asset: str
    amount: int
    phase: int = 0


class StoredEntry(JournalEntry, frozen=True):
    """A journal entry as it is stored, containing its postings. A view `posting` shows them individually."""

    postings: list[tuple[int, int, int, int, str]]
    """Amount, debit, credit, phase and asset each, in the order of their numbers."""


class TradeEntry(Row, frozen=True):
    """Record one trade of one pocket in one bill; bases in cents are those of the units moved."""

    table = "trade"

    customer_id: UUID
    pocket_id: UUID
    entry_no: int
    trade_no: int
    trade_id: UUID
    partner_id: UUID
    activity: TradeActivity
    incoming: bool
    cusip: str
    units: int
    price_micros: int
    notional: int
    tax_basis: int
    earnings_basis: int
    traded_at: datetime
    book_date: date
    settles_on: date
    counter_pocket_id: UUID | None
    transfer_id: UUID | None


class TransactionEntry(Row, frozen=True):
    """A posting as the customer sees it; `details` and `remittance` are JSON text."""

    table = "transaction"

    customer_id: UUID
    pocket_id: UUID
    entry_no: int
    posting_no: int
    activity_id: UUID
    transaction_id: UUID
    partner_id: UUID
    type: TransactionType
    direction: Direction
    amount: int
    swept: bool
    title: str
    description: str
    booked_at: datetime
    business_date: date
    settles_at: datetime
    details: str
    remittance: str | None


class EventEntry(Row, frozen=True):
    """A numbered event of the customer; `payload` is JSON text."""

    table = "event"

    customer_id: UUID
    event_no: int
    event_id: UUID
    kind: str
    payload: str
    raised_at: datetime


class CommandEntry(Row, frozen=True):
    """A command and its outcome, which is JSON text."""

    table = "command"

    customer_id: UUID
    command_id: UUID
    caller: str
    key: UUID
    kind: str
    request_hash: bytes
    accepted: bool
    outcome: str
    version: int
    booked_at: datetime


CHAINED = (JournalEntry, Posting, TradeEntry, TransactionEntry, EventEntry, CommandEntry)
"""The rows that the chain covers, in the order in which they are hashed."""


class ChainEntry(Row, frozen=True):
    """One commit of the customer: a checksum per row, and the hash that covers them."""

    table = "chain_entry"

    customer_id: UUID
    version: int
    entry_no: int
    event_no: int
    row_checksums: bytes
    hash: bytes


class AccountEntry(Row, frozen=True):
    """An account that was opened; of a lot also the day on which its bills were acquired."""

    table = "account"

    customer_id: UUID
    account_no: int
    kind: AccountKind
    pocket_id: UUID | None
    asset: str
    acquired_on: date | None


class PocketSnapshot(Row, frozen=True, kw_only=True):
    """A pocket at the end of a date on which it moved; `positions` is JSON text."""

    table = "snapshot"

    customer_id: UUID
    pocket_id: UUID
    business_date: date
    entry_no: int
    cash: int
    positions: str
    earnings_basis: int
    inflow: int
    outflow: int
    fees: int
    realised: int


class RetiredLot(NamedTuple):
    """A lot of a bill that has matured: books no longer load it."""

    customer_id: UUID
    account_no: int


class Update(NamedTuple):
    """A change of columns of a stored row, found by the key of its class."""

    row: type[Row]
    key: UUID
    columns: dict[str, Any]


class Fingerprint(NamedTuple):
    """The fingerprint, kept in a command's outcome, of a row that changes later."""

    row: type[Row]
    key: UUID
    value: str
