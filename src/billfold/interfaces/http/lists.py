"""What every cursor list takes and gives: cursor, limit, order; a sealed page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from litestar.di import Provide
from litestar.params import QueryParameter

from billfold.interfaces.http.shapes.pages import CursorList
from billfold.kit.errors import InvalidInput
from billfold.kit.paging import LIMIT_MAX, Page, Pager, Position, parse_limit

Item = TypeVar("Item")


class ListQuery(msgspec.Struct, frozen=True):
    """The page a caller asks for."""

    cursor: str
    limit: int
    descending: bool = True

    def position(self, pager: Pager, scope: str, filters: Mapping[str, object]) -> Position | None:
        """Where to go on from; None on the first page. Raises BadCursor."""
        if not self.cursor:
            return None
        return pager.open(scope, filters, self.cursor)


CursorText = Annotated[str, QueryParameter(name="cursor", description="From an earlier page.")]
LimitText = Annotated[
    str | None, QueryParameter(name="limit", description="Default 30, at most 100.")
]
OFFSET_MAX = 1_000_000_000
Offset = Annotated[
    int,
    QueryParameter(
        name="offset", ge=0, le=OFFSET_MAX, description="How many to leave out at the front."
    ),
]
Since = Annotated[
    str | None,
    QueryParameter(description="A date, Eastern, or a date-time with its offset; included."),
]
Until = Annotated[
    str | None,
    QueryParameter(
        description="A date, Eastern, and all of it; or a date-time with its offset, left out."
    ),
]
DayText = Annotated[str | None, QueryParameter(description="A date; included.")]
CentsText = Annotated[str | None, QueryParameter(description="In cents; included.")]
OrderText = Annotated[str, QueryParameter(name="order", description="desc or asc.")]


def list_query(*, maximum: int = LIMIT_MAX, ordered: bool = False) -> dict[str, Provide]:
    """Return the dependency `wanted: ListQuery` of a list; `ordered` ones take `order` too."""

    def plain(cursor: CursorText = "", limit: LimitText = None) -> ListQuery:
        return ListQuery(cursor, parse_limit(limit, maximum=maximum))

    def with_order(
        cursor: CursorText = "", limit: LimitText = None, order: OrderText = "desc"
    ) -> ListQuery:
        if order not in {"asc", "desc"}:
            raise InvalidInput.at("query", "order", msg="must be asc or desc", kind="enum")
        return ListQuery(cursor, parse_limit(limit, maximum=maximum), order == "desc")

    return {"wanted": Provide(with_order if ordered else plain, sync_to_thread=False)}


def page_of(page: Page[Any], items: list[Item]) -> CursorList[Item]:
    """Return the list of a page, its rows rendered."""
    return CursorList(prev_page=page.prev_page, next_page=page.next_page, items=items)
