"""Lists that are read page by page along an index: on from the row of a place, in either direction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.platform.paging import SortKey, Stop

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.connection import (Connection, Pool)

RowType = TypeVar("RowType")
StructType = TypeVar("StructType", bound=msgspec.Struct)
Place = tuple[Any, ...]
"""Where a row stands in its list: its values in the columns of the order."""
_READERS: Mapping[str, Callable[[Any], object]] = {
    "timestamptz": datetime.fromisoformat,
    "uuid": UUID,
    "bigint": int,
    "smallint": int,
    "boolean": bool,
}
_BEYOND: Mapping[str, tuple[str, str]] = {
    "timestamptz": ("-infinity", "infinity"),
    "uuid": (str(UUID(int=0)), str(UUID(int=2**128 - 1))),
    "bigint": (str(-(2**63)), str(2**63 - 1)),
    "smallint": (str(-(2**15)), str(2**15 - 1)),
    "boolean": ("false", "true"),
}
"""Below and above what a column of the order holds."""
BY_CREATION: Mapping[str, str] = {"created_at": "timestamptz", "written_no": "bigint"}
BY_OPENING: Mapping[str, str] = {"opened_at": "timestamptz", "written_no": "bigint"}
SEARCHED_MAX: Final = 25_000
"""Through how many rows a page of a filtered list looks at most: 10 to 20 ms of an idle core."""
_NUMBER_MAX: Final = 2**63 - 1


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


class Along(NamedTuple):
    """The rows among which filters of a list choose: `FROM` and `WHERE` as its index serves them.

    $1 and so on are the values of the list at these places.
    """

    rows: str
    places: tuple[int, ...] = (0,)


class BoundedList(KeysetList[RowType]):
    """A list by time and number of which a page with filters looks through SEARCHED_MAX rows, and no further.

    Every value that does not lead `along` the list is a filter. What is of one instant is looked at as a whole.
    """

    __slots__ = ("_along", "_places")

    def __init__(self, statement: str, read: Callable[[Record], RowType], along: Along, **columns: str) -> None:
        super().__init__(statement, read, **columns)
        self._places = along.places
        sql = f"SELECT {', '.join(columns)} FROM {along.rows} AND {{page}} OFFSET ${len(along.places) + 1}"
        self._along = KeysetList(sql, lambda row: row[0], **columns)

    @override
    async def placed_rows(
        self,
        conn: Connection | Pool,
        *values: object,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
        seen_to: datetime | None = None,
    ) -> list[tuple[RowType, SortKey]]:
        return await super().placed_rows(conn, *values, seen_to, after=after, descending=descending, limit=limit)

    @override
    async def search(
        self,
        conn: Connection | Pool,
        *values: Any,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
        is_filtered: bool | None = None,
    ) -> Found[RowType]:
        """Return the same rows, by filters as far as a page looks; `is_filtered` is for values that do not tell."""
        if is_filtered is None:
            is_filtered = any(value is not None for place, value in enumerate(values) if place not in self._places)
        seen_to: datetime | None = None
        if is_filtered:
            chosen = [values[place] for place in self._places]
            far = await self._along.rows(conn, *chosen, SEARCHED_MAX, after=after, descending=descending, limit=1)
            seen_to = far[0] if far else None
        rows = await self.placed_rows(conn, *values, after=after, descending=descending, limit=limit, seen_to=seen_to)
        if seen_to is None or len(rows) >= limit:
            return Found(rows)
        return Found(rows, Stop((seen_to.isoformat(), -1 if descending else _NUMBER_MAX), seen_to))

    @override
    def _fill(self, statement: str, *, descending: bool) -> str:
        number = 1 + max(int(each) for each in re.findall(r"\$(\d+)", statement))
        time, kind = next(iter(self._columns.items()))
        than, end = (">=", "-infinity") if descending else ("<=", "infinity")
        reach = f"{time} {than} coalesce(${number}::{kind}, '{end}')"
        return super()._fill(statement.replace("{page}", f"{reach} AND {{page}}"), descending=descending)
