"""Rows of tables, and how stores read and write them.

A row class names its table, its key and its noun:

    class CardRow(Row, frozen=True, kw_only=True):
        table = "card"
        key_column = "card_id"
        fingerprinted = True

Its store uses `Table(CardRow)`, created once, at import. A read that only forwards its arguments is the bound method:

    _cards = Table(CardRow)
    _OF_POCKET = f"SELECT {_cards.columns('c')} FROM card c WHERE c.customer_id = $1 AND c.pocket_id = $2"

    get_card = _cards.get    # await get_card(conn, customer_id, card_id): "There is no such card."
    find_card = _cards.find  # the same, or None

    async def list_of_pocket(conn: Db, customer_id: UUID, pocket_id: UUID) -> list[CardRow]:
        return await _cards.all(conn, _OF_POCKET, customer_id, pocket_id)

Handwritten statements use `one` (or NotFound), `first` (or None), `all`, `select` and `columns`; a `KeysetList` takes
`read`. `Table(X, "x", key=("x_id",), noun="thing")` does the same for a struct that is not a `Row`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.platform.crypto import fingerprint
from billfold.platform.database.connection import Db
from billfold.platform.database.former_rows import as_was, joined_as_was
from billfold.platform.errors import NotFound

StructType = TypeVar("StructType", bound=msgspec.Struct)
References = list[tuple[UUID, UUID, Any]]
"""Rows that commands name: customer, id, row."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """A row of `table`: its fields are the columns, in their order.

    `key_column` is the column by which a row is found among its customer's; None if there is
    one row per customer. `noun` is the word for a row, by default the table's name.

    For `fingerprinted` rows the outcome of each command that leaves one keeps the `proof`, which `billfold verify`
    compares. The fields in `changing` are not part of it. `proof_needed` is the condition, on a row `t`, that some
    command has left one. Each change leaves what it was in `former_row`, for reads as of an instant, of rows that
    `keeps_former`: whole, or only these columns.
    """

    table: ClassVar[str]
    key_column: ClassVar[str | None] = None
    noun: ClassVar[str | None] = None
    fingerprinted: ClassVar[bool] = False
    changing: ClassVar[frozenset[str]] = frozenset()
    proof_needed: ClassVar[str] = "true"
    keeps_former: ClassVar[bool | tuple[str, ...]] = False

    @property
    def lasting(self) -> tuple[object, ...]:
        """The values that the proof covers."""
        return _lasting_values(type(self))(self)

    @property
    def proof(self) -> str:
        """The fingerprint of the unchanging fields."""
        return fingerprint(self.lasting)


@cache
def _lasting_values(row: type[Row]) -> Callable[[Row], tuple[object, ...]]:
    return attrgetter(*(name for name in row.__struct_fields__ if name not in row.changing))


def fingerprinted_rows() -> Iterator[type[Row]]:
    """Every fingerprinted class of rows whose module is loaded."""
    waiting = Row.__subclasses__()
    while waiting:
        row = waiting.pop()
        waiting += row.__subclasses__()
        if row.fingerprinted:
            yield row


def reads(struct: type[StructType]) -> Callable[[Record], StructType]:
    """Return the conversion of a record into a struct: field by field, whatever else is selected."""
    names = struct.__struct_fields__
    if len(names) > 1 and struct.__match_args__ == names:
        values = itemgetter(*names)
        return lambda record: struct(*values(record))
    return lambda record: struct(**{name: record[name] for name in names})


class Table(Generic[StructType]):
    """The rows of a class, for reading and writing by stores."""

    def __init__(
        self, row: type[StructType], table: str = "", *, key: Sequence[str] = (), noun: str | None = None
    ) -> None:
        names = row.__struct_fields__
        table = table or getattr(row, "table")  # noqa: B009 -- a struct that is not a Row has none
        key = key or [each for each in ("customer_id", getattr(row, "key_column", None)) if each]
        self.row, self._table = row, table
        self._key_column = key[-1] if key else ""
        self.read = reads(row)
        self.noun = noun or getattr(row, "noun", None) or table.replace("_", " ")
        self.select = f"SELECT {self.columns()} FROM {table}"
        self._of_customers = (
            f"{self.select} WHERE customer_id = ANY($1::uuid[]) AND {self._key_column} = ANY($2::uuid[])"
        )
        has_key = " AND ".join(f"{name} = ${n}" for n, name in enumerate(key, 1))
        self._get = f"{self.select} WHERE {has_key}"
        keeps = getattr(row, "keeps_former", False) and len(key) > 1
        self._get_as_of = f"{self.select_as_of('$3', of=('$1', '$2'))} AND {has_key}" if keeps else ""
        places = ", ".join(f"${n}" for n in range(1, len(names) + 1))
        self.insertion = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"

    def columns(self, alias: str = "", **computed: str) -> str:
        """Return the columns for a SELECT, of the table `alias`; `computed` are expressions for some of them."""
        dot = alias and f"{alias}."
        names = self.row.__struct_fields__
        return ", ".join(f"{computed[name]} AS {name}" if name in computed else f"{dot}{name}" for name in names)

    def select_as_of(self, at: str, *more: str, of: tuple[str, str] | None = None, **computed: str) -> str:
        """Return the beginning of a SELECT of rows as they were at an instant, to be continued with `AND`.

        Only for rows that `keeps_former`, with all columns that change; `of` are the customer and the id of a single
        row. In conditions, columns that change are those of `as_was`.
        """
        joined = joined_as_was(self._table, self._key_column, at, of=of)
        columns = ", ".join([self.columns_as_of(**computed), *more])
        return f"SELECT {columns} FROM {self._table} {joined} WHERE {self._table}.created_at <= {at}"

    def columns_as_of(self, **computed: str) -> str:
        """Return the columns of rows `as_was`; those that identify a row are its own."""
        lasting = {name: f"{self._table}.{name}" for name in ("customer_id", self._key_column, "created_at")}
        return self.columns(as_was(self._table), **lasting, **computed)

    async def get(self, conn: Db, *key: object, as_of: datetime | None = None) -> StructType:
        """Return the row with this key, by default the customer's id and its own. Raises NotFound."""
        if as_of is not None:
            return await self.one(conn, self._get_as_of, *key, as_of)
        return await self.one(conn, self._get, *key)

    async def find(self, conn: Db, *key: object, as_of: datetime | None = None) -> StructType | None:
        """Return the row with this key, or None."""
        if as_of is not None:
            return await self.first(conn, self._get_as_of, *key, as_of)
        return await self.first(conn, self._get, *key)

    async def load_references(self, conn: Db, customer_ids: Sequence[object], ids: Sequence[object]) -> References:
        """Return the rows of these customers whose key is among the ids, as (customer, id, row)."""
        records = await conn.fetch(self._of_customers, customer_ids, ids)
        return [(record["customer_id"], record[self._key_column], self.read(record)) for record in records]

    async def one(self, conn: Db, sql: str, *values: object) -> StructType:
        """Return the first row of a statement. Raises NotFound."""
        record = await conn.fetchrow(sql, *values)
        if record is None:
            raise NotFound(f"There is no such {self.noun}.")
        return self.read(record)

    async def first(self, conn: Db, sql: str, *values: object) -> StructType | None:
        """Return the first row of a statement, or None."""
        record = await conn.fetchrow(sql, *values)
        return None if record is None else self.read(record)

    async def all(self, conn: Db, sql: str, *values: object) -> list[StructType]:
        """Return the rows of a statement."""
        return [self.read(record) for record in await conn.fetch(sql, *values)]

    async def insert(self, conn: Db, row: StructType, then: str = "") -> bool:
        """Insert a row, `then` ON CONFLICT and the like; tell whether it was written."""
        status: str = await conn.execute(f"{self.insertion} {then}", *msgspec.structs.astuple(row))
        return status.endswith(" 1")


_STORED_NAMES = {"ach_return_entry": "ach_answer", "authorization_request": "change_request"}


def stored_name(table: str) -> str:
    """The word for a table in outcomes and audit entries, which are never rewritten."""
    return _STORED_NAMES.get(table, table)


def proof_of(row: Record, columns: Iterable[str]) -> str:
    """Return the fingerprint of all these columns, omitting empty ones.

    So a column that is added later changes nothing until it has a value. The physical place among
    the rows of the table is not part of a row either.
    """
    return fingerprint([(n, row[n]) for n in sorted(columns) if n != "written_no" and row[n] is not None])
