"""Reads the rows of a batch, from JSON or CSV. A row that cannot be read has its problems, and takes no other with it.

Each line of a CSV is a row: no cell may hold a line break, so that a quotation mark too many ends with its line.
"""

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from billfold.batches.types import ROWS_MAX, ReadRow, RowProblem, TransferRow
from billfold.http.raw_request import check_texts
from billfold.http.schemas import mistakes_in
from billfold.platform.errors import FieldError, InvalidInput

_OPTIONAL = {
    "to_pocket_id": {"INTERNAL_REALLOCATION", "PARTNER_CUSTOMER_FUNDING", "PARTNER_CUSTOMER_DEFUNDING"},
    "counterparty_id": {"PEER_TO_PEER", "WIRE"},
    "source": {"PARTNER_CUSTOMER_FUNDING"},
    "target": {"PARTNER_CUSTOMER_DEFUNDING"},
}
"""Field -> the types of rows that need it; others refuse it."""
_COLUMNS_MAX = 250
"""More than any kind of row has with metadata, and most tables of people: each is compared with the others."""
_DIGITS_MAX = 18
CENTS_COLUMN = "amount_usdc"


class RowFormat(NamedTuple):
    """The rows of a kind of batch: their struct, whose fields are the columns, and the mistakes between fields."""

    row: type[msgspec.Struct]
    mistakes: Callable[[Any], Iterable[FieldError]]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.row.__struct_fields__


def transfer_format(types: Collection[str]) -> RowFormat:
    """Return the format of transfers of these types."""
    return RowFormat(TransferRow, partial(_mistakes, types=types))


class Line(NamedTuple):
    """A line of a table: its number in the text, and its cells; `wrong` if it cannot be split into them."""

    number: int
    cells: Sequence[str]
    wrong: str | None = None


def read_lines(text: str) -> list[Line]:
    """Split a table into lines that are not empty, and these into cells, separated as the first line is."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not filled:
        raise InvalidInput.at("body", "csv", msg="must have a line with the names of the columns")
    if len(filled) > ROWS_MAX + 1:
        raise InvalidInput.at("body", "csv", msg=f"may have at most {ROWS_MAX} rows", kind="too_long")
    separator = separator_in(filled[0][1])
    if filled[0][1].count(separator) >= _COLUMNS_MAX:
        raise InvalidInput.at("body", "csv", msg=f"may have at most {_COLUMNS_MAX} columns", kind="too_long")
    return [_line(number, line, separator) for number, line in filled]


def separator_in(line: str) -> str:
    """Return what separates the cells of a first line."""
    return next((each for each in ("\t", ",", ";") if each in line), ",")


def _line(number: int, line: str, separator: str) -> Line:
    try:
        (cells,) = csv.reader([line], delimiter=separator, strict=True)
    except (csv.Error, ValueError):
        return Line(number, (), "must be cells between separators, quotation marks in pairs")
    return Line(number, [cell.strip() for cell in cells])


def read_csv(text: str, form: RowFormat) -> list[ReadRow]:
    """Read a CSV whose first line names the fields. Raises InvalidInput at body.csv for what concerns all rows."""
    header, *lines = read_lines(text)
    names = [_column(cell) for cell in header.cells]
    wrong = [
        FieldError(("body", "csv"), f"line {header.number}, column {nth}: {why}", "value_error")
        for nth, name in enumerate(names, 1)
        if (why := _objection_to(name, names[: nth - 1], form.columns)) is not None
    ]
    if header.wrong or wrong or not lines:
        raise InvalidInput(
            wrong or [FieldError(("body", "csv"), header.wrong or "has no row below its first line", "value_error")]
        )
    return _distinct(
        _read(nth, f"line {line.number}", *_values(line, names), form) for nth, line in enumerate(lines, 1)
    )


def _column(cell: str) -> str:
    """Return the name of a column: metadata.KEY for a text of the metadata, whose key is kept as it is."""
    name, dot, key = cell.partition(".")
    return name.lower() + dot + key


def _objection_to(name: str, before: Sequence[str], columns: Sequence[str]) -> str | None:
    if name not in columns and not (name.startswith("metadata.") and "metadata" in columns):
        return f"{name[:50]!r} is not a column. Columns are {', '.join(columns)}"
    return f"{name} is named twice" if name in before else None


def _values(line: Line, names: Sequence[str]) -> tuple[dict[str, Any], str | None]:
    """Return the fields of a line, without its empty cells, and what is wrong with the line as one."""
    if line.wrong is None and len(line.cells) > len(names):
        return {}, f"has {len(line.cells)} cells, the first line {len(names)}"
    filled = {name: cell_value(name, cell) for name, cell in zip(names, line.cells, strict=False) if cell}
    metadata = {name.partition(".")[2]: filled.pop(name) for name in list(filled) if name.startswith("metadata.")}
    return ({"metadata": metadata, **filled} if metadata else filled), line.wrong  # a text given as well is refused


def cell_value(name: str, cell: str) -> str | int:
    """Return the value of a cell: cents as a number, everything else as the text it is."""
    is_number = name == CENTS_COLUMN and cell.isascii() and cell.isdigit() and len(cell) <= _DIGITS_MAX
    return int(cell) if is_number else cell


def read_rows(rows: Sequence[Mapping[str, Any]], form: RowFormat) -> list[ReadRow]:
    """Read rows that are JSON objects."""
    return _distinct(_read(nth, "", row, None, form) for nth, row in enumerate(rows, 1))


def _read(number: int, place: str, values: Mapping[str, Any], wrong: str | None, form: RowFormat) -> ReadRow:
    if wrong is not None:
        return ReadRow(number, None, None, (_problem(place, None, wrong),), place)
    sent_key = values.get("idempotency_key")
    key = sent_key if isinstance(sent_key, str) else None
    try:
        check_texts(dict(values))
        order = msgspec.convert(values, form.row)
        errors = list(form.mistakes(order))
    except msgspec.ValidationError:
        order, errors = None, mistakes_in(dict(values), form.row)
    except InvalidInput as error:
        order, errors = None, error.errors
    if errors:
        return ReadRow(number, None, None, problems_of(errors, place), place)
    return ReadRow(number, key, order, (), place)


def _mistakes(order: TransferRow, types: Collection[str]) -> Iterator[FieldError]:
    if order.type not in types:
        yield FieldError(("body", "type"), f"must be one of {', '.join(sorted(types))}", "enum")
    for name, needed_by in _OPTIONAL.items():
        is_given = getattr(order, name) is not None
        if is_given != (order.type in needed_by):
            verb = "is not allowed with" if is_given else "is required for"
            yield FieldError(("body", name), f"{verb} {order.type}", "value_error")
    if order.wire_instructions is not None and order.type != "WIRE":
        yield FieldError(("body", "wire_instructions"), f"is not allowed with {order.type}", "value_error")


def problems_of(errors: Iterable[FieldError], place: str) -> tuple[RowProblem, ...]:
    """Return errors in the fields of a row as its problems."""
    return tuple(_problem(place, ".".join(map(str, each.loc[1:])) or None, each.msg) for each in errors)


def _problem(place: str, field: str | None, detail: str) -> RowProblem:
    where = f"{place}, column {field}: " if place and field else f"{place}: " if place else ""
    return RowProblem(code="invalid-input", detail=f"{where}{detail}", field=field)


def _distinct(rows: Iterable[ReadRow]) -> list[ReadRow]:
    """Return rows; of those that have the same key, the later ones have a problem."""
    first: dict[str, int] = {}
    return [_unless_taken(row, first) for row in rows]


def _unless_taken(row: ReadRow, first: dict[str, int]) -> ReadRow:
    if row.key is None or first.setdefault(row.key, row.number) == row.number:
        return row
    taken = _problem(row.place, "idempotency_key", f"is that of row {first[row.key]}, too")
    return row._replace(key=None, order=None, problems=(taken,))


def require_rows(rows: Sequence[ReadRow], problems: Mapping[int, RowProblem], mode: str) -> None:
    """Raise InvalidInput with the problems of all rows, if one of an atomic batch has any, or all rows have."""
    found = {row.number: row.problems or [*filter(None, [problems.get(row.number)])] for row in rows}
    wrong = {number: each for number, each in found.items() if each}
    if not wrong or (mode == "INDEPENDENT" and len(wrong) < len(rows)):
        return
    places = {row.number: () if row.place else ("rows", row.number - 1) for row in rows}
    raise InvalidInput(_field_error(places[number], each) for number, its in wrong.items() for each in its)


def _field_error(place: tuple[str | int, ...], problem: RowProblem) -> FieldError:
    """Return a problem of a row as one of the request: at its field, or in the CSV, whose line its text names."""
    field = (problem.field,) if problem.field else ()
    return FieldError(("body", *place, *field) if place else ("body", "csv"), problem.detail, problem.code)
