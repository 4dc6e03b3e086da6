"""What the log has of one commit."""

from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID


class Place(NamedTuple):
    """Where something stands: the commit of a customer, and its entry or event there."""

    customer_id: UUID
    version: int
    anchor: str = ""


class ChainLink(NamedTuple):
    """A commit's link of the hash chain: the last entry and the last event up to it."""

    version: int
    entry_no: int
    event_no: int
    hash: bytes


class Commit(NamedTuple):
    """A commit: its link and the one before, and where the next one is."""

    link: ChainLink
    previous: ChainLink | None
    has_next: bool


class EntryRow(NamedTuple):
    """A journal entry; `command_kind`, `caller` are None where the bank did it by itself. `reversed_by` is an entry."""

    entry_no: int
    kind: str
    command_id: UUID
    booked_at: datetime
    business_date: date
    effective_date: date
    settles_on: date
    reverses: int | None
    reversed_by: int | None
    command_kind: str | None
    caller: str | None


class PostingRow(NamedTuple):
    """A posting, its accounts in words. `amount` is in cents of USD, or in units of a bill. Phase 0 is posted."""

    entry_no: int
    posting_no: int
    debit: str
    credit: str
    debit_pocket: UUID | None
    credit_pocket: UUID | None
    asset: str
    amount: int
    phase: int


class BookedRow(NamedTuple):
    """A transaction or a trade of an entry."""

    entry_no: int
    object_id: UUID
    pocket_id: UUID
    what: str
    amount: int


class EventRow(NamedTuple):
    """An event of a commit."""

    event_no: int
    event_id: UUID
    kind: str
    raised_at: datetime
