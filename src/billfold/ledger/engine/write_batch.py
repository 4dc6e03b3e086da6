"""Writes a batch to the database: one call for the ledger, one COPY per table.

Each customer gets one chain entry per commit. Its hash covers the entry before it and every row of this commit; a
checksum per row lets `verify` name a damaged row. `encode_chained_rows` is also what `verify` uses to recompute it.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.ledger.book import postings as book_postings
from billfold.ledger.book.book import Book, refresh_due
from billfold.ledger.book.draft import PocketBook, PocketColumns, PocketCounters
from billfold.ledger.book.pocket_versions import PocketVersion, known_at, version_of
from billfold.ledger.book.postings import StoredEntry
from billfold.ledger.customers import DirectoryEntry
from billfold.ledger.engine.load_books import serialize_book
from billfold.ledger.types import ScheduledJob
from billfold.platform.calendars import Calendars
from billfold.platform.clock import ClockState
from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import SHARD_BATCH, SHARD_PARTS, shard_column
from billfold.platform.database.former_rows import as_json
from billfold.platform.database.rows import Row

# The shards of a table share its sequence for row numbers.
_NUMBERS = """
SELECT array_agg(nextval('transaction_written_no_seq')) FROM generate_series(1, $1)
"""
# Citus prepares a connection on which it has read before only if a statement other than COPY wrote to it.
_PREPARE = "UPDATE ledger_head SET version = version WHERE customer_id = $1 AND version < 0"

Parts = dict[str, list[tuple[Any, ...]]]
"""Rows by part."""


async def write_shards(conn: Connection, parts_by_shard: Sequence[Parts]) -> None:
    """Write the parts of each shard, in the order of the shards."""
    await _number_transactions(conn, parts_by_shard)
    for parts in parts_by_shard:
        if entries := parts.get(StoredEntry.table):
            parts[StoredEntry.table] = [(*entry, _as_text(postings)) for *entry, postings in entries]
    widths = {part: len(rows[0]) for parts in parts_by_shard for part, rows in parts.items() if rows}
    columns = [shard_column(part, n) for part, width in widths.items() for n in range(1, width + 1)]
    records = [_record(parts, widths) for parts in parts_by_shard]
    await conn.copy_records_to_table(SHARD_BATCH, records=records, columns=["customer_id", *columns])
    # One statement for several shards would wait for those of other batches, until they commit.
    await conn.executemany(_PREPARE, [(customer_id,) for customer_id, *_ in records])


async def _number_transactions(conn: Connection, parts_by_shard: Sequence[Parts]) -> None:
    count = sum(len(parts.get(book_postings.TransactionEntry.table, ())) for parts in parts_by_shard)
    if count:
        numbers = iter(await conn.fetchval(_NUMBERS, count))
        for parts in parts_by_shard:
            rows = parts.get(book_postings.TransactionEntry.table, ())
            parts[book_postings.TransactionEntry.table] = [(*row, next(numbers)) for row in rows]


def _record(parts: Parts, widths: Mapping[str, int]) -> list[Any]:
    """Return the row of one shard: a customer who lies in it, and the columns of its parts."""
    record: list[Any] = [parts["head"][0][0]]
    for part, width in widths.items():
        record.extend(zip(*rows, strict=True) if (rows := parts.get(part)) else [()] * width)
    return record


def _as_text(postings: Sequence[tuple[int, int, int, int, str]]) -> str:
    """Return packed postings as the database reads an array of them."""
    rows = [f'"({amount},{debit},{credit},{phase},{asset})"' for amount, debit, credit, phase, asset in postings]
    return f"{{{','.join(rows)}}}"


SINGLE_CALL_MAX_BOOKS = 60
"""Maximum number of books per call; COPY takes half the time per row for more."""

LEDGER_BOOK_TABLES = (
    "account",
    "journal_entry",
    "chain_entry",
    "trade",
    "transaction",
    "event",
    "command",
    "directory",
    "transfer",
    "card_authorization",
)
"""Tables that get rows in nearly every batch, in the order of the parameters of `ledger_book`."""

_APPLY = "SELECT ledger_apply($1, $2, $3, $4, $5)"
_BOOK = "SELECT ledger_book($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14), pocket_versions_add($15)"
_WITH_RESPONSE = ", response_keep({})"
_AT_CLOCK = " FROM clock_held_at({})"
_OF_BOOK = frozenset(LEDGER_BOOK_TABLES)

_SCHEDULE = "SELECT scheduled_job_set($1)"

_POCKET = PocketColumns.__struct_fields__
_UPSERT_POCKET = (
    f"INSERT INTO pocket (customer_id, {', '.join(_POCKET)})"
    f" VALUES ({', '.join(f'${n}' for n in range(1, len(_POCKET) + 2))})"
    " ON CONFLICT (customer_id, pocket_id) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in _POCKET)
)
# On one server the list of a partner's pockets is a view of them.
_LIST_POCKET = """
INSERT INTO partner_pocket (partner_id, customer_id, pocket_id, opened_at, status) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (partner_id, customer_id, pocket_id) DO UPDATE SET status = excluded.status
"""
_pocket_row: Callable[[PocketBook], tuple[Any, ...]] = attrgetter(*_POCKET)
_LISTED = ("partner_id", "customer_id", "pocket_id", "opened_at", "status")
_listed = itemgetter(*map(("customer_id", *_POCKET).index, _LISTED))
_counters: Callable[[PocketBook], tuple[Any, ...]] = attrgetter(*PocketCounters.__struct_fields__)

_packed: Callable[[tuple[Any, ...]], tuple[Any, ...]] = itemgetter(
    *map(book_postings.Posting.__struct_fields__.index, ("amount", "debit", "credit", "phase", "asset"))
)

_Tuples = dict[type[Row], list[tuple[Any, ...]]]

_pack = msgspec.msgpack.Encoder().encode


def encode_chained_rows(rows: Iterable[Sequence[Any]]) -> list[bytes]:
    """Return the bytes of each row that the chain covers."""
    return list(map(_pack, rows))


def chain_hash(previous: bytes, encoded: list[bytes]) -> tuple[bytes, bytes]:
    """Return the next hash after `previous`, and one CRC-32 (4 bytes) per row."""
    row_checksums = struct.pack(f">{len(encoded)}I", *map(zlib.crc32, encoded))
    return hashlib.sha256(previous + b"".join(encoded)).digest(), row_checksums


class _Batch(NamedTuple):
    """The writes of several books: heads, lots, pocket counters, jobs, new rows by class and whole pockets."""

    heads: list[tuple[Any, ...]]
    bases: list[tuple[Any, ...]]
    counters: list[tuple[Any, ...]]
    jobs: list[ScheduledJob]
    rows: _Tuples
    pockets: list[tuple[Any, ...]]


def fits_one_call(books: Sequence[Book]) -> bool:
    """Tell whether `ledger_book` writes all of these drafts, so that no transaction has to be begun and committed."""
    kinds = {kind for book in books for kind, _ in book.draft} - {book_postings.Posting, ScheduledJob}
    is_of_rows = all(getattr(kind, "table", None) in _OF_BOOK for kind in kinds)
    return is_of_rows and not any(book.draft.changed_pockets for book in books)


@cache
def _book_statement(response: int, clock: int) -> str:
    """Return the statement with so many parameters of a response and of a clock after those of the ledger."""
    first = 6 + len(LEDGER_BOOK_TABLES)
    kept = ", ".join(f"${first + n}" for n in range(response))
    anchors = ", ".join(f"${first + response + n}" for n in range(clock))
    return _BOOK + (_WITH_RESPONSE.format(kept) if kept else "") + (_AT_CLOCK.format(anchors) if anchors else "")


async def write_books(
    conn: Connection,
    books: Sequence[Book],
    calendars: Calendars,
    shards: Mapping[UUID, int] | None = None,
    clock: ClockState | None = None,
    response: tuple[Any, ...] | None = None,
    *,
    now: datetime,
) -> None:
    """Write the drafts of these books. After COMMIT call `reset_drafts`. `shards` are those of a distributed bank.

    A few books may come with the `response` to a request, to be kept.

    Raises SerializationError if another process has written one of the books since it was read, or if the `clock`, that
    of books which are not locked, was set.
    """
    if shards is None:
        batch = _batch_of(books, calendars, now)
        await _write(conn, batch, clock, response)
        pockets = batch.pockets
    else:
        batches = [_batch_of(group, calendars, now) for _, group in sorted(_by_shard(books, shards).items())]
        pockets = await _write_by_shard(conn, batches)
    if pockets:
        await conn.executemany(_UPSERT_POCKET, pockets)
        if shards is not None:
            await conn.executemany(_LIST_POCKET, map(_listed, pockets))
    await _write_changes(conn, books, now)


def _batch_of(books: Sequence[Book], calendars: Calendars, now: datetime) -> _Batch:
    heads: list[tuple[Any, ...]] = []
    rows_by_class: _Tuples = {}
    for book in books:
        rows = tuples_of(book)
        heads.append(append_chain_entry(book, rows, calendars))
        pack_postings(rows)
        for kind, tuples in rows.items():
            rows_by_class.setdefault(kind, []).extend(tuples)
    rows_by_class[PocketVersion] = [version_of(book, pocket, now) for book in books for pocket in _touched(book)]
    pocket_rows, counter_rows = _pocket_rows(books)
    jobs = [each for book in books for each in book.draft.rows_of(ScheduledJob)]
    return _Batch(heads, _bases(books), counter_rows, jobs, rows_by_class, pocket_rows)


async def _write(conn: Connection, batch: _Batch, clock: ClockState | None, response: tuple[Any, ...] | None) -> None:
    ledger, rows_by_class = (batch.heads, batch.bases, batch.counters, batch.jobs), batch.rows
    if len(batch.heads) <= SINGLE_CALL_MAX_BOOKS:
        tables = {kind.table: rows_by_class.pop(kind) for kind in [*rows_by_class] if kind.table in LEDGER_BOOK_TABLES}
        rows = [tables.get(table, ()) for table in LEDGER_BOOK_TABLES]
        rows.append(rows_by_class.pop(PocketVersion))
        anchors = () if clock is None else (clock.business_anchor, clock.wall_anchor, clock.frozen)
        kept = response or ()
        await conn.execute(_book_statement(len(kept), len(anchors)), *ledger, *rows, *kept, *anchors)
        await _copy(conn, rows_by_class)
    else:
        await _copy(conn, rows_by_class)
        await conn.execute(_APPLY, len(rows_by_class.get(StoredEntry, ())), *ledger)


def _by_shard(books: Iterable[Book], shards: Mapping[UUID, int]) -> dict[int, list[Book]]:
    by_shard: dict[int, list[Book]] = {}
    for book in books:
        by_shard.setdefault(shards[book.customer_id], []).append(book)
    return by_shard


async def _write_by_shard(conn: Connection, batches: Sequence[_Batch]) -> list[tuple[Any, ...]]:
    """Write new names, which tell a taken id, then the parts of each shard, then the rest.

    Returns the pockets that remain to be written.
    """
    elsewhere: _Tuples = {}
    parts_by_shard: list[Parts] = []
    for batch in batches:
        parts: Parts = {"head": batch.heads, "basis": batch.bases, "counters": batch.counters}
        for kind, rows in batch.rows.items():
            if kind.table in SHARD_PARTS:
                parts[kind.table] = rows
            else:
                elsewhere.setdefault(kind, []).extend(rows)
        parts_by_shard.append(parts)
    await _copy(conn, {DirectoryEntry: elsewhere.pop(DirectoryEntry, [])})
    await write_shards(conn, parts_by_shard)
    await _copy(conn, elsewhere)
    if jobs := [job for batch in batches for job in batch.jobs]:
        await conn.execute(_SCHEDULE, jobs)
    return [pocket for batch in batches for pocket in batch.pockets]


async def _write_changes(conn: Connection, books: Sequence[Book], now: datetime) -> None:
    """Write changes that are not new rows: retired lots, changes of pending rows after their former state."""
    retired = [lot for book in books for lot in book.draft.rows_of(book_postings.RetiredLot)]
    if retired:
        customers, numbers = zip(*retired, strict=True)
        await conn.execute("SELECT ledger_retire($1, $2)", customers, numbers)
    updates = _updates(books)
    until = {book.customer_id: known_at(book, now) for book in books}
    former: dict[type[Row], list[tuple[Any, ...]]] = {}
    for (row, names), changes in updates.items():
        if row.keeps_former is True or (row.keeps_former and not set(names).isdisjoint(row.keeps_former)):
            former.setdefault(row, []).extend((*change[:2], until[change[0]]) for change in changes)
    for row, changes in former.items():
        await conn.execute(_keep_statement(row), *zip(*changes, strict=True))
    for (row, names), changes in updates.items():
        await conn.executemany(_update_statement(row, names), changes)


def _updates(books: Sequence[Book]) -> dict[tuple[type[Row], tuple[str, ...]], list[tuple[Any, ...]]]:
    """Return customer, key and new values of each changed row, by its class and the changed columns.

    A row that changes more than once is written once, in its final state.
    """
    changed: dict[tuple[type[Row], UUID, UUID], dict[str, Any]] = {}
    for book in books:
        for row, key, columns in book.draft.rows_of(book_postings.Update):
            of_row = (row, book.customer_id, key if row.key_column else book.customer_id)
            changed[of_row] = changed.get(of_row, {}) | columns
    updates: dict[tuple[type[Row], tuple[str, ...]], list[tuple[Any, ...]]] = {}
    for (row, customer_id, key), columns in changed.items():
        names = tuple(sorted(columns))
        updates.setdefault((row, names), []).append((customer_id, key, *(columns[name] for name in names)))
    return updates


def _keep_statement(row: type[Row]) -> str:
    """Return the statement that keeps rows as they are, given by customers and keys, before changes at instants."""
    key = row.key_column or "customer_id"
    return f"""
INSERT INTO former_row (customer_id, kind, object_id, until, row)
SELECT t.customer_id, '{row.table}', t.{key}, k.until, {as_json("t", columns=row.keeps_former)}
  FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS k(customer_id, changed, until)
  JOIN {row.table} t ON t.customer_id = k.customer_id AND t.{key} = k.changed
    ON CONFLICT DO NOTHING"""


def _update_statement(row: type[Row], names: Sequence[str]) -> str:
    """Return the statement that updates these columns of a row. A row without a key is its customer's only one."""
    sets = ", ".join(f"{name} = ${n}" for n, name in enumerate(names, start=3))
    return f"UPDATE {row.table} SET {sets} WHERE customer_id = $1 AND {row.key_column or 'customer_id'} = $2"


async def _copy(conn: Connection, rows_by_class: _Tuples) -> None:
    for kind, rows in rows_by_class.items():
        columns = kind.__struct_fields__
        await conn.copy_records_to_table(kind.table, records=rows, columns=columns)


def tuples_of(book: Book) -> _Tuples:
    """Return the new rows of a book's draft in the form of the chain and the database."""
    return {kind: list(map(msgspec.structs.astuple, rows)) for kind, rows in book.draft if issubclass(kind, Row)}


def pack_postings(rows: _Tuples) -> None:
    """Insert the postings of each entry into it, in stored form."""
    packed: dict[int, list[tuple[Any, ...]]] = {entry[1]: [] for entry in rows.get(book_postings.JournalEntry, ())}
    for posting in rows.pop(book_postings.Posting, ()):
        packed[posting[1]].append(_packed(posting))
    if packed:
        rows[StoredEntry] = [(*entry, packed[entry[1]]) for entry in rows.pop(book_postings.JournalEntry)]


def append_chain_entry(book: Book, rows: _Tuples, calendars: Calendars) -> tuple[Any, ...]:
    """Add the chain entry of this commit to the rows; return the update of the head."""
    # The rows of a commit's commands do not record the order in which they ran.
    if book_postings.CommandEntry in rows:
        rows[book_postings.CommandEntry].sort(key=itemgetter(1))
    encoded: list[bytes] = []
    for kind in book_postings.CHAINED:
        if kind in rows:
            encoded += encode_chained_rows(rows[kind])
    book.chain, row_checksums = chain_hash(book.chain, encoded)
    number = book.version + 1
    entry = book_postings.ChainEntry(
        book.customer_id, number, book.entry_no, event_no=book.event_no, row_checksums=row_checksums, hash=book.chain
    )
    rows[book_postings.ChainEntry] = [msgspec.structs.astuple(entry)]
    book.due_at = refresh_due(book, calendars)
    journals, events = len(rows.get(book_postings.JournalEntry, ())), len(rows.get(book_postings.EventEntry, ()))
    return (
        book.customer_id,
        book.version,
        book.entry_no - journals,
        book.entry_no,
        book.event_no - events,
        book.event_no,
        book.account_no,
        book.booked_at,
        book.business_date,
        book.due_at,
        book.chain,
        serialize_book(book),
    )


def _bases(books: Sequence[Book]) -> list[tuple[Any, ...]]:
    """Return the bases of every lot that moved, after the batch."""
    bases: list[tuple[Any, ...]] = []
    for book in books:
        if book.draft.touched_lots:
            gone = {lot.account_no for lot in book.draft.rows_of(book_postings.RetiredLot)}
            bases += [
                (book.customer_id, lot.no, lot.asset, lot.tax_basis, lot.earnings_basis, lot.no not in gone)
                for lot in book.draft.touched_lots.values()
            ]
    return bases


def _pocket_rows(books: Sequence[Book]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return whole rows of pockets that are new or changed by command, counters of those that moved."""
    pocket_rows: list[tuple[Any, ...]] = []
    counter_rows: list[tuple[Any, ...]] = []
    for book in books:
        for pocket in _touched(book):
            if pocket.pocket_id in book.draft.changed_pockets:
                pocket_rows.append((book.customer_id, *_pocket_row(pocket)))
            else:
                counter_rows.append((book.customer_id, pocket.pocket_id, *_counters(pocket)))
    return pocket_rows, counter_rows


def _touched(book: Book) -> list[PocketBook]:
    return [book.pockets[key] for key in book.draft.touched_pockets if key in book.pockets]


def reset_drafts(books: Iterable[Book]) -> None:
    """Reset the drafts after a successful commit: these books now equal the database."""
    for book in books:
        book.version += 1
        book.reset_draft()
