"""Tables as CSV files, written page by page: their length costs no memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Annotated, Any, TypeVar

from billfold.http.parameters import Query
from billfold.http.responses import StreamedResponse
from billfold.platform.csv_text import Cell, Separators, lines_of

Row = TypeVar("Row")
ROWS_PER_PAGE = 500
CSV_ANSWER: dict[str, Any] = {
    "responses": {"200": {"description": "The file.", "content": {"text/csv": {"schema": {"type": "string"}}}}}
}
"""What an operation that answers a CSV file documents."""
Separated = Annotated[
    Separators,
    Query(description="comma, with a dot in decimals; or semicolon, with a comma in decimals."),
]
"""The parameter of an operation that answers a CSV file."""


def csv_stream(
    name: str,
    columns: Sequence[str],
    fetch: Callable[[Row | None], Awaitable[list[Row]]],
    cells_of: Callable[[Row], Iterable[Cell]],
    separators: Separators,
) -> StreamedResponse:
    """Return a file of `name`. `fetch` gives up to ROWS_PER_PAGE rows on from a row, or the first."""

    async def lines() -> AsyncIterator[bytes]:
        yield lines_of([columns], separators)
        last: Row | None = None
        while rows := await fetch(last):
            yield lines_of(map(cells_of, rows), separators)
            if len(rows) < ROWS_PER_PAGE:
                return
            last = rows[-1]

    disposition = f'attachment; filename="{name}"'
    return StreamedResponse("text/csv; charset=utf-8", lines(), [(b"content-disposition", disposition.encode())])
