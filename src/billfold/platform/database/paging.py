"""Pages of a list: sealed cursors, and the pages cut from rows.

A cursor is sealed (AES-SIV) and bound to the list and the filters it was made for: nobody can
read it, alter it or use it for another caller's list. Equal positions give equal cursors.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from asyncpg import Record
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from typing_extensions import override

from billfold.platform.database.connection import Db
from billfold.platform.errors import FieldError, InvalidInput

Row = TypeVar("Row")
Direction = Literal["next", "prev"]
SortKey = tuple[str | int | bool, ...]
"""The position of a row in its list: the values it is sorted by, unique together."""

LIMIT_DEFAULT = 30
LIMIT_MAX = 100
_KEY_BYTES_MIN = 16
_TOKEN_CHARS_MAX = 1024
_TAG_BYTES = 16


class InvalidCursor(InvalidInput):
    """The cursor was not made by this bank, or for another list or other filters."""

    def __init__(self, parameter: str = "cursor") -> None:
        super().__init__(
            [
                FieldError(
                    ("query", parameter),
                    "is not a cursor of this list with these filters; start without one",
                    "invalid_cursor",
                )
            ]
        )


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The direction from a position: "next" is further down the list, "prev" back up."""

    direction: Direction
    place: SortKey


class Stop(NamedTuple):
    """The row at which a search stopped early, and when it was booked."""

    place: SortKey
    at: datetime


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list in its order, and cursors in both directions where there is more.

    A page with a `stop` may be short, or empty: the search for its rows continues from there with the cursor.
    """

    items: list[Row]
    next_page: str | None = None
    prev_page: str | None = None
    stop: Stop | None = None


class Pager:
    """Creates and reads cursors under one key (16 bytes or more) of the bank."""

    def __init__(self, key: bytes) -> None:
        if len(key) < _KEY_BYTES_MIN:
            raise ValueError(f"the key of cursors has {_KEY_BYTES_MIN} bytes or more")
        self._cipher = AESSIV(hashlib.blake2b(key, person=b"billfold.cursors").digest())

    def seal(self, scope: str, filters: Mapping[str, object], direction: Direction, place: SortKey) -> str:
        """Return the cursor that continues from a position, URL-safe.

        `scope` names the list and its owner; `filters` is everything that selects its rows.
        """
        plain = msgspec.msgpack.encode(Position(direction, place))
        sealed = self._cipher.encrypt(plain, _associated_data(scope, filters))
        return _encode_token(sealed)

    def open(self, scope: str, filters: Mapping[str, object], token: str) -> Position:
        """Return the position of a cursor. Raises BadCursor for anything not sealed for this list."""
        try:
            if len(token) > _TOKEN_CHARS_MAX:
                raise InvalidCursor
            sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            if len(sealed) <= _TAG_BYTES or _encode_token(sealed) != token:
                raise InvalidCursor
            plain = self._cipher.decrypt(sealed, _associated_data(scope, filters))
            return msgspec.msgpack.decode(plain, type=Position)
        except (InvalidTag, binascii.Error, ValueError, msgspec.MsgspecError):
            raise InvalidCursor from None

    def page(
        self,
        scope: str,
        filters: Mapping[str, object],
        rows: Sequence[Row],
        *,
        limit: int,
        start: Position | None,
        sort_key_of: Callable[[Row], SortKey],
        stop: Stop | None = None,
    ) -> Page[Row]:
        """Return the page made of the up to `limit` + 1 rows that were read from `start`.

        The extra row tells that there is more; so does a `stop`, from which the search for rows continues. Rows
        read backwards ("prev") arrive in reverse order and are returned in the order of the list.
        """
        has_more, items = len(rows) > limit, list(rows[:limit])
        backwards = start is not None and start.direction == "prev"
        if backwards:
            items.reverse()
        stop = None if has_more else stop
        # The way back from a page without rows starts at the page's start, not before the rows it has searched.
        behind = None if start is None else start.place
        first, last = (sort_key_of(items[0]), sort_key_of(items[-1])) if items else (behind, behind)
        if stop is not None:
            first, last = (stop.place, last) if backwards else (first, stop.place)
        has_next = backwards or has_more or stop is not None
        has_prev = (has_more or stop is not None) if backwards else start is not None
        return Page(
            items,
            self.seal(scope, filters, "next", place=last) if has_next and last is not None else None,
            self.seal(scope, filters, "prev", place=first) if has_prev and first is not None else None,
            stop,
        )


def _encode_token(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def _associated_data(scope: str, filters: Mapping[str, object]) -> list[bytes]:
    return [scope.encode(), msgspec.json.encode(filters, order="deterministic")]


RowType = TypeVar("RowType")
Place = tuple[Any, ...]
"""The position of a row in its list: its values in the columns of the order."""
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
"""Values below and above any value of an order column."""
BY_CREATION: Mapping[str, str] = {"created_at": "timestamptz", "written_no": "bigint"}
BY_OPENING: Mapping[str, str] = {"opened_at": "timestamptz", "written_no": "bigint"}
SEARCHED_MAX: Final = 25_000
"""Maximum number of rows that a page of a filtered list searches: 10 to 20 ms of an idle core."""


class Found(NamedTuple, Generic[RowType]):
    """Rows of a list with their positions, and where the search for them stopped if it did not cover the whole list."""

    rows: list[tuple[RowType, SortKey]]
    stop: Stop | None = None


class KeysetList(Generic[RowType]):
    """A list: its statement, the conversion of a row, and the columns of its order with their SQL types.

    $1, $2 and so on in the statement are the values it filters by. `{page}` becomes the condition on the
    position, the order and the limit; `{order}` only the order and the limit, for an enclosing query.
    The statement selects the columns of the order, which identify a row; the list begins with the greatest.
    Rows of one instant of business time, which may be stopped, are in the order in which they were written:
    `written_no`, which `BY_CREATION` and `BY_OPENING` end with.
    """

    def __init__(self, statement: str, read: Callable[[Record], RowType], **columns: str) -> None:
        self._read = read
        self._columns = columns
        self.order = tuple(columns)
        self.statements = {descending: self._fill(statement, descending=descending) for descending in (True, False)}

    async def rows(
        self,
        conn: Db,
        *values: object,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
    ) -> list[RowType]:
        """Return up to `limit` rows from a position; if not `descending`, the least come first."""
        placed = await self.placed_rows(conn, *values, after=after, descending=descending, limit=limit)
        return [row for row, _ in placed]

    async def placed_rows(
        self,
        conn: Db,
        *values: object,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
    ) -> list[tuple[RowType, SortKey]]:
        """Return the same rows, each with its position as cursors hold it."""
        place = after or (None,) * len(self._columns)
        rows = await conn.fetch(self.statements[descending], *values, *place, limit)
        return [(self._read(row), msgspec.to_builtins(tuple(row[name] for name in self.order))) for row in rows]

    async def search(
        self,
        conn: Db,
        *values: Any,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
    ) -> Found[RowType]:
        """Return the same rows for a page; a list that limits its search also returns where it stopped."""
        return Found(await self.placed_rows(conn, *values, after=after, descending=descending, limit=limit))

    def place_of(self, sort_key: SortKey) -> Place:
        """Return the position in a cursor."""
        return tuple(_READERS[kind](value) for kind, value in zip(self._columns.values(), sort_key, strict=True))

    def _fill(self, statement: str, *, descending: bool) -> str:
        first = 1 + max(int(number) for number in re.findall(r"\$(\d+)", statement))
        than, way = ("<", "DESC") if descending else (">", "ASC")
        # Without a position the list is read from beyond all rows. `$1 IS NULL OR` would work for a plan that knows the
        # values; the generic plan that PostgreSQL caches would also read all rows before the position.
        place = [
            f"coalesce(${number}::{kind}, '{_BEYOND[kind][descending]}')"
            for number, kind in enumerate(self._columns.values(), first)
        ]
        order = f"ORDER BY {', '.join(f'{name} {way}' for name in self._columns)} LIMIT ${first + len(place)}"
        page = f"({', '.join(self._columns)}) {than} ({', '.join(place)}) {order}"
        return statement.replace("{page}", page).replace("{order}", order)


def list_as_of(
    now: KeysetList[RowType], then: KeysetList[RowType], as_of: datetime | None
) -> tuple[KeysetList[RowType], tuple[datetime, ...]]:
    """Return the list of now, or that of then and its last parameter, the instant."""
    return (now, ()) if as_of is None else (then, (as_of,))


class Along(NamedTuple):
    """The rows that the filters of a list select from: `FROM` and `WHERE` as its index serves them.

    $1 and so on are the values of the list in this order.
    """

    rows: str
    places: tuple[int, ...] = (0,)


class BoundedList(KeysetList[RowType]):
    """A list by time of which a page with filters searches at most SEARCHED_MAX rows.

    Every value that does not lead `along` the list is a filter. Rows of one instant are searched together.
    """

    def __init__(self, statement: str, read: Callable[[Record], RowType], along: Along, **columns: str) -> None:
        super().__init__(statement, read, **columns)
        self._places = along.places
        sql = f"SELECT {', '.join(columns)} FROM {along.rows} AND {{page}} OFFSET ${len(along.places) + 1}"
        self._along = KeysetList(sql, lambda row: row[0], **columns)

    @override
    async def placed_rows(
        self,
        conn: Db,
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
        conn: Db,
        *values: Any,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
        is_filtered: bool | None = None,
    ) -> Found[RowType]:
        """Return the same rows, filtered within the search limit; `is_filtered` is for values that do not tell."""
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
        beyond = [_READERS[kind](_BEYOND[kind][not descending]) for kind in list(self._columns.values())[1:]]
        return Found(rows, Stop((seen_to.isoformat(), *msgspec.to_builtins(beyond)), seen_to))

    @override
    def _fill(self, statement: str, *, descending: bool) -> str:
        number = 1 + max(int(each) for each in re.findall(r"\$(\d+)", statement))
        time, kind = next(iter(self._columns.items()))
        than, end = (">=", "-infinity") if descending else ("<=", "infinity")
        reach = f"{time} {than} coalesce(${number}::{kind}, '{end}')"
        return super()._fill(statement.replace("{page}", f"{reach} AND {{page}}"), descending=descending)
