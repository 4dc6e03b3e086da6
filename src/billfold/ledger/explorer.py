"""Queries of the log. Each uses the key of the log, however long it is; a commit is found by binary search."""

from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

from billfold.platform.database.connection import Connection
from billfold.platform.errors import NotFound
from billfold.platform.ids import group_of


class Place(NamedTuple):
    """A place in the log: the commit of a customer, and the entry or event in it."""

    customer_id: UUID
    version: int
    anchor: str = ""


class ChainLink(NamedTuple):
    """A commit's chain entry, with the last entry and the last event up to it."""

    version: int
    entry_no: int
    event_no: int
    hash: bytes


class Commit(NamedTuple):
    """A commit: its chain entry and the one before, and the place of the next one."""

    link: ChainLink
    previous: ChainLink | None
    has_next: bool


class EntryRow(NamedTuple):
    """A journal entry; `command_kind`, `caller` are None if the bank itself caused it. `reversed_by` is an entry."""

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
    """A posting with its accounts in words. `amount` is in cents of USD, or in units of a bill. Phase 0 is posted."""

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


SHOWN_MAX = 100
"""Maximum number of entries and events of a commit that are read."""
_POSTINGS_MAX = 1_000
_LINK = "SELECT version, entry_no, event_no, hash FROM chain_entry WHERE customer_id = $1"
_COMMIT = f"{_LINK} AND version BETWEEN $2::bigint - 1 AND $2::bigint + 1 ORDER BY version"
# The numbers of a chain only grow: the first commit that has reached a number is found by binary search.
_REACHED = """
WITH RECURSIVE half(low, high) AS (
  SELECT 1::bigint, version FROM ledger_head WHERE customer_id = $1
  UNION ALL
  SELECT CASE WHEN e.{number} >= $2 THEN low ELSE (low + high) / 2 + 1 END,
         CASE WHEN e.{number} >= $2 THEN (low + high) / 2 ELSE high END
    FROM half JOIN chain_entry e ON e.customer_id = $1 AND e.version = (low + high) / 2
   WHERE low < high)
SELECT e.version FROM half JOIN chain_entry e ON e.customer_id = $1 AND e.version = low
 WHERE low = high AND e.{number} >= $2
"""
_ENTRIES = f"""
SELECT j.entry_no, j.kind, j.command_id, j.booked_at, j.business_date, j.effective_date, j.settles_on, j.reverses,
       r.entry_no AS reversed_by, c.kind AS command_kind, c.caller
  FROM journal_entry j
  LEFT JOIN command c USING (customer_id, command_id)
  LEFT JOIN journal_entry r ON r.customer_id = j.customer_id AND r.reverses = j.entry_no
 WHERE j.customer_id = $1 AND j.entry_no > $2 AND j.entry_no <= $3 ORDER BY j.entry_no LIMIT {SHOWN_MAX}
"""
_ACCOUNT = "{side}.kind || CASE WHEN {side}.acquired_on IS NULL THEN '' ELSE ' of ' || {side}.acquired_on END"
_POSTINGS = f"""
SELECT p.entry_no, p.posting_no, {_ACCOUNT.format(side="d")}, {_ACCOUNT.format(side="c")}, d.pocket_id, c.pocket_id,
       p.asset, p.amount, p.phase
  FROM posting p
  JOIN account d ON d.customer_id = p.customer_id AND d.account_no = p.debit
  JOIN account c ON c.customer_id = p.customer_id AND c.account_no = p.credit
 WHERE p.customer_id = $1 AND p.entry_no > $2 AND p.entry_no <= $3 ORDER BY p.entry_no, p.posting_no
 LIMIT {_POSTINGS_MAX}
"""
_POCKETS = """
SELECT DISTINCT a.pocket_id FROM posting p JOIN account a ON a.customer_id = p.customer_id
   AND a.account_no IN (p.debit, p.credit) AND a.pocket_id IS NOT NULL
 WHERE p.customer_id = $1 AND p.entry_no > $2 AND p.entry_no <= $3
"""
_BOOKED = f"""
SELECT entry_no, activity_id, pocket_id, title, CASE direction WHEN 'CREDIT' THEN amount ELSE -amount END
  FROM transaction WHERE customer_id = $1 AND pocket_id = ANY($4) AND entry_no > $2 AND entry_no <= $3
 UNION ALL
SELECT entry_no, trade_id, pocket_id, initcap(activity) || ' of ' || units || ' ' || cusip, notional
  FROM trade WHERE customer_id = $1 AND pocket_id = ANY($4) AND entry_no > $2 AND entry_no <= $3
 LIMIT {_POSTINGS_MAX}
"""
_EVENTS = f"""
SELECT event_no, event_id, kind, raised_at FROM event
 WHERE customer_id = $1 AND event_no > $2 AND event_no <= $3 ORDER BY event_no LIMIT {SHOWN_MAX}
"""
_NAMED = "SELECT kind, customer_id, object_id FROM directory WHERE kind = ANY($1) AND value = $2"
_KINDS = ("customer", "pocket", "portal", "account", "network", "counterparty", "card", "wire", "transfer")
_CUSTOMER = "SELECT customer_id FROM customer WHERE customer_id = $1"
_COMMANDS_VERSION = "SELECT version FROM command WHERE customer_id = $1 AND command_id = $2"
_TRANSACTION = """
SELECT entry_no FROM transaction WHERE customer_id = $1 AND activity_id IN ($2, $3) ORDER BY entry_no LIMIT 1
"""


async def get_commit(conn: Connection, customer_id: UUID, version: int) -> Commit:
    """Return a commit with the chain entry before. Raises NotFound."""
    links = {row["version"]: ChainLink(*row) for row in await conn.fetch(_COMMIT, customer_id, version)}
    if version not in links:
        raise NotFound("There is no such commit.")
    return Commit(links[version], links.get(version - 1), version + 1 in links)


async def list_entries(conn: Connection, customer_id: UUID, after: int, last: int) -> list[EntryRow]:
    """Return the entries of a commit: those after one number up to another."""
    return [EntryRow(*row) for row in await conn.fetch(_ENTRIES, customer_id, after, last)]


async def list_postings(conn: Connection, customer_id: UUID, after: int, last: int) -> list[PostingRow]:
    """Return the postings of entries."""
    return [PostingRow(*row) for row in await conn.fetch(_POSTINGS, customer_id, after, last)]


async def list_booked(conn: Connection, customer_id: UUID, after: int, last: int) -> list[BookedRow]:
    """Return the transactions and the trades of entries."""
    pockets = [row["pocket_id"] for row in await conn.fetch(_POCKETS, customer_id, after, last)]
    return [BookedRow(*row) for row in await conn.fetch(_BOOKED, customer_id, after, last, pockets)]


async def list_events(conn: Connection, customer_id: UUID, after: int, last: int) -> list[EventRow]:
    """Return the events of a commit."""
    return [EventRow(*row) for row in await conn.fetch(_EVENTS, customer_id, after, last)]


async def find_owner(conn: Connection, text: str) -> tuple[str, UUID] | None:
    """Return the object of a name or an id, and its customer; None if no directory knows it."""
    row = await conn.fetchrow(_NAMED, list(_KINDS), text)
    return None if row is None else (row["kind"], row["customer_id"])


async def is_customer(conn: Connection, customer_id: UUID) -> bool:
    """Tell whether a customer exists; the bank itself counts as one here."""
    return await conn.fetchval(_CUSTOMER, customer_id) is not None


async def find_place(conn: Connection, customer_id: UUID, wanted: UUID) -> Place | None:
    """Return the commit of a customer's command or transaction by its id, or None."""
    version = await conn.fetchval(_COMMANDS_VERSION, customer_id, wanted)
    if version is not None:
        return Place(customer_id, version)
    entry_no = await conn.fetchval(_TRANSACTION, customer_id, wanted, group_of(wanted))
    return None if entry_no is None else await place_of(conn, customer_id, entry_no=entry_no)


async def place_of(
    conn: Connection, customer_id: UUID, *, entry_no: int | None = None, event_no: int | None = None
) -> Place | None:
    """Return the commit that has an entry, or an event, or None."""
    column, number = ("entry_no", entry_no) if event_no is None else ("event_no", event_no)
    if number is None or number < 1:
        return None
    version = await conn.fetchval(_REACHED.format(number=column), customer_id, number)
    return None if version is None else Place(customer_id, version, f"{column.removesuffix('_no')}-{number}")
