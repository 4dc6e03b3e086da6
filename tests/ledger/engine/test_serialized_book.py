"""The serialized book on the head is the book; if it is damaged, the tables are read."""

import hashlib
from uuid import uuid4

import asyncpg
import pytest
from tests.simulation.invariants import picture

from billfold.bills.rules.market import Market
from billfold.ledger.book.draft import Account, Lot, PocketBook
from billfold.ledger.engine.load_books import (
    READ_HEADS,
    SERIALIZATION_VERSION,
    SerializedBook,
    deserialize_book,
    is_intact,
    load_books,
    serialize_book,
)
from billfold.platform.calendars import Calendars
from billfold.platform.database.pool import uuid_array

CALENDARS = Calendars()
MARKET = Market.packaged(CALENDARS)
FIELDS = "d3f6"
"""Of SERIALIZATION_VERSION 4. When this fails, raise it: heads in databases carry the fields from before."""


def test_the_serialization_version_changes_with_the_fields_of_a_book():
    kinds = (SerializedBook, PocketBook, Account, Lot)
    told = repr([(kind.__name__, kind.__struct_fields__) for kind in kinds])

    assert (SERIALIZATION_VERSION, hashlib.sha256(told.encode()).hexdigest()[:4]) == (5, FIELDS)


@pytest.fixture
async def conn(pg_server, lived_bank):
    """A connection to a copy of the small bank, in a transaction."""
    dsn = await pg_server.create_database(f"image_{uuid4().hex}", template=lived_bank)
    opened = await asyncpg.connect(dsn)
    async with opened.transaction():
        yield opened
    await opened.close()


async def _read(conn):
    """Return every book as the engine would load it, and the heads with a serialized book."""
    ids = [row["customer_id"] for row in await conn.fetch("SELECT customer_id FROM ledger_head")]
    heads = await conn.fetch(READ_HEADS, uuid_array(sorted(ids)))
    books = await load_books(conn, heads, MARKET, calendars=CALENDARS)
    return books, [head for head in heads if deserialize_book(head["serialized_book"]) is not None]


async def test_a_book_loaded_from_its_image_equals_the_book_loaded_from_the_tables(conn):
    of_images, with_image = await _read(conn)
    await conn.execute("UPDATE ledger_head SET serialized_book = NULL")
    of_tables, without = await _read(conn)

    assert len(with_image) == len(of_images) > 3
    assert not without
    assert pictures(of_images) == pictures(of_tables)
    assert any(pocket.emptied for book in of_images.values() for pocket in book.pockets.values())
    assert any(pocket.liens for book in of_images.values() for pocket in book.pockets.values())


@pytest.mark.parametrize(
    "damaged",
    [
        r"overlay(serialized_book placing '\xff'::bytea from 30)",
        "substring(serialized_book from 1 for 40)",
        r"'\x00'::bytea",
        "''::bytea",
    ],
)
async def test_a_damaged_book_image_falls_back_to_the_tables(conn, damaged):
    whole, _ = await _read(conn)
    await conn.execute(f"UPDATE ledger_head SET serialized_book = {damaged}")

    books, with_image = await _read(conn)

    assert not with_image
    assert pictures(books) == pictures(whole)


async def test_a_book_image_of_a_different_version_is_not_deserialized(conn, monkeypatch):
    books, _ = await _read(conn)
    monkeypatch.setattr("billfold.ledger.engine.load_books.SERIALIZATION_VERSION", SERIALIZATION_VERSION + 1)
    newer = serialize_book(next(iter(books.values())))
    monkeypatch.undo()

    assert is_intact(newer)
    assert deserialize_book(newer) is None


def pictures(books):
    return {key: picture(book) for key, book in books.items()}
