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
async def shelves(conn):
    await conn.execute("CREATE TEMP TABLE shelf_row (books int, name text, shelf_id int UNIQUE, customer_id uuid)")
    assert await SHELVES.insert(conn, FULL)
    return conn


async def test_a_row_is_found_by_its_customer_and_its_key(shelves):
    assert await SHELVES.get(shelves, CUSTOMER, 1) == await SHELVES.find(shelves, CUSTOMER, 1) == FULL


@pytest.mark.parametrize("key", [(CUSTOMER, 2), (UUID(int=8), 1)])
async def test_a_row_of_another_key_is_not_found_by_its_noun(shelves, key):
    assert await SHELVES.find(shelves, *key) is None
    with pytest.raises(NotFound, match="There is no such shelf"):
        await SHELVES.get(shelves, *key)


async def test_rows_of_a_statement_by_hand_are_read_by_name_whatever_else_is_selected(shelves):
    shown = SHELVES.columns("s", books="s.books + 1")
    sql = f"SELECT true AS extra, {shown} FROM pg_temp.shelf_row s"
    more = msgspec.structs.replace(FULL, books=13)
    assert await SHELVES.all(shelves, sql) == [more]
    assert await SHELVES.first(shelves, sql) == await SHELVES.one(shelves, sql) == more


async def test_a_struct_with_positional_fields_is_read_by_name(shelves):
    labels = Table(Label, "pg_temp.shelf_row", key=("shelf_id",), noun="label")
    assert await labels.get(shelves, 1) == Label("History", 12)


async def test_a_row_with_a_taken_key_is_not_written_on_conflict(shelves):
    assert not await SHELVES.insert(shelves, FULL, "ON CONFLICT DO NOTHING")


def test_a_proof_is_of_the_lasting_fields_in_their_order():
    assert FULL.proof == fingerprint((CUSTOMER, 1, "History"))
