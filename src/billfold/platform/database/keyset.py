"""Lists that are read page by page along an index: on from the row of a place, in either direction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection, Pool
    from billfold.platform.paging import SortKey, Stop

RowType = TypeVar("RowType")
StructType = TypeVar("StructType", bound=msgspec.Struct)
Place = tuple[Any, ...]
"""Where a row stands in its list: its values in the columns of the order."""
_READERS: Mapping[str, Callable[[Any], object]] = {
    "timestamptz": datetime.fromisoformat,
    "uuid": UUID,
    "bigint": int,
    "smallint": int,
}
_BEYOND: Mapping[str, tuple[str, str]] = {
    "timestamptz": ("-infinity", "infinity"),
    "uuid": (str(UUID(int=0)), str(UUID(int=2**128 - 1))),
    "bigint": (str(-(2**63)), str(2**63 - 1)),
    "smallint": (str(-(2**15)), str(2**15 - 1)),
}
"""Below and above what a column of the order holds."""
BY_CREATION: Mapping[str, str] = {"created_at": "timestamptz", "written_no": "bigint"}
BY_OPENING: Mapping[str, str] = {"opened_at": "timestamptz", "written_no": "bigint"}


class Found(NamedTuple, Generic[RowType]):
    """Rows of a list with their places, and where the search for them ended if it did not go through the whole list."""

    rows: list[tuple[RowType, SortKey]]
    stop: Stop | None = None


def reads(struct: type[StructType]) -> Callable[[Record], StructType]:
    """Return how a row becomes a struct: field by field, whatever else is selected."""
    names = struct.__struct_fields__
    return lambda row: struct(**{name: row[name] for name in names})


class KeysetList(Generic[RowType]):
    """A list: its statement, how a row is read, and the columns of its order with their SQL types.

    $1, $2 and so on in the statement are the values it filters by. `{page}` becomes the condition on the
    place, the order and the limit; `{order}` the order and the limit alone, for a query around that one.
    The statement selects the columns of the order, which identify a row; the list begins with the greatest.
    Rows of one instant of business time, which may stand still, are in the order in which they were written:
    `written_no`, which `BY_CREATION` and `BY_OPENING` end with.
    """

    __slots__ = ("_columns", "_read", "order", "statements")

    def __init__(self, statement: str, read: Callable[[Record], RowType], **columns: str) -> None:
        self._read = read
        self._columns = columns
        self.order = tuple(columns)
        self.statements = {descending: self._fill(statement, descending=descending) for descending in (True, False)}

    async def rows(
        self,
        conn: Connection | Pool,
        *values: object,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
    ) -> list[RowType]:
        """Return up to `limit` rows on from a place; not `descending` the least come first."""
        placed = await self.placed_rows(conn, *values, after=after, descending=descending, limit=limit)
        return [row for row, _ in placed]

    async def placed_rows(
        self,
        conn: Connection | Pool,
        *values: object,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
    ) -> list[tuple[RowType, SortKey]]:
        """Return the same rows, each with its place as cursors hold it."""
        place = after or (None,) * len(self._columns)
        rows = await conn.fetch(self.statements[descending], *values, *place, limit)
        return [(self._read(row), msgspec.to_builtins(tuple(row[name] for name in self.order))) for row in rows]

    async def search(
        self,
        conn: Connection | Pool,
        *values: Any,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
    ) -> Found[RowType]:
        """Return the same rows for a page; a list that reads no more than so many rows says where it stopped."""
        return Found(await self.placed_rows(conn, *values, after=after, descending=descending, limit=limit))

    def place_of(self, sort_key: SortKey) -> Place:
        """Return the place that a cursor holds."""
        return tuple(_READERS[kind](value) for kind, value in zip(self._columns.values(), sort_key, strict=True))

    def _fill(self, statement: str, *, descending: bool) -> str:
        first = 1 + max(int(number) for number in re.findall(r"\$(\d+)", statement))
        than, way = ("<", "DESC") if descending else (">", "ASC")
        # Without a place the list is read from beyond all rows. `$1 IS NULL OR` would do for a plan that knows the
        # values; the one that PostgreSQL keeps for any would read all rows before the place, too.
        place = [
            f"coalesce(${number}::{kind}, '{_BEYOND[kind][descending]}')"
            for number, kind in enumerate(self._columns.values(), first)
        ]
        order = f"ORDER BY {', '.join(f'{name} {way}' for name in self._columns)} LIMIT ${first + len(place)}"
        page = f"({', '.join(self._columns)}) {than} ({', '.join(place)}) {order}"
        return statement.replace("{page}", page).replace("{order}", order)
