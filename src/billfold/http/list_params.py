"""What every cursor list takes and gives: cursor, limit, order; a sealed page."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET
from typing_extensions import override

from billfold.http.parameters import Query, parse_choice
from billfold.http.schemas import CursorList, SearchedList
from billfold.ledger.bank import Bank
from billfold.platform.database.paging import LIMIT_DEFAULT, LIMIT_MAX, KeysetList, Page, Pager, Position, SortKey, Stop
from billfold.platform.dates import DAY_RANGE, et_instant, is_day, parse_day, parse_instant
from billfold.platform.errors import InvalidInput

Item = TypeVar("Item")
Row = TypeVar("Row")
Order = Literal["desc", "asc"]
OFFSET_MAX = 1_000_000_000
Offset = Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAX), Query(description="How many to leave out at the front.")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX), Query(description="How many rows at most.")]


@dataclass(frozen=True, slots=True)
class Part:
    """The rows to read for a page: on from a place, one more than the page shows."""

    place: SortKey | None
    descending: bool
    limit: int


class ListQuery(msgspec.Struct, frozen=True):
    """The page a caller asks for."""

    cursor: Annotated[str, Query(description="From an earlier page.")] = ""
    limit: Limit = LIMIT_DEFAULT

    @property
    def descending(self) -> bool:
        """Whether the newest come first."""
        return True

    def position(self, pager: Pager, scope: str, filters: Mapping[str, object]) -> Position | None:
        """Where to continue from; None on the first page. Raises BadCursor."""
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
    """The page a caller asks for, in the order they ask for."""

    order: Annotated[Order, Query(description="desc is newest first.")] = "desc"

    @property
    @override
    def descending(self) -> bool:
        """Whether the newest come first."""
        return self.order == "desc"


def page_of(page: Page[Any], items: list[Item]) -> CursorList[Item]:
    """Return the list of a page, its rows rendered."""
    return CursorList(prev_page=page.prev_page, next_page=page.next_page, items=items)


def searched_page_of(page: Page[Any], items: list[Item]) -> SearchedList[Item]:
    """Return the same of a list whose filters may match few of very many rows."""
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


def _parse_cents(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004 - fits 64 bits
        raise InvalidInput.at("query", name, msg="must be a whole number of cents", kind="int_parsing")
    return int(text)


def texts_among(name: str, known: frozenset[str], *, description: str | None = None) -> Query:
    """Declare texts that must be known ones."""
    return Query(
        name=name,
        parse=partial(parse_choice, sorted(known)),
        schema={"type": "string", "enum": sorted(known)},
        description=description,
    )


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
        description="A date, Eastern, and all of it; or a date-time with its offset, left out.",
    ),
]
DayQuery = Annotated[date | None, Query(description="A date; included.")]
CentsQuery = Annotated[
    int | None, Query(parse=_parse_cents, schema={"type": "integer", "minimum": 0}, description="In cents; included.")
]
