"""Tables as CSV (RFC 4180), written page by page: their length costs no memory.

A cell that a spreadsheet would take for a formula gets an apostrophe in front.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from billfold.http.responses import StreamedResponse
from billfold.platform.dates import require_aware

Row = TypeVar("Row")
ROWS_PER_PAGE = 500
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_FORMULA_BEGINS, _LINE_ENDS = "=+-@", "\t\r\n"
_INVISIBLE = frozenset("CMZ")
"""Controls and formats, marks that stand on nothing, and spaces."""
_OTHER_SEPARATORS = re.compile(r"([;|\t\r\n])")
"""Where spreadsheets of other countries and settings begin another cell, quoted or not."""
Cell = object
CSV_ANSWER: dict[str, Any] = {
    "responses": {"200": {"description": "The file.", "content": {"text/csv": {"schema": {"type": "string"}}}}}
}
"""What an operation that answers a CSV file documents."""


def cell_of(value: Cell) -> str:
    """Return a value as one cell: nothing for None, an instant as JSON spells it, in UTC."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(msgspec.to_builtins(require_aware(value).astimezone(UTC)))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    first, *others = _OTHER_SEPARATORS.split(text)
    begin = "'" if _is_formula(text) and not _NUMBER.fullmatch(text) else ""
    return begin + first + "".join(map(_guarded, others))


def _guarded(text: str) -> str:
    begin = text.lstrip('" ')
    stays = _NUMBER.fullmatch(begin) or _OTHER_SEPARATORS.match(begin) or not _is_formula(begin)
    return text if stays else "'" + text


def _is_formula(text: str) -> bool:
    """Tell whether the first character that is visible begins a formula, in whatever width it is written."""
    for char in text:
        if char in _LINE_ENDS:
            return True
        if unicodedata.category(char)[0] not in _INVISIBLE:
            return unicodedata.normalize("NFKC", char)[0] in _FORMULA_BEGINS
    return False


def csv_stream(
    name: str,
    columns: Sequence[str],
    fetch: Callable[[Row | None], Awaitable[list[Row]]],
    cells_of: Callable[[Row], Iterable[Cell]],
) -> StreamedResponse:
    """Return a file of `name`. `fetch` gives up to ROWS_A_PAGE rows on from a row, or the first."""

    async def lines() -> AsyncIterator[bytes]:
        yield _lines([columns])
        last: Row | None = None
        while rows := await fetch(last):
            yield _lines([cell_of(each) for each in cells_of(row)] for row in rows)
            if len(rows) < ROWS_PER_PAGE:
                return
            last = rows[-1]

    disposition = f'attachment; filename="{name}"'
    return StreamedResponse("text/csv; charset=utf-8", lines(), [(b"content-disposition", disposition.encode())])


def _lines(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
