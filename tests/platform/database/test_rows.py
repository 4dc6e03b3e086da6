"""Rows and the tables that read them."""

from uuid import UUID

import msgspec
import pytest

from billfold.platform.crypto import fingerprint
from billfold.platform.database.rows import Row, Table
from billfold.platform.errors import NotFound


class ShelfRow(Row, frozen=True, kw_only=True):
    table = "pg_temp.shelf_row"
    key_column = "shelf_id"
    noun = "shelf"
    changing = frozenset({"books"})

    customer_id: UUID
    shelf_id: int
    name: str | None = None
    books: int = 0


class Label(msgspec.Struct, frozen=True):
    name: str
    books: int


CUSTOMER = UUID(int=7)
SHELVES = Table(ShelfRow)
FULL = ShelfRow(customer_id=CUSTOMER, shelf_id=1, name="History", books=12)


@pytest.fixture
async def shelf_conn(conn):
    await conn.execute("CREATE TEMP TABLE shelf_row (books int, name text, shelf_id int UNIQUE, customer_id uuid)")
    assert await SHELVES.insert(conn, FULL)
    return conn


async def test_a_row_is_found_by_its_customer_and_its_key(shelf_conn):
    assert await SHELVES.get(shelf_conn, CUSTOMER, 1) == await SHELVES.find(shelf_conn, CUSTOMER, 1) == FULL


@pytest.mark.parametrize("key", [(CUSTOMER, 2), (UUID(int=8), 1)])
async def test_a_missing_row_raises_not_found_with_its_noun(shelf_conn, key):
    assert await SHELVES.find(shelf_conn, *key) is None
    with pytest.raises(NotFound, match="There is no such shelf"):
        await SHELVES.get(shelf_conn, *key)


async def test_rows_of_a_handwritten_statement_are_read_by_column_name(shelf_conn):
    shown = SHELVES.columns("s", books="s.books + 1")
    sql = f"SELECT true AS extra, {shown} FROM pg_temp.shelf_row s"
    more = msgspec.structs.replace(FULL, books=13)
    assert await SHELVES.all(shelf_conn, sql) == [more]
    assert await SHELVES.first(shelf_conn, sql) == await SHELVES.one(shelf_conn, sql) == more


async def test_a_struct_with_positional_fields_is_read_by_name(shelf_conn):
    labels = Table(Label, "pg_temp.shelf_row", key=("shelf_id",), noun="label")
    assert await labels.get(shelf_conn, 1) == Label("History", 12)


async def test_inserting_a_row_with_an_existing_key_on_conflict_writes_nothing(shelf_conn):
    assert not await SHELVES.insert(shelf_conn, FULL, "ON CONFLICT DO NOTHING")


def test_a_row_proof_covers_the_immutable_fields_in_order():
    assert FULL.proof == fingerprint((CUSTOMER, 1, "History"))
