"""Record layouts of NACHA files (Nacha Operating Rules, Appendix Three).

A record is a table of fields that fill its 94 columns. The type of a field reads and writes its
value and raises ValueError for a value that the field cannot hold; nothing is truncated.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from string import ascii_uppercase, digits
from typing import Any, NamedTuple

WIDTH = 94
BLOCK = 10
"""Lines per block; the last block is filled with lines of nines."""
FILLER = "9" * WIDTH


class FieldType(NamedTuple):
    """Reads and writes the columns of a field. Both raise ValueError with the reason.

    `empty` replaces a value that cannot be read, if that is not a reason to refuse a file.
    """

    read: Callable[[str], Any]
    write: Callable[[Any, int], str]
    empty: Any = ""


class Field(NamedTuple):
    """A field: its name, and its first and last column, counted from 1."""

    name: str
    first: int
    last: int
    kind: FieldType


class Record:
    """The layout of one record type."""

    def __init__(self, title: str, *fields: Field) -> None:
        self.title = title
        self.fields = fields
        self._readers = tuple(
            (each.name, slice(each.first - 1, each.last), each.kind.read, _empty(each)) for each in fields
        )

    def read(self, line: str) -> dict[str, Any]:
        """Return the values by field name. Raises InvalidField at the first invalid field."""
        values, mistakes = self.read_tolerantly(line)
        for mistake in mistakes:
            raise mistake
        return values

    def read_tolerantly(self, line: str) -> "tuple[dict[str, Any], list[InvalidField]]":
        """Return the values by field name, with invalid fields empty, and the invalid fields."""
        values: dict[str, Any] = {}
        mistakes = []
        for name, columns, read, empty in self._readers:
            try:
                values[name] = read(line[columns])
            except ValueError as error:
                values[name] = empty
                mistakes.append(InvalidField(name, columns, str(error)))
        return values, mistakes

    def write(self, values: Mapping[str, Any]) -> str:
        """Return the line. Raises ValueError with the name of an invalid field."""
        parts = []
        for name, first, last, kind in self.fields:
            try:
                parts.append(kind.write(values.get(name), last - first + 1))
            except ValueError as error:
                reason = f"{self.title}, {name.replace('_', ' ')}: {error}"
                raise ValueError(reason) from None
        return "".join(parts)


def _empty(field: Field) -> object:
    # Zeros instead of invalid digits, so that a repetition of the field can be written.
    return "0" * (field.last - field.first + 1) if field.kind is DIGITS else field.kind.empty


class InvalidField(ValueError):
    """A field with an invalid value."""

    def __init__(self, name: str, columns: slice, reason: str) -> None:
        self.name = name
        self.columns = (columns.start + 1, columns.stop)
        super().__init__(f"{name.replace('_', ' ')} {reason}")


def _write_text(value: str | None, width: int) -> str:
    text = value or ""
    if len(text) > width:
        reason = f"{text!r} is longer than {width} characters"
        raise ValueError(reason)
    if not (text.isascii() and text.isprintable()):
        reason = f"{text!r} is not printable ASCII"
        raise ValueError(reason)
    return text.ljust(width)


def _write_number(value: int | None, width: int) -> str:
    text = str(value or 0)
    if len(text) > width or not text.isdecimal():
        reason = f"{text} does not fit into {width} digits"
        raise ValueError(reason)
    return text.zfill(width)


def _read_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        reason = f"should be digits, not {text!r}"
        raise ValueError(reason)
    return int(text)


def _read_digits(text: str) -> str:
    _read_number(text)
    return text


def _write_digits(value: str | None, width: int) -> str:
    if value is None or len(value) != width or not (value.isascii() and value.isdecimal()):
        reason = f"{value!r} should be {width} digits"
        raise ValueError(reason)
    return value


def _read_day(text: str) -> date | None:
    if text in {"      ", "000000"}:
        return None
    try:
        return datetime.strptime(text, "%y%m%d").date()  # noqa: DTZ007 - a date
    except ValueError:
        reason = f"should be a date as YYMMDD, not {text!r}"
        raise ValueError(reason) from None


def _write_day(value: date | None, width: int) -> str:
    return value.strftime("%y%m%d") if value else " " * width


def _read_time(text: str) -> timedelta:
    if text == "    ":
        return timedelta()
    _read_number(text)
    hours, minutes = int(text[:2]), int(text[2:])
    if hours > 23 or minutes > 59:  # noqa: PLR2004 - of a clock
        reason = f"should be a time as HHMM, not {text!r}"
        raise ValueError(reason)
    return timedelta(hours=hours, minutes=minutes)


def _write_time(value: timedelta | None, width: int) -> str:
    minutes = int((value or timedelta()).total_seconds()) // 60
    return f"{minutes // 60:02}{minutes % 60:02}".ljust(width)


def _read_year_day(text: str) -> int | None:
    if not text.strip():
        return None
    return _read_number(text) or None


def _write_year_day(value: int | None, width: int) -> str:
    return _write_number(value, width) if value else " " * width


def _read_bank_number(text: str) -> str:
    return _read_digits(text.removeprefix(" "))


def one_of(*texts: str) -> FieldType:
    """Return a field type that allows one of these values."""

    def read(text: str) -> str:
        if text not in texts:
            reason = f"should be {' or '.join(texts)}, not {text!r}"
            raise ValueError(reason)
        return text

    return FieldType(read, lambda value, _: read(value or ""))


def constant(text: str) -> FieldType:
    """Return a field type with a fixed value."""
    return FieldType(one_of(text).read, lambda *_: text)


TEXT = FieldType(str.rstrip, _write_text)
RIGHT = FieldType(str.strip, lambda value, width: _write_text(value, width).rstrip().rjust(width))
NUMBER = FieldType(_read_number, _write_number, 0)
DIGITS = FieldType(_read_digits, _write_digits)
BANK = FieldType(_read_bank_number, lambda value, width: " " + _write_digits(value, width - 1))
DAY = FieldType(_read_day, _write_day, None)
TIME = FieldType(_read_time, _write_time, timedelta())
YEAR_DAY = FieldType(_read_year_day, _write_year_day, None)
BLANK = FieldType(str.rstrip, lambda _, width: " " * width)
_MODIFIER = one_of(*ascii_uppercase, *digits)
_SERVICE_CLASS = one_of("200", "220", "225", "280")

FILE_HEADER = Record(
    "file header",
    Field("record_type", 1, 1, kind=constant("1")),
    Field("priority_code", 2, 3, kind=constant("01")),
    Field("immediate_destination", 4, 13, kind=BANK),
    Field("immediate_origin", 14, 23, kind=RIGHT),
    Field("file_creation_date", 24, 29, kind=DAY),
    Field("file_creation_time", 30, 33, kind=TIME),
    Field("file_id_modifier", 34, 34, kind=_MODIFIER),
    Field("record_size", 35, 37, kind=constant("094")),
    Field("blocking_factor", 38, 39, kind=constant("10")),
    Field("format_code", 40, 40, kind=constant("1")),
    Field("immediate_destination_name", 41, 63, kind=TEXT),
    Field("immediate_origin_name", 64, 86, kind=TEXT),
    Field("reference_code", 87, 94, kind=TEXT),
)
BATCH_HEADER = Record(
    "batch header",
    Field("record_type", 1, 1, kind=constant("5")),
    Field("service_class_code", 2, 4, kind=_SERVICE_CLASS),
    Field("company_name", 5, 20, kind=TEXT),
    Field("company_discretionary_data", 21, 40, kind=TEXT),
    Field("company_identification", 41, 50, kind=TEXT),
    Field("standard_entry_class_code", 51, 53, kind=TEXT),
    Field("company_entry_description", 54, 63, kind=TEXT),
    Field("company_descriptive_date", 64, 69, kind=TEXT),
    Field("effective_entry_date", 70, 75, kind=DAY),
    Field("settlement_date", 76, 78, kind=YEAR_DAY),
    Field("originator_status_code", 79, 79, kind=one_of("1", "2", "0")),
    Field("originating_dfi_identification", 80, 87, kind=DIGITS),
    Field("batch_number", 88, 94, kind=NUMBER),
)
ENTRY = Record(
    "entry",
    Field("record_type", 1, 1, kind=constant("6")),
    Field("transaction_code", 2, 3, kind=DIGITS),
    Field("routing_number", 4, 12, kind=DIGITS),
    Field("dfi_account_number", 13, 29, kind=TEXT),
    Field("amount", 30, 39, kind=NUMBER),
    Field("individual_identification_number", 40, 54, kind=TEXT),
    Field("individual_name", 55, 76, kind=TEXT),
    Field("discretionary_data", 77, 78, kind=TEXT),
    Field("addenda_record_indicator", 79, 79, kind=TEXT),
    Field("trace_number", 80, 94, kind=DIGITS),
)
IAT_ENTRY = Record(
    "international entry",
    Field("record_type", 1, 1, kind=constant("6")),
    Field("transaction_code", 2, 3, kind=DIGITS),
    Field("routing_number", 4, 12, kind=DIGITS),
    Field("addenda_count", 13, 16, kind=TEXT),
    Field("reserved", 17, 29, kind=BLANK),
    Field("amount", 30, 39, kind=NUMBER),
    Field("dfi_account_number", 40, 74, kind=TEXT),
    Field("reserved_too", 75, 76, kind=BLANK),
    Field("discretionary_data", 77, 78, kind=TEXT),  # the screening indicators of the gateway and of another bank
    Field("addenda_record_indicator", 79, 79, kind=TEXT),
    Field("trace_number", 80, 94, kind=DIGITS),
)
ADV_ENTRY = Record(
    "accounting advice",
    Field("record_type", 1, 1, kind=constant("6")),
    Field("transaction_code", 2, 3, kind=DIGITS),
    Field("routing_number", 4, 12, kind=DIGITS),
    Field("dfi_account_number", 13, 27, kind=TEXT),
    Field("amount", 28, 39, kind=NUMBER),
    Field("individual_identification_number", 40, 54, kind=TEXT),  # routing number of the advice, file and operator
    Field("individual_name", 55, 76, kind=TEXT),
    Field("discretionary_data", 77, 78, kind=TEXT),
    Field("addenda_record_indicator", 79, 79, kind=TEXT),
    Field("trace_number", 80, 94, kind=DIGITS),  # operator, day of the year and sequence within the batch
)
PAYMENT = Record(
    "addenda 05",
    Field("record_type", 1, 1, kind=constant("7")),
    Field("addenda_type_code", 2, 3, kind=constant("05")),
    Field("payment_related_information", 4, 83, kind=TEXT),
    Field("addenda_sequence_number", 84, 87, kind=NUMBER),
    Field("entry_detail_sequence_number", 88, 94, kind=DIGITS),
)
CHANGE = Record(
    "addenda 98",
    Field("record_type", 1, 1, kind=constant("7")),
    Field("addenda_type_code", 2, 3, kind=constant("98")),
    Field("change_code", 4, 6, kind=TEXT),
    Field("original_entry_trace_number", 7, 21, kind=DIGITS),
    Field("reserved", 22, 27, kind=BLANK),
    Field("original_receiving_dfi_identification", 28, 35, kind=DIGITS),
    Field("corrected_data", 36, 64, kind=TEXT),
    Field("refused_change_code", 65, 67, kind=TEXT),
    Field("refused_trace_sequence_number", 68, 74, kind=TEXT),
    Field("reserved_too", 75, 79, kind=BLANK),
    Field("trace_number", 80, 94, kind=DIGITS),
)
RETURN = Record(
    "addenda 99",
    Field("record_type", 1, 1, kind=constant("7")),
    Field("addenda_type_code", 2, 3, kind=constant("99")),
    Field("return_reason_code", 4, 6, kind=TEXT),
    Field("original_entry_trace_number", 7, 21, kind=DIGITS),
    Field("date_of_death", 22, 27, kind=DAY),
    Field("original_receiving_dfi_identification", 28, 35, kind=DIGITS),
    Field("addenda_information", 36, 79, kind=TEXT),
    Field("trace_number", 80, 94, kind=DIGITS),
)
OTHER = Record(
    "addenda",
    Field("record_type", 1, 1, kind=constant("7")),
    Field("addenda_type_code", 2, 3, kind=TEXT),
    Field("text", 4, 94, kind=TEXT),
)
BATCH_CONTROL = Record(
    "batch control",
    Field("record_type", 1, 1, kind=constant("8")),
    Field("service_class_code", 2, 4, kind=_SERVICE_CLASS),
    Field("entry_count", 5, 10, kind=NUMBER),
    Field("entry_hash", 11, 20, kind=NUMBER),
    Field("debit_total", 21, 32, kind=NUMBER),
    Field("credit_total", 33, 44, kind=NUMBER),
    Field("company_identification", 45, 54, kind=TEXT),
    Field("authentication_code", 55, 73, kind=BLANK),
    Field("reserved", 74, 79, kind=BLANK),
    Field("originating_dfi_identification", 80, 87, kind=DIGITS),
    Field("batch_number", 88, 94, kind=NUMBER),
)
ADV_BATCH_CONTROL = Record(
    "batch control of advices",
    Field("record_type", 1, 1, kind=constant("8")),
    Field("service_class_code", 2, 4, kind=_SERVICE_CLASS),
    Field("entry_count", 5, 10, kind=NUMBER),
    Field("entry_hash", 11, 20, kind=NUMBER),
    Field("debit_total", 21, 40, kind=NUMBER),
    Field("credit_total", 41, 60, kind=NUMBER),
    Field("operator_data", 61, 79, kind=TEXT),
    Field("originating_dfi_identification", 80, 87, kind=DIGITS),
    Field("batch_number", 88, 94, kind=NUMBER),
)
FILE_CONTROL = Record(
    "file control",
    Field("record_type", 1, 1, kind=constant("9")),
    Field("batch_count", 2, 7, kind=NUMBER),
    Field("block_count", 8, 13, kind=NUMBER),
    Field("entry_count", 14, 21, kind=NUMBER),
    Field("entry_hash", 22, 31, kind=NUMBER),
    Field("debit_total", 32, 43, kind=NUMBER),
    Field("credit_total", 44, 55, kind=NUMBER),
    Field("reserved", 56, 94, kind=BLANK),
)
ADV_FILE_CONTROL = Record(
    "file control of advices",
    Field("record_type", 1, 1, kind=constant("9")),
    Field("batch_count", 2, 7, kind=NUMBER),
    Field("block_count", 8, 13, kind=NUMBER),
    Field("entry_count", 14, 21, kind=NUMBER),
    Field("entry_hash", 22, 31, kind=NUMBER),
    Field("debit_total", 32, 51, kind=NUMBER),
    Field("credit_total", 52, 71, kind=NUMBER),
    Field("reserved", 72, 94, kind=BLANK),
)
RECORDS = (
    FILE_HEADER,
    BATCH_HEADER,
    ENTRY,
    IAT_ENTRY,
    ADV_ENTRY,
    PAYMENT,
    CHANGE,
    RETURN,
    OTHER,
    BATCH_CONTROL,
    ADV_BATCH_CONTROL,
    FILE_CONTROL,
    ADV_FILE_CONTROL,
)
