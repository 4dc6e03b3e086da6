"""Reads NACHA files: a file is valid as a whole, or all mistakes are listed by line."""

from collections.abc import Iterator, Mapping
from datetime import datetime, time
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
from stdnum.us import rtn

from billfold.payments.ach.nacha import layout
from billfold.payments.ach.nacha.control_totals import TotalsCounter
from billfold.payments.ach.nacha.layout import InvalidField, Record
from billfold.payments.ach.nacha.types import (
    AchFile,
    AchFileMistake,
    Addenda,
    Batch,
    Entry,
    EntryLine,
    NocAddenda,
    PaymentAddenda,
    ReturnAddenda,
)
from billfold.payments.files.types import MISTAKES_MAX, InvalidFile

_SINGLE_ADDENDA_CLASSES = frozenset({"CCD", "PPD", "WEB", "COR"})
_TRANSACTION_CODES = frozenset(f"{kind}{what}" for kind in "2345" for what in "1234678") | {"55", "56"}
_CLASSES = frozenset(
    {
        "ACK",
        "ARC",
        "ATX",
        "BOC",
        "CCD",
        "CIE",
        "COR",
        "CTX",
        "DNE",
        "ENR",
        "MTE",
        "POP",
        "POS",
        "PPD",
        "RCK",
        "SHR",
        "TEL",
        "TRC",
        "TRX",
        "WEB",
        "XCK",
    }
)
"""Standard entry classes with the usual entry layout; IAT has another."""
_ASCII_MAX = 0x7F
_ADDENDA: Mapping[str, tuple[Record, type[Addenda]]] = {
    "05": (layout.PAYMENT, PaymentAddenda),
    "98": (layout.CHANGE, NocAddenda),
    "99": (layout.RETURN, ReturnAddenda),
}


def _shared(struct: type[msgspec.Struct], record: Record) -> tuple[str, ...]:
    """Return the fields that a struct shares with its record."""
    return tuple(each.name for each in record.fields if each.name in struct.__struct_fields__)


_ENTRY_FIELDS = _shared(Entry, layout.ENTRY)
_BATCH_FIELDS = _shared(Batch, layout.BATCH_HEADER)
_FILE_HEADER_FIELDS = _shared(AchFile, layout.FILE_HEADER)


def read_file(raw: bytes) -> AchFile:
    """Return the whole file in memory. Raises InvalidFile as `read_lines` does."""
    batches = tuple(
        msgspec.structs.replace(batch, entries=tuple(line.entry for line in lines))
        for batch, lines in groupby(read_lines(raw), attrgetter("batch"))
    )
    return msgspec.structs.replace(read_header(raw), batches=batches)


def read_lines(raw: bytes) -> Iterator[EntryLine]:
    """Yield every entry with the header of its batch.

    Lines end in LF or CRLF, or the file has no line ends. Raises InvalidFile at the end if
    anything is wrong: a misplaced record, an invalid field, a wrong total, a truncated file. Until
    then the entries are not validated.
    """
    reader = _Reader()
    for text in _lines_of(raw):
        completed = reader.take(text)
        if completed is not None:
            yield completed
        if len(reader.mistakes) >= MISTAKES_MAX:
            break
    else:
        reader.end()
    if reader.mistakes:
        raise InvalidFile(reader.mistakes)


def read_header(raw: bytes) -> AchFile:
    """Return the file header, without batches. Raises InvalidFile."""
    reader = _Reader()
    reader.take(next(_lines_of(raw)))
    if reader.mistakes or reader.header is None:
        raise InvalidFile(reader.mistakes or [AchFileMistake(1, None, "is not a file header")])
    return _file_of(reader.header)


def normalize(raw: bytes) -> bytes:
    """Return the file with LF line ends."""
    if b"\n" not in raw and raw and len(raw) % layout.WIDTH == 0:
        starts = range(0, len(raw), layout.WIDTH)
        return b"".join(raw[at : at + layout.WIDTH] + b"\n" for at in starts)
    completed = raw.replace(b"\r\n", b"\n")
    return completed if completed.endswith(b"\n") or not completed else completed + b"\n"


def _lines_of(raw: bytes) -> Iterator[str]:
    """Yield the lines one by one: a large file is not split at once."""
    if not raw.strip():
        raise InvalidFile([AchFileMistake(0, None, "is empty")])
    if not raw.isascii():
        at = next(at for at, byte in enumerate(raw) if byte > _ASCII_MAX)
        line = raw.count(b"\n", 0, at) + 1
        raise InvalidFile([AchFileMistake(line, None, "contains a byte that is not ASCII")])
    if b"\n" not in raw and len(raw) % layout.WIDTH == 0:
        for at in range(0, len(raw), layout.WIDTH):
            yield raw[at : at + layout.WIDTH].decode("ascii")
        return
    for text in BytesIO(raw):
        if text.endswith(b"\r\n"):
            yield text[:-2].decode("ascii")
        else:
            yield text.removesuffix(b"\n").decode("ascii")


class _Reader:
    """Reads line by line and checks the order of records."""

    def __init__(self) -> None:
        self.mistakes: list[AchFileMistake] = []
        self.header: dict[str, Any] | None = None
        self._line = 0
        self._batches = 0
        self._batch_number = -1
        self._batch: dict[str, Any] | None = None
        self._batch_header: Batch | None = None
        self._batch_totals, self._file_totals = TotalsCounter(), TotalsCounter()
        self._last_trace = ""
        self._entry: dict[str, Any] | None = None
        self._entry_at = 0
        self._addenda: list[Addenda] = []
        self._completed: EntryLine | None = None
        self._control: dict[str, Any] | None = None
        self._control_at = 0

    def take(self, line: str) -> EntryLine | None:
        """Read one line; return the entry that the line before completed, if any."""
        self._line += 1
        self._completed = None
        if len(line) != layout.WIDTH:
            self._add_mistake(f"has {len(line)} characters instead of {layout.WIDTH}")
        elif not line.isprintable():
            self._add_mistake("contains a character that is not printable")
        elif self._control is not None:
            if line != layout.FILLER:
                self._add_mistake("follows the file control and is not a filler of nines")
        elif line[0] in self._READERS:
            self._READERS[line[0]](self, line)
        else:
            self._add_mistake(f"begins with {line[0]!r}, which is not a record type")
        return self._completed

    def end(self) -> None:
        """Check that the file is complete."""
        lines = self._line
        if self._control is None:
            self._add_mistake("ends without a file control: the file is truncated")
        elif lines % layout.BLOCK:
            self._add_mistake(f"has {lines} lines, not whole blocks of {layout.BLOCK}")
        elif not self.mistakes:
            self._check_file(lines)

    def _add_mistake(self, reason: str, columns: tuple[int, int] | None = None) -> None:
        self.mistakes.append(AchFileMistake(self._line, columns, reason))

    def _read(self, record: Record, line: str) -> dict[str, Any] | None:
        try:
            return record.read(line)
        except InvalidField as error:
            self._add_mistake(f"{record.title}: {error}", error.columns)
            return None

    def _read_file_header(self, line: str) -> None:
        if self.header is not None:
            self._add_mistake("is a second file header")
            return
        if self._line != 1:
            self._add_mistake("is a file header but not the first line")
        self.header = self._read(layout.FILE_HEADER, line) or {}
        if self.header and self.header["file_creation_date"] is None:
            self._add_mistake("file header: file creation date is missing", (24, 29))

    def _read_batch_header(self, line: str) -> None:
        if self.header is None:
            self._add_mistake("is a batch header before any file header")
        if self._batch is not None:
            self._add_mistake("is a batch header, but the batch before has no control")
        self._batch, self._entry = self._read(layout.BATCH_HEADER, line) or {}, None
        self._batch_header = Batch(**{name: self._batch[name] for name in _BATCH_FIELDS}) if self._batch else None
        if self._batch and self._batch["standard_entry_class_code"] not in _CLASSES:
            self._add_mistake(f"{self._batch['standard_entry_class_code']} is not a supported entry class", (51, 53))
        self._batch_totals, self._last_trace = TotalsCounter(), ""

    def _read_entry(self, line: str) -> None:
        if self._batch is None:
            self._add_mistake("is an entry outside a batch")
            return
        self._close_entry()
        self._entry, self._addenda = self._read(layout.ENTRY, line), []
        self._entry_at = self._line
        if self._entry is not None:
            self._check_entry(self._entry)

    def _read_addenda(self, line: str) -> None:
        if self._entry is None:
            if not self.mistakes:
                self._add_mistake("is an addenda without an entry")
            return
        record, struct = _ADDENDA.get(line[1:3], (None, None))
        if record is None or struct is None:
            self._add_mistake(f"addenda type {line[1:3]!r} is not one of 05, 98, 99", (2, 3))
            return
        values = self._read(record, line)
        if values is not None:
            self._check_addenda(values)
            self._addenda.append(struct(**{name: values[name] for name in _shared(struct, record)}))

    def _read_batch_control(self, line: str) -> None:
        if self._batch is None:
            self._add_mistake("is a batch control outside a batch")
            return
        self._close_entry()
        control = self._read(layout.BATCH_CONTROL, line)
        if not self.mistakes and control is not None:
            self._check_batch(self._batch, control)
            self._batches += 1
            self._batch_number = self._batch["batch_number"]
            self._file_totals.add_batch(self._batch_totals.sums)
        self._batch = None

    def _read_file_control(self, line: str) -> None:
        if self._batch is not None:
            self._add_mistake("is a file control, but the batch before has no control")
        if self.header is None:
            self._add_mistake("is a file control before any file header")
        self._control = self._read(layout.FILE_CONTROL, line) or {}
        self._control_at = self._line

    def _close_entry(self) -> None:
        values, self._entry = self._entry, None
        if values is None:
            return
        if (values["addenda_record_indicator"] == "1") != bool(self._addenda):
            self._add_mistake("the addenda record indicator of the entry before is wrong")
        self._last_trace = values["trace_number"]
        if not self.mistakes and self._batch_header is not None:
            entry = _entry_of(values, tuple(self._addenda))
            self._batch_totals.add(entry)
            self._completed = EntryLine(self._entry_at, self._batch_header, entry)

    def _check_entry(self, values: Mapping[str, Any]) -> None:
        if values["transaction_code"] not in _TRANSACTION_CODES:
            self._add_mistake(f"{values['transaction_code']} is not a transaction code", (2, 3))
        if not _is_routing_number(values["routing_number"]):
            self._add_mistake(f"{values['routing_number']} fails its check digit", (4, 12))
        if not values["dfi_account_number"]:
            self._add_mistake("dfi account number is missing", (13, 29))
        if values["trace_number"] <= self._last_trace:
            self._add_mistake("trace number does not ascend within the batch", (80, 94))

    def _check_addenda(self, values: Mapping[str, Any]) -> None:
        entry = self._entry or {}
        is_single = (self._batch or {}).get("standard_entry_class_code") in _SINGLE_ADDENDA_CLASSES
        if self._addenda and is_single:
            self._add_mistake("is a second addenda; this entry class allows one")
        if values["addenda_type_code"] != "05":
            return
        if values["addenda_sequence_number"] != len(self._addenda) + 1:
            self._add_mistake("addenda sequence number is not consecutive from 1", (84, 87))
        if values["entry_detail_sequence_number"] != entry["trace_number"][8:]:
            self._add_mistake("entry detail sequence number is that of another entry", (88, 94))

    def _check_batch(self, header: Mapping[str, Any], control: Mapping[str, Any]) -> None:
        if not self._last_trace:
            self._add_mistake("is a control of a batch without entries")
        for name in ("service_class_code", "company_identification", "originating_dfi_identification", "batch_number"):
            if control[name] != header[name]:
                self._add_mistake(
                    f"batch control: {name.replace('_', ' ')} {control[name]} is {header[name]} in its header"
                )
        if header["service_class_code"] not in {"200", self._batch_totals.service_class}:
            self._add_mistake(f"service class {header['service_class_code']} does not fit its entries")
        if header["batch_number"] <= self._batch_number:
            self._add_mistake(f"batch number {header['batch_number']} does not ascend within the file")
        self._check_control("batch control", self._batch_totals.sums._asdict(), control)

    def _check_file(self, lines: int) -> None:
        self._line, control = self._control_at, self._control or {}
        totals = {"batch_count": self._batches, "block_count": lines // layout.BLOCK}
        self._check_control("file control", totals | self._file_totals.sums._asdict(), control)

    def _check_control(self, title: str, totals: Mapping[str, int], control: Mapping[str, Any]) -> None:
        for name, actual in totals.items():
            if control[name] != actual:
                self._add_mistake(f"{title}: {name.replace('_', ' ')} says {control[name]}, is {actual}")

    _READERS = {  # noqa: RUF012 - never changes
        "1": _read_file_header,
        "5": _read_batch_header,
        "6": _read_entry,
        "7": _read_addenda,
        "8": _read_batch_control,
        "9": _read_file_control,
    }


@lru_cache(maxsize=50_000)
def _is_routing_number(number: str) -> bool:
    return bool(rtn.is_valid(number))


def _entry_of(values: Mapping[str, Any], addenda: tuple[Addenda, ...]) -> Entry:
    return Entry(addenda=addenda, **{name: values[name] for name in _ENTRY_FIELDS})


def _file_of(header: Mapping[str, Any]) -> AchFile:
    midnight = datetime.combine(header["file_creation_date"], time())
    return AchFile(
        created_at=midnight + header["file_creation_time"], **{name: header[name] for name in _FILE_HEADER_FIELDS}
    )
