"""Loads books from the database: a handful of queries for any number of customers."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID
from zlib import crc32

import msgspec
from asyncpg import Record
from asyncpg.pgproto import pgproto

from billfold.bills.rules.market import Market
from billfold.ledger.book.book import Book, pocket_due
from billfold.ledger.book.draft import HOLDS_KEPT, Account, Lot, PocketBook, PocketColumns
from billfold.ledger.customers import CustomerStatus
from billfold.ledger.engine.pending_command import IdentifierLoader
from billfold.ledger.types import DERIVED_BALANCES
from billfold.platform.calendars import Calendars
from billfold.platform.clock import ClockState
from billfold.platform.database.business_clock import HOLD_CLOCK, clock_of_row, read_clock
from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import HEADS_LOCKED
from billfold.platform.database.pool import uuid_array

SERIALIZATION_VERSION = 5
"""Increases with every change of the fields below, of `Account`, `Lot` or `PocketBook`."""
_CHECKSUM_BYTES = 4
_PARTNERS_MAX = 1_000


class SerializedBook(msgspec.Struct, array_like=True, eq=False):
    """All of a book but its head, its names and its draft."""

    layout: int
    partner_id: UUID | None
    name: str
    account_status: CustomerStatus
    role: str
    agreement_version: str | None
    pockets: list[PocketBook]
    house: list[Account]


_encode = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_decode = msgspec.msgpack.Decoder(SerializedBook).decode


def serialize_book(book: Book) -> bytes:
    """Return a book as of its written draft, after a CRC-32 (4 bytes).

    Holds that have expired by the book's time are left out, and balances that no row stores.
    """
    pockets = list(book.pockets.values())
    for pocket in pockets:
        if pocket.liens:
            pocket.liens = [lien for lien in pocket.liens if lien[1] > book.booked_at - HOLDS_KEPT]
    for account in book.house.values():
        if account.kind in DERIVED_BALANCES:
            account.balance = 0
    encoded = _encode(
        SerializedBook(
            SERIALIZATION_VERSION,
            book.partner_id,
            book.name,
            account_status=book.account_status,
            role=book.role,
            agreement_version=book.agreement_version,
            pockets=pockets,
            house=list(book.house.values()),
        )
    )
    return crc32(encoded).to_bytes(_CHECKSUM_BYTES) + encoded


def is_intact(raw: bytes) -> bool:
    """Return whether this image is undamaged."""
    return crc32(raw[_CHECKSUM_BYTES:]).to_bytes(_CHECKSUM_BYTES) == raw[:_CHECKSUM_BYTES]


def deserialize_book(raw: bytes | None) -> SerializedBook | None:
    """Return the image, or None if this code cannot read it."""
    if not raw or not is_intact(raw):
        return None
    try:
        serialized = _decode(raw[_CHECKSUM_BYTES:])
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return serialized if serialized.layout == SERIALIZATION_VERSION else None


def restore_book(book: Book, serialized: SerializedBook) -> None:
    """Fill a book from its image."""
    if serialized.partner_id is not None:
        book.partner_id = _partner_id(serialized.partner_id)
    book.name, book.account_status, book.role = (serialized.name, serialized.account_status, serialized.role)
    book.agreement_version = serialized.agreement_version
    for account in serialized.house:
        book.house[account.kind + account.asset] = account
    for pocket in serialized.pockets:
        # The driver's own UUIDs compare several times as fast.
        pocket.pocket_id = pgproto.UUID(pocket.pocket_id.bytes)
        pocket.partner_id = _partner_id(pocket.partner_id)
        book.pockets[pocket.pocket_id] = pocket


@lru_cache(_PARTNERS_MAX)
def _partner_id(partner_id: UUID) -> UUID:
    """Return the id as the driver's type: one object for all books of a partner."""
    return pgproto.UUID(partner_id.bytes)


_HEADS = """
SELECT h.customer_id, h.version, h.entry_no, h.event_no, h.account_no, h.booked_at,
       h.business_date, h.due_at, h.chain, h.serialized_book{clock}
  FROM ledger_head h{and_clock} WHERE h.customer_id = ANY((SELECT $1::text::uuid[])::uuid[])
 ORDER BY h.customer_id
"""
READ_HEADS = _HEADS.format(clock="", and_clock="")
# The clock is locked before the first head: heads are locked once they are all joined and sorted.
_LOCK_HEADS = f"""
WITH clock_held AS MATERIALIZED ({HOLD_CLOCK})
{_HEADS.format(clock=", c.business_anchor, c.wall_anchor, c.frozen", and_clock=" CROSS JOIN clock_held c")}
   FOR UPDATE OF h
"""
_HEADS_WITH_CLOCK = _HEADS.format(
    clock=", c.business_anchor, c.wall_anchor, c.frozen", and_clock=" LEFT JOIN clock c ON true"
)
_LOCK_HEADS_BY_SHARD = f"""
SELECT customer_id, version, entry_no, event_no, account_no, booked_at, business_date, due_at, chain, serialized_book,
       shard
  FROM {HEADS_LOCKED}($1::text::uuid[])
"""
_NEW_HEADS = """
INSERT INTO ledger_head (customer_id, booked_at, business_date)
SELECT id, $2, $3 FROM unnest($1::uuid[]) AS id ON CONFLICT DO NOTHING
"""
_CUSTOMERS = """
SELECT customer_id, partner_id, role, name, account_status, agreement_version
  FROM customer WHERE customer_id = ANY($1::uuid[])
"""
_ACCOUNTS = """
SELECT customer_id, account_no, kind, pocket_id, asset, acquired_on, credits - debits AS balance,
       reserved, tax_basis, earnings_basis
  FROM account WHERE customer_id = ANY($1::uuid[]) AND live
"""
_POCKETS = f"""
SELECT customer_id, {", ".join(PocketColumns.__struct_fields__)}
  FROM pocket WHERE customer_id = ANY($1::uuid[])
"""
_HOLDS = """
SELECT customer_id, l.pocket_id, l.amount, l.until FROM hold l JOIN ledger_head h USING (customer_id)
 WHERE customer_id = ANY($1::uuid[]) AND (l.status IS NULL OR l.status = 'ACTIVE')
   AND l.until > h.booked_at - $2::interval
"""


async def insert_heads(conn: Connection, customers: Iterable[UUID], now: datetime, *, business_date: date) -> None:
    """Create a ledger head for each new customer."""
    await conn.execute(_NEW_HEADS, sorted(customers), now, business_date)


_LOCK_SECONDS: Final = 10.0
"""Maximum wait for other transactions: one that hangs must not hold up the other customers of a batch."""


async def lock_heads(
    conn: Connection, customers: Iterable[UUID], *, by_shard: bool
) -> tuple[Sequence[Record], ClockState | None]:
    """Lock the ledger heads of customers, in the order of their ids, and return them with the clock.

    The clock cannot be set until the transaction ends: the bank may close any day that has passed.
    `by_shard` is for a distributed bank, whose heads are locked in the order of their shards first.
    """
    if by_shard:
        clock = await read_clock(conn, hold=True)
        return await conn.fetch(_LOCK_HEADS_BY_SHARD, uuid_array(customers), timeout=_LOCK_SECONDS), clock
    heads = await conn.fetch(_LOCK_HEADS, uuid_array(customers), timeout=_LOCK_SECONDS)
    return heads, clock_of_row(heads[0]) if heads else await read_clock(conn, hold=True)


async def read_heads(conn: Connection, customers: Iterable[UUID]) -> tuple[Sequence[Record], ClockState | None]:
    """Return the ledger heads of customers, in the order of their ids, and the clock; nothing is locked.

    What is decided by them may be written only if they, and the clock, are still the same (`write_books`).
    """
    heads = await conn.fetch(_HEADS_WITH_CLOCK, uuid_array(customers))
    return heads, clock_of_row(heads[0]) if heads else await read_clock(conn)


async def load_books(
    conn: Connection, heads: Iterable[Record], market: Market, calendars: Calendars
) -> dict[UUID, Book]:
    """Return the books of these locked heads, with everything that decides money."""
    books: dict[UUID, Book] = {}
    without_serialized: dict[UUID, Book] = {}
    for head in heads:
        book = books[head["customer_id"]] = _book(head)
        serialized = deserialize_book(head["serialized_book"])
        if serialized is None:
            without_serialized[book.customer_id] = book
        else:
            restore_book(book, serialized)
    if without_serialized:
        await load_from_tables(conn, without_serialized, market)
    for book in books.values():
        for pocket in book.pockets.values():
            pocket.due_at = pocket_due(pocket, calendars)
    return books


async def load_from_tables(conn: Connection, books: dict[UUID, Book], market: Market) -> None:
    """Fill books whose heads carry no image from their rows, which are authoritative."""
    ids = list(books)
    for row in await conn.fetch(_CUSTOMERS, ids):
        _apply_customer(books[row["customer_id"]], row)
    for row in await conn.fetch(_POCKETS, ids):
        _apply_pocket(books, row)
    for row in await conn.fetch(_ACCOUNTS, ids):
        _apply_account(books[row["customer_id"]], row, market)
    for row in await conn.fetch(_HOLDS, ids, HOLDS_KEPT):
        pocket = books[row["customer_id"]].pockets[row["pocket_id"]]
        pocket.liens.append((row["amount"], row["until"]))


async def load_identifiers(conn: Connection, loaders: Iterable[IdentifierLoader], requested: Iterable[Book]) -> None:
    """Load data that only some commands use: portals, counterparties and pending transfers."""
    books = {book.customer_id: book for book in requested}
    for load in loaders:
        await load(conn, books)
    for book in books.values():
        book.references_loaded = True


def _book(head: Record) -> Book:
    return Book(
        customer_id=head["customer_id"],
        version=head["version"],
        entry_no=head["entry_no"],
        event_no=head["event_no"],
        account_no=head["account_no"],
        booked_at=head["booked_at"],
        business_date=head["business_date"],
        chain=head["chain"],
    )


def _apply_customer(book: Book, row: Record) -> None:
    book.partner_id, book.name = row["partner_id"], row["name"]
    book.account_status, book.role = row["account_status"], row["role"]
    book.agreement_version = row["agreement_version"]


def _apply_pocket(books: dict[UUID, Book], row: Record) -> None:
    fields: dict[str, Any] = dict(row)
    book = books[fields.pop("customer_id")]
    book.pockets[row["pocket_id"]] = PocketBook(**fields)


def _apply_account(book: Book, row: Record, market: Market) -> None:
    kind, asset, pocket_id = row["kind"], row["asset"], row["pocket_id"]
    account: Account
    if kind == "lot":
        maturity = market.bill(asset).maturity
        account = Lot(row["account_no"], kind, asset, acquired_on=row["acquired_on"], maturity=maturity)
        account.tax_basis, account.earnings_basis = row["tax_basis"], row["earnings_basis"]
    else:
        account = Account(row["account_no"], kind, asset)
    account.balance, account.reserved = row["balance"], row["reserved"]
    if pocket_id is None:
        book.house[kind + asset] = account
    else:
        book.pockets[pocket_id].adopt(account)
