"""Pages of a list: sealed cursors, and the pages cut from rows.

A cursor is sealed (AES-SIV) and bound to the list and the filters it was made for: nobody can
read it, alter it or carry it to another caller's list. Equal places give equal cursors.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from billfold.platform.errors import FieldError, InvalidInput

Row = TypeVar("Row")
Direction = Literal["next", "prev"]
Place = tuple[str | int, ...]
"""Where a row stands in its list: the values it is sorted by, unique together."""

LIMIT_DEFAULT = 30
LIMIT_MAX = 100
_KEY_BYTES_MIN = 16
_TOKEN_CHARS_MAX = 1024
_TAG_BYTES = 16


class BadCursor(InvalidInput):
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
    place: Place


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list in its order, and cursors to both sides where there is more."""

    items: list[Row]
    next_page: str | None = None
    prev_page: str | None = None


class Pager:
    """Makes and reads cursors under one key (16 bytes or more) of the bank."""

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        if len(key) < _KEY_BYTES_MIN:
            raise ValueError(f"the key of cursors has {_KEY_BYTES_MIN} bytes or more")
        self._cipher = AESSIV(hashlib.blake2b(key, person=b"billfold.cursors").digest())

    def seal(
        self, scope: str, filters: Mapping[str, object], direction: Direction, place: Place
    ) -> str:
        """Return the cursor that goes on from a place, URL-safe.

        `scope` names the list and whose it is; `filters` is everything that chooses its rows.
        """
        plain = msgspec.msgpack.encode(Position(direction, place))
        sealed = self._cipher.encrypt(plain, _bound_to(scope, filters))
        return _as_token(sealed)

    def open(self, scope: str, filters: Mapping[str, object], token: str) -> Position:
        """Return where a cursor goes on from. Raises BadCursor for anything not sealed for this."""
        try:
            if len(token) > _TOKEN_CHARS_MAX:
                raise BadCursor
            sealed = base64.b64decode(
                token + "=" * (-len(token) % 4), altchars=b"-_", validate=True
            )
            if len(sealed) <= _TAG_BYTES or _as_token(sealed) != token:
                raise BadCursor
            plain = self._cipher.decrypt(sealed, _bound_to(scope, filters))
            return msgspec.msgpack.decode(plain, type=Position)
        except (InvalidTag, binascii.Error, ValueError, msgspec.MsgspecError):
            raise BadCursor from None

    def page(
        self,
        scope: str,
        filters: Mapping[str, object],
        rows: Sequence[Row],
        *,
        limit: int,
        came_from: Position | None,
        place_of: Callable[[Row], Place],
    ) -> Page[Row]:
        """Return the page made of the up to `limit` + 1 rows that were read on from `came_from`.

        The one row too many tells that there is more. Rows read backwards ("prev") arrive in
        backward order and leave in the order of the list.
        """
        more, items = len(rows) > limit, list(rows[:limit])
        backwards = came_from is not None and came_from.direction == "prev"
        if backwards:
            items.reverse()
        if not items:
            return Page(items)
        below = more if not backwards else True
        above = more if backwards else came_from is not None
        return Page(
            items,
            self.seal(scope, filters, "next", place_of(items[-1])) if below else None,
            self.seal(scope, filters, "prev", place_of(items[0])) if above else None,
        )


def parse_limit(
    value: str | int | None, *, default: int = LIMIT_DEFAULT, maximum: int = LIMIT_MAX
) -> int:
    """Return the size of a page, 1 to `maximum`. Raises InvalidInput at query.limit."""
    if value is None:
        return default
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) <= len(str(maximum)):
        limit = int(text)
        if 1 <= limit <= maximum:
            return limit
    raise InvalidInput.at(
        "query", "limit", msg=f"must be a whole number from 1 to {maximum}", kind="out_of_range"
    )


def _as_token(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def _bound_to(scope: str, filters: Mapping[str, object]) -> list[bytes]:
    return [scope.encode(), msgspec.json.encode(filters, order="deterministic")]
