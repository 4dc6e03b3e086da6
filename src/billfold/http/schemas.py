"""Shapes that several parts share: amounts, pages of lists, bodies that check themselves."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from billfold.platform.errors import FieldError
from billfold.platform.money import format_usd

Item = TypeVar("Item")
NOT_BLANK = r"[^\s\u00ad\u115f\u1160\u200b-\u200f\u2060-\u206f\u2800\u3164\ufeff\uffa0]"
"""The pattern of a text that is not blank: something of it can be seen."""
_MICROS = 1_000_000


def one_of(*known: str) -> msgspec.Meta:
    """Say of a text in an answer what it may be: `Annotated[str, one_of("OPEN", "CLOSED")]`."""
    return msgspec.Meta(extra_json_schema={"enum": list(known)})


def published_pattern(pattern: str) -> str:
    r"""Return a declared pattern as JSON Schema has it (ECMA-262): its `$` is the end, like `\Z` in Python."""
    return pattern.replace(r"\Z", "$")


BankTime = Annotated[datetime, msgspec.Meta(description="On the bank's clock, which a sandbox can set.")]
WallTime = Annotated[datetime, msgspec.Meta(description="On the wall clock, also where the bank's is set otherwise.")]


class Amount(msgspec.Struct, kw_only=True):
    """Cents of a currency, and the text people read."""

    value: int
    currency: Literal["USD"] = "USD"
    formatted: str = ""


def usd(cents: int) -> Amount:
    """An Amount of US dollars."""
    return Amount(value=cents, formatted=format_usd(cents))


def format_price(micros: int) -> str:
    """A price per $100 with its six decimals: "98.612361"."""
    return f"{micros // _MICROS}.{micros % _MICROS:06d}"


def format_appreciation(cents_per_second: Decimal) -> str:
    """Cents per second with its twelve decimals, never with an exponent: "0.033999678870"."""
    return f"{cents_per_second:.12f}"


class CursorList(msgspec.Struct, Generic[Item], kw_only=True):
    """A page of a list and cursors to the pages beside it."""

    prev_page: str | None
    next_page: str | None
    items: list[Item]
    object_type: Literal["CursorList"] = "CursorList"


class SearchedList(CursorList[Item], Generic[Item], kw_only=True):
    """A page of a list that is searched through by filters, so many rows at most for each page.

    Where that ends before the page is full, `searched_to` is when the last of them was booked: the page has fewer rows
    than its limit, or none, and its cursor goes on from there. The list ends where there is no cursor.
    """

    searched_to: datetime | UnsetType = UNSET


class OffsetList(msgspec.Struct, Generic[Item], kw_only=True):
    """A list that is short enough to be counted."""

    offset: int
    count: int
    items: list[Item]
    object_type: Literal["List"] = "List"


class CheckedBody(msgspec.Struct):
    """A body with rules for its fields that types cannot express."""

    @classmethod
    def field_errors(cls, fields: Mapping[str, Any]) -> Iterator[FieldError]:
        """Yield what is wrong among `fields`, by name: those that have their types.

        A field with the wrong type is not among them; its mistake is reported already.
        """
        raise NotImplementedError
