"""Tables that are pasted, or read from a CSV file: their headings, and what is wrong in their cells."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from billfold.batches.rows import Line, read_lines
from billfold.batches.schemas import RowProblems
from billfold.platform.errors import InvalidInput

TABLE_BYTES_MAX: Final = 512 * 1024
"""The most bytes of a form with a pasted table."""
_IGNORED: Final = "?"
"""Begins the name of a column whose heading is not known."""
Headings = Mapping[str, tuple[str, ...]]
"""Column -> the headings by which it is recognized, in small letters and without punctuation; the first is its own."""


class PastedRow(NamedTuple):
    """A line of the table: its cells and what is wrong with them by column, and the row if nothing is."""

    number: int
    cells: Mapping[str, str]
    wrong: Mapping[str, str]
    row: Mapping[str, Any] | None


def read_table(text: str, headings: Headings, *, required: Sequence[str]) -> tuple[list[str], list[Line]]:
    """Return the columns of a table, and its lines. Raises InvalidInput at `table` for what concerns all of them."""
    try:
        header, *lines = read_lines(text)
    except InvalidInput as wrong:
        raise InvalidInput.at("table", msg=wrong.errors[0].msg) from None
    column_of = {each: column for column, names in headings.items() for each in names}
    found, problems = list[str](), list[str]()
    for nth, heading in enumerate(header.cells, 1):
        words = "".join(each if each.isalnum() or each == "$" else " " for each in heading.lower()).split()
        column = column_of.get(" ".join(words))
        if column in found:
            problems.append(f"has {headings[column][0].capitalize()} again in column {nth}, {heading[:40]!r}")
        found.append(column or f"{_IGNORED}{heading[:40]}")
    if header.wrong or not {*required} <= {*found}:
        names = " and ".join(headings[each][0].capitalize() for each in required)
        unknown = ", ".join(repr(each[1:]) for each in found if each[0] == _IGNORED)
        known = ", ".join(each[0].capitalize() for each in headings.values())
        why = f" ({unknown} is not recognized; headings are {known})" if unknown else ""
        problems.append(f"must begin with headings, among them {names}{why}")
    if not lines:
        problems.append("must have a line below its headings")
    if problems:
        raise InvalidInput.at("table", msg="; it ".join(problems))
    return found, lines


def ignored_in(rows: Iterable[PastedRow]) -> list[str]:
    """Return the headings of the columns that are not known, if they have cells."""
    found = dict.fromkeys(name[1:] for row in rows for name, cell in row.cells.items() if name[0] == _IGNORED and cell)
    return [each or "a column without a heading" for each in found]


def cells_of(line: Line, columns: Sequence[str]) -> tuple[dict[str, str], str | None]:
    """Return the cells of a line by their columns, and what is wrong with the line as one."""
    wrong = line.wrong
    if len(line.cells) > len(columns):
        wrong = f"There are {len(line.cells)} cells in this line, and {len(columns)} headings."
    return dict(zip(columns, line.cells, strict=False)), wrong


def _sentence(detail: str) -> str:
    """Return what is wrong with a field as a sentence about its cell."""
    return f"This {detail.rstrip('.')}." if detail[:1].islower() else detail


def with_problems(
    pasted: Sequence[PastedRow], found: Iterable[RowProblems], cell_of: Mapping[str, str], usual: str
) -> list[PastedRow]:
    """Return lines with the problems that the bank found in their rows; those of no field are at the `usual` column."""
    rows, sent = list(pasted), [place for place, each in enumerate(pasted) if each.row]
    for each in found:
        place = sent[each.number - 1]
        problems = {cell_of.get(it.field or "", it.field or usual): _sentence(it.detail) for it in each.problems}
        rows[place] = rows[place]._replace(wrong={**rows[place].wrong, **problems})
    return rows
