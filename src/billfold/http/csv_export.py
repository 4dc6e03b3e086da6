"""Tables as CSV files, written page by page: their length costs no memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Annotated, Any, TypeVar

from billfold.http.parameters import Query
from billfold.http.responses import StreamedResponse
from billfold.ledger.bank import Bank
from billfold.platform.text import Cell, Separators, lines_of

Row = TypeVar("Row")
ROWS_PER_PAGE = 500
_ROWS_AT_ONCE = 100
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
    fetch: Callable[[Bank, Row | None], Awaitable[list[Row]]],
    cells_of: Callable[[Row], Iterable[Cell]],
    separators: Separators,
    bank: Bank,
) -> StreamedResponse:
    """Return a file of `name`. `fetch` gives up to ROWS_PER_PAGE rows of a bank on from a row, or the first.

    A part is read and written while it is its turn: files wait for each other, and other requests for a few rows.
    """

    async def part(rows: Sequence[Row]) -> AsyncIterator[bytes]:
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            yield lines_of(map(cells_of, rows[start : start + _ROWS_AT_ONCE]), separators)
            await asyncio.sleep(0)

    async def lines() -> AsyncIterator[bytes]:
        yield lines_of([columns], separators)
        last: Row | None = None
        while True:
            async with bank.export_turn:
                rows = await fetch(bank, last)
                written = b"".join([each async for each in part(rows)])
            if rows:
                yield written
            if len(rows) < ROWS_PER_PAGE:
                return
            last = rows[-1]

    disposition = f'attachment; filename="{name}"'
    return StreamedResponse("text/csv; charset=utf-8", lines(), [(b"content-disposition", disposition.encode())])
