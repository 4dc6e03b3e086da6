"""Tables that are pasted, or read from a CSV file: their headings, and what is wrong in their cells."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from billfold.batches.rows import Line, read_lines, separator_in
from billfold.batches.schemas import RowProblems
from billfold.platform.errors import InvalidInput

TABLE_BYTES_MAX: Final = 512 * 1024
"""The most bytes of a form with a pasted table."""
ROWS_CORRECTED: Final = 25
"""The most rows that are corrected at once: a form has few fields."""
_IGNORED: Final = "?"
"""Begins the name of a column whose heading is not known."""
_CORRECTION: Final = re.compile(r"fix\.([0-9]{1,5})\.([a-z_0-9]{1,30})")
"""Names the field of a form that corrects a cell: `fix.12.amount` is the amount in line 12."""
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


def sent_table(form: Mapping[str, str]) -> str:
    """Return the table of a form as it was typed: forms send other line ends, and browsers add no first line."""
    return form.get("table", "").replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff\n")


class Naming(NamedTuple):
    """The names in cells of a column: the words for what was chosen, and whether a text names nothing."""

    words_of: Callable[[str], str]
    is_unknown: Callable[[str], bool]


def corrected(text: str, form: Mapping[str, str], headings: Headings, namings: Mapping[str, Naming]) -> str:
    """Return a `sent_table` with the corrections of a form: `fix.12.amount` is a cell, `fix` the cell of a button.

    `leave_out` names lines; all keep their numbers. What replaces a text that names nothing replaces it in all lines.
    A table that cannot be read stays as it is.
    """
    try:
        columns, lines = read_table(text, headings, required=())
    except InvalidInput:
        return text
    fixes, header = _corrections_in(form, namings), read_lines(text)[0]
    given = dict.fromkeys(column for (_, column), new in fixes.items() if new)
    wide = [*columns, *(column for column in given if column in headings and column not in columns)]
    given_cells = {n: [*cells, *[""] * (len(wide) - len(cells))] for n, cells, wrong in lines if not wrong}
    rows = {number: [*cells] for number, cells in given_cells.items()}
    chosen: dict[tuple[str, str], str] = {}
    for (number, column), new in fixes.items():
        if column in wide and number in rows:
            place, naming = wide.index(column), namings.get(column)
            if naming and (before := rows[number][place]) and naming.is_unknown(before):
                chosen[column, before] = new
            rows[number][place] = new
    for cells in rows.values():
        cells[:] = [chosen.get((name, cell), cell) for name, cell in zip_longest(wide, cells, fillvalue="")]
    changed = {number: cells for number, cells in rows.items() if cells != given_cells[number]}
    if wide != columns:
        changed[header.number] = [*header.cells, *(headings[each][0].capitalize() for each in wide[len(columns) :])]
    return _rewritten(text, changed, {each.number for each in lines} & _numbers_in(form.get("leave_out", "")))


def _corrections_in(form: Mapping[str, str], namings: Mapping[str, Naming]) -> dict[tuple[int, str], str]:
    """Return the corrected cells by line and column. A choice that is not made corrects nothing."""
    pressed, _, chosen = form.get("fix", "").partition("=")
    fixes: dict[tuple[int, str], str] = {}
    for name, text in (*form.items(), (pressed, chosen)):
        if at := _CORRECTION.fullmatch(name):
            new, naming = " ".join(text.split()), namings.get(at[2])
            if new or naming is None:
                fixes[int(at[1]), at[2]] = naming.words_of(new) if naming else new
    return fixes


def _numbers_in(text: str) -> set[int]:
    return {int(each) for each in text.split(",") if re.fullmatch("[0-9]{1,5}", each)}


def _rewritten(text: str, rows: Mapping[int, Sequence[str]], left_out: Iterable[int]) -> str:
    """Return a table with other cells in some lines and without others, whose place stays empty."""
    lines = text.split("\n")
    separator = separator_in(next(each for each in lines if each.strip()))
    for number, cells in rows.items():
        lines[number - 1] = line_of(cells, separator)
    for number in left_out:
        lines[number - 1] = ""
    return "\n".join(lines)


def line_of(cells: Iterable[str], separator: str = ",") -> str:
    """Return cells as a line of a table."""
    written = io.StringIO()
    csv.writer(written, delimiter=separator, lineterminator="").writerow(cells)
    return written.getvalue()


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
