"""Query parameters from types: one declaration parses a value, validates it, and describes it.

class ListQuery(msgspec.Struct, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100), Query(description="...")] = 30

A parameter that is not sent has its default. Fields of a struct without `Query` are not parameters.
Cursor lists share theirs: cursor, limit, order.
"""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import partial
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET
from typing_extensions import override

from billfold.http.raw_request import parse_uuid
from billfold.http.schemas import CursorList, SearchedList
from billfold.ledger.bank import Bank
from billfold.platform.database.paging import LIMIT_DEFAULT, LIMIT_MAX, KeysetList, Page, Pager, Position, SortKey, Stop
from billfold.platform.dates import DAY_RANGE, et_instant, is_day, parse_day, parse_instant
from billfold.platform.errors import FieldError, InvalidInput

Document = dict[str, Any]
Parse = Callable[[str, str], Any]
"""Reads a text of the parameter with a name. Raises InvalidInput at query.name."""
_INTEGER_DIGITS_MAX = 18
"""Fits 64 bits."""
WRONG_DAY = f"must be a date, like 2025-06-02, {DAY_RANGE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Annotates a query parameter with what its type does not express: another name, its own parser."""

    name: str | None = None
    description: str | None = None
    parse: Parse | None = None
    schema: Mapping[str, Any] | None = None


_QUERY_FIELDS = tuple(each.name for each in fields(Query))


@dataclass(frozen=True, slots=True)
class Parameter:
    """One query parameter of an operation."""

    attribute: str
    name: str
    parse: Parse
    many: bool
    default: Any
    schema: Document
    description: str | None
    indexed: bool
    """True if an error names the index of the wrong value among several."""

    @property
    def fields(self) -> Sequence[Parameter]:
        """Itself."""
        return (self,)

    def names_in(self, sent: Iterable[str]) -> Sequence[str]:
        """The names under which it is accepted: a list with `[]` and without, though one is documented."""
        if self.schema.get("type") == "object":
            return [name for name in sent if name.startswith(f"{self.name}[") and name.endswith("]")]
        if not self.many or self.name.startswith("filter["):
            return (self.name,)
        bare = self.name.removesuffix("[]")
        return (self.name, f"{bare}[]" if bare == self.name else bare)

    def read(self, sent: Mapping[str, Sequence[str]]) -> Any:  # noqa: ANN401 - as declared
        """Return its value. Raises InvalidInput."""
        if self.schema.get("type") == "object":
            return {name[len(self.name) + 1 : -1]: sent[name][0] for name in self.names_in(sent)} or self.default
        texts = [(index, text) for name in self.names_in(sent) for index, text in enumerate(sent.get(name, ()))]
        if not texts:
            return self.default
        if not self.many:
            return self.parse(self.name, texts[0][1])
        values, wrong = [], []
        for index, text in texts:
            try:
                values.append(self.parse(self.name, text))
            except InvalidInput as error:
                place = (index,) if self.indexed else ()
                wrong += [FieldError((*each.loc, *place), each.msg, each.type) for each in error.errors]
        if wrong:
            raise InvalidInput(dict.fromkeys(wrong))
        return values


def range_pairs(parameters: Iterable[Parameter]) -> list[tuple[Parameter, Parameter]]:
    """Return the parameters that are the start and the end of a range: `x_from` and `x_to`."""
    by_name = {each.name: each for each in parameters}
    ends = [each for name, each in by_name.items() if name.endswith("_to")]
    return [(begin, end) for end in ends if (begin := by_name.get(f"{end.name.removesuffix('_to')}_from"))]


def check_ranges(pairs: Iterable[tuple[Parameter, Parameter]], sent: Mapping[str, Sequence[str]]) -> None:
    """Raise InvalidInput at the end of a range that lies before its start."""
    for begin, end in pairs:
        if begin.name in sent and end.name in sent:
            texts = sent[begin.name][0], sent[end.name][0]
            # The end day of a range is included, so days are compared as they are sent.
            first, last = texts if all(map(is_day, texts)) else (begin.read(sent), end.read(sent))
            if type(first) is type(last) and last < first:
                raise InvalidInput.at("query", end.name, msg=f"must not be before {begin.name}")


class QueryParams:
    """The parameters that are the fields of one struct."""

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        hints = typing.get_type_hints(struct, include_extras=True)
        self._struct = struct
        self.fields = [
            parameter_of(each.name, hints[each.name], each.default)
            for each in msgspec.structs.fields(struct)
            if any(isinstance(mark, Query) for mark in getattr(hints[each.name], "__metadata__", ()))
        ]

    def read(self, sent: Mapping[str, Sequence[str]]) -> msgspec.Struct:
        """Return the struct. Raises InvalidInput with all errors."""
        values, wrong = {}, []
        for each in self.fields:
            try:
                values[each.attribute] = each.read(sent)
            except InvalidInput as error:
                wrong += error.errors
        if wrong:
            raise InvalidInput(wrong)
        return self._struct(**values)


def parameter_of(attribute: str, hint: Any, default: Any) -> Parameter:  # noqa: ANN401 - any type
    """Return the parameter that a field or an argument of this type declares."""
    kind, extra = _without_none(hint), []
    while typing.get_origin(kind) is typing.Annotated:
        kind, *more = typing.get_args(kind)
        extra += more
        kind = _without_none(kind)
    query = Query(
        **{
            name: value
            for each in extra
            if isinstance(each, Query)
            for name in _QUERY_FIELDS
            if (value := getattr(each, name)) is not None
        }
    )
    bounds = next((each for each in extra if isinstance(each, msgspec.Meta)), msgspec.Meta())
    many = typing.get_origin(kind) is list
    if many:
        kind = typing.get_args(kind)[0]
    parse, schema = _reading(kind, bounds)
    schema = dict(query.schema or schema)
    if many:
        schema = {"type": "array", "items": schema}
    if default is not None and query.schema is None:
        schema["default"] = default
    return Parameter(
        attribute,
        query.name or attribute,
        query.parse or parse,
        many=many,
        default=default,
        schema=schema,
        description=query.description,
        indexed=kind is UUID,
    )


def path_schema(kind: Any) -> Document:  # noqa: ANN401 - any type
    """Return the JSON schema of a name in the path."""
    return parameter_of("", kind, None).schema


def _without_none(hint: Any) -> Any:  # noqa: ANN401 - any type
    if typing.get_origin(hint) in {UnionType, typing.Union}:
        return next(each for each in typing.get_args(hint) if each is not type(None))
    return hint


def _reading(kind: Any, bounds: msgspec.Meta) -> tuple[Parse, Document]:  # noqa: ANN401 - any type
    """Return the parser for a value of this type, and the type's JSON schema."""
    if typing.get_origin(kind) is Literal:
        known = typing.get_args(kind)
        return partial(parse_choice, known), {"type": "string", "enum": list(known)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        known = tuple(str(each) for each in kind)
        return (lambda name, text: kind(parse_choice(known, name, text)), {"type": "string", "enum": list(known)})
    if kind is int:
        schema: Document = {"type": "integer"}
        if bounds.ge is not None:
            schema["minimum"] = bounds.ge
        if bounds.le is not None:
            schema["maximum"] = bounds.le
        return partial(_parse_int, bounds), schema
    return _READINGS.get(kind, _READINGS[str])


def parse_choice(known: Sequence[str], name: str, text: str) -> str:
    """Return a text from a fixed set. Raises InvalidInput at query.`name`."""
    if text not in known:
        raise InvalidInput.at("query", name, msg=f"must be one of {', '.join(known)}")
    return text


def _parse_int(bounds: msgspec.Meta, name: str, text: str) -> int:
    if _is_whole_number(text):
        number = int(text)
        if (bounds.ge is None or number >= bounds.ge) and (bounds.le is None or number <= bounds.le):
            return number
    between = f"from {bounds.ge or 0}" + ("" if bounds.le is None else f" to {bounds.le}")
    raise InvalidInput.at("query", name, msg=f"must be a whole number {between}", kind="out_of_range")


def _parse_date(name: str, text: str) -> date:
    try:
        return parse_day(text)
    except ValueError:
        raise InvalidInput.at("query", name, msg=WRONG_DAY, kind="date_parsing") from None


_READINGS: dict[Any, tuple[Parse, Document]] = {
    str: (lambda _, text: text, {"type": "string"}),
    dict[str, str]: (lambda _, text: text, {"type": "object", "additionalProperties": {"type": "string"}}),
    bool: (lambda name, text: parse_choice(("true", "false"), name, text) == "true", {"type": "boolean"}),
    date: (_parse_date, {"type": "string", "format": "date"}),
    UUID: (partial(parse_uuid, "query"), {"type": "string", "format": "uuid"}),
}


Item = TypeVar("Item")
Row = TypeVar("Row")
Order = Literal["desc", "asc"]
OFFSET_MAX = 1_000_000_000
Offset = Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAX), Query(description="Number of rows to skip.")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX), Query(description="Maximum row count.")]


@dataclass(frozen=True, slots=True)
class Part:
    """The rows to read for a page: from a position on, one more than the page shows."""

    place: SortKey | None
    descending: bool
    limit: int


class ListQuery(msgspec.Struct, frozen=True):
    """The page requested by a caller."""

    cursor: Annotated[str, Query(description="From an earlier page.")] = ""
    limit: Limit = LIMIT_DEFAULT

    @property
    def descending(self) -> bool:
        """Return whether the newest come first."""
        return True

    def position(self, pager: Pager, scope: str, filters: Mapping[str, object]) -> Position | None:
        """Return the position to continue from; None on the first page. Raises BadCursor."""
        if not self.cursor:
            return None
        return pager.open(scope, filters, self.cursor)

    async def read(
        self, bank: Bank, listed: KeysetList[Row], *values: object, scope: str, filters: object = None
    ) -> Page[Row]:
        """Return a page of a list, filtered by these values. Raises InvalidCursor.

        A cursor is bound to `scope`, to `filters` or else to all values, and to the columns of the order.
        """
        page = await self.page(
            bank.pager,
            scope,
            {"filters": values if filters is None else filters, "descending": self.descending, "order": listed.order},
            read=lambda part: listed.search(
                bank.pool,
                *values,
                after=None if part.place is None else listed.place_of(part.place),
                descending=part.descending,
                limit=part.limit,
            ),
            sort_key_of=lambda placed: placed[1],
        )
        return Page([row for row, _ in page.items], page.next_page, page.prev_page, page.stop)

    async def page(
        self,
        pager: Pager,
        scope: str,
        filters: Mapping[str, object],
        *,
        read: Callable[[Part], Awaitable[tuple[list[Row], Stop | None]]],
        sort_key_of: Callable[[Row], SortKey],
    ) -> Page[Row]:
        """Return a page of the list of `scope` and `filters`: `read` returns rows, and where it stopped early.

        Raises BadCursor.
        """
        position = self.position(pager, scope, filters)
        backwards = position is not None and position.direction == "prev"
        place = None if position is None else position.place
        part = Part(place, self.descending != backwards, limit=self.limit + 1)
        rows, stop = await read(part)
        return pager.page(scope, filters, rows, limit=self.limit, start=position, sort_key_of=sort_key_of, stop=stop)


class OrderedQuery(ListQuery, frozen=True):
    """The page requested by a caller, in the requested order."""

    order: Annotated[Order, Query(description="desc is newest first.")] = "desc"

    @property
    @override
    def descending(self) -> bool:
        """Return whether the newest come first."""
        return self.order == "desc"


def page_of(page: Page[Any], items: list[Item]) -> CursorList[Item]:
    """Return the list of a page, its rows rendered."""
    return CursorList(prev_page=page.prev_page, next_page=page.next_page, items=items)


def searched_page_of(page: Page[Any], items: list[Item]) -> SearchedList[Item]:
    """Return the same for a list whose filters may match few of very many rows."""
    until = UNSET if page.stop is None else page.stop.at
    return SearchedList(prev_page=page.prev_page, next_page=page.next_page, items=items, searched_to=until)


def parse_timestamp(name: str, text: str) -> datetime:
    """A date-time with its offset, or the first instant of a date. Raises InvalidInput."""
    try:
        if is_day(text):
            return et_instant(parse_day(text), 0)
        return parse_instant(text.replace(" ", "+"))  # a `+` in a query that was not escaped arrives as a space
    except ValueError:
        wrong = f"must be a date or a date-time with its offset, {DAY_RANGE}"
        raise InvalidInput.at("query", name, msg=wrong, kind="date_parsing") from None


def parse_range_end(name: str, text: str) -> datetime:
    """The instant at which a range ends: a date is in it with all its hours."""
    at = parse_timestamp(name, text)
    return et_instant(parse_day(text) + timedelta(days=1), 0) if is_day(text) else at


def _is_whole_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _INTEGER_DIGITS_MAX


def _parse_cents(name: str, text: str) -> int:
    if not _is_whole_number(text):
        raise InvalidInput.at("query", name, msg="must be a whole number of cents", kind="int_parsing")
    return int(text)


def texts_among(name: str, known: frozenset[str], *, description: str | None = None) -> Query:
    """Declare texts with a fixed set of values."""
    choices = sorted(known)
    schema = {"type": "string", "enum": choices}
    return Query(name=name, parse=partial(parse_choice, choices), schema=schema, description=description)


Since = Annotated[
    datetime | None,
    Query(
        parse=parse_timestamp,
        schema={"type": "string"},
        description="A date, Eastern, or a date-time with its offset; included.",
    ),
]
Until = Annotated[
    datetime | None,
    Query(
        parse=parse_range_end,
        schema={"type": "string"},
        description="A date, Eastern, inclusive; or a date-time with its offset, exclusive.",
    ),
]
DayQuery = Annotated[date | None, Query(description="A date; included.")]
CentsQuery = Annotated[
    int | None, Query(parse=_parse_cents, schema={"type": "integer", "minimum": 0}, description="In cents; included.")
]
