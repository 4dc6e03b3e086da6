"""Pages of a list: sealed cursors, and the pages cut from rows.

A cursor is sealed (AES-SIV) and bound to the list and the filters it was made for: nobody can
read it, alter it or carry it to another caller's list. Equal places give equal cursors.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from billfold.platform.errors import FieldError, InvalidInput

Row = TypeVar("Row")
Direction = Literal["next", "prev"]
SortKey = tuple[str | int | bool, ...]
"""Where a row stands in its list: the values it is sorted by, unique together."""

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
    """Which way to go from a place: "next" is further down the list, "prev" back up."""

    direction: Direction
    place: SortKey


class Stop(NamedTuple):
    """Where a search for rows ended before there were enough of them, and when what is there was booked."""

    place: SortKey
    at: datetime


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list in its order, and cursors to both sides where there is more.

    A page with a `stop` may be short, or empty: the search for its rows continues from there with the cursor.
    """

    items: list[Row]
    next_page: str | None = None
    prev_page: str | None = None
    stop: Stop | None = None


class Pager:
    """Makes and reads cursors under one key (16 bytes or more) of the bank."""

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        if len(key) < _KEY_BYTES_MIN:
            raise ValueError(f"the key of cursors has {_KEY_BYTES_MIN} bytes or more")
        self._cipher = AESSIV(hashlib.blake2b(key, person=b"billfold.cursors").digest())

    def seal(self, scope: str, filters: Mapping[str, object], direction: Direction, place: SortKey) -> str:
        """Return the cursor that continues from a place, URL-safe.

        `scope` names the list and whose it is; `filters` is everything that chooses its rows.
        """
        plain = msgspec.msgpack.encode(Position(direction, place))
        sealed = self._cipher.encrypt(plain, _associated_data(scope, filters))
        return _encode_token(sealed)

    def open(self, scope: str, filters: Mapping[str, object], token: str) -> Position:
        """Return where a cursor continues from. Raises BadCursor for anything not sealed for this."""
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
        """Return the page made of the up to `limit` + 1 rows that were read on from `start`.

        The one row too many tells that there is more; so does a `stop`, from where the search for rows continues. Rows
        read backwards ("prev") arrive in backward order and leave in the order of the list.
        """
        has_more, items = len(rows) > limit, list(rows[:limit])
        backwards = start is not None and start.direction == "prev"
        if backwards:
            items.reverse()
        stop = None if has_more else stop
        # The way back from a page without rows begins where the page does: not before what it has searched through.
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
