"""Lists that come in pages, entry by entry or page by page."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

Entry = TypeVar("Entry")
Query = Mapping[str, Any]


class Pages(Generic[Entry]):
    """Iterate over it: every entry of a list, from the page on that was asked for."""

    def __init__(self, read_page: Callable[[Query], Any], query: Query) -> None:
        self._read_page, self._query = read_page, query

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over entries."""
        for page in self.by_page():
            yield from page.items

    def by_page(self) -> Iterator[Any]:
        """Iterate over pages: `items`, and what else the answers have, such as `count` or `next_page`."""
        query: Query | None = self._query
        while query is not None:
            page = self._read_page(query)
            yield page
            query = _next(query, page)


class AsyncPages(Generic[Entry]):
    """The same for programs that await: `async for entry in pages`."""

    def __init__(self, read_page: Callable[[Query], Awaitable[Any]], query: Query) -> None:
        self._read_page, self._query = read_page, query

    async def __aiter__(self) -> AsyncIterator[Entry]:
        """Iterate over entries."""
        async for page in self.by_page():
            for entry in page.items:
                yield entry

    async def by_page(self) -> AsyncIterator[Any]:
        """Iterate over pages."""
        query: Query | None = self._query
        while query is not None:
            page = await self._read_page(query)
            yield page
            query = _next(query, page)


def _next(query: Query, page: Any) -> Query | None:  # noqa: ANN401 - the page of any list
    """Return the query of the next page; lists without cursors have counts."""
    cursor = getattr(page, "next_page", None)
    if cursor:
        return {**query, "cursor": cursor}
    offset = query.get("offset")
    seen = (offset if isinstance(offset, int) else 0) + len(page.items)
    return {**query, "offset": seen} if page.items and seen < getattr(page, "count", 0) else None
