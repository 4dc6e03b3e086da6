"""Reads NACHA files. A file with an invalid format is refused with all errors by line.

Reasons to refuse a file, a batch or an entry: Nacha Operating Rules, Appendix Two. An invalid batch or entry
does not refuse the file: its error is reported with its place, and the others are read.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, time
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from billfold.payments.ach.nacha import layout
from billfold.payments.ach.nacha.layout import InvalidField, Record
from billfold.payments.ach.nacha.records import (
    ADVICE,
    AchFile,
    AchFileMistake,
    Addenda,
    Batch,
    ControlTotals,
    Entry,
    EntryLine,
    NocAddenda,
    OtherAddenda,
    PaymentAddenda,
    ReturnAddenda,
    TotalsCounter,
    lines_of,
    normalize,
)
from billfold.payments.files.types import MISTAKES_MAX, InvalidFile
from billfold.payments.routing_numbers import is_routing_number

__all__ = ["normalize", "read_batch_mistakes", "read_file", "read_header", "read_lines"]

_TRANSACTION_CODES = frozenset(f"{kind}{what}" for kind in "2345" for what in "12346789") | {"55"}
_ADVICE_CODES = frozenset(f"8{what}" for what in range(1, 9))
_CLASSES = frozenset(
    {
        "ACK",
        "ADV",
        "ARC",
        "ATX",
        "BOC",
        "CCD",
        "CIE",
        "COR",
        "CTX",
        "DNE",
        "ENR",
        "IAT",
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
"""Standard entry classes."""
_ADDENDA: Mapping[str, tuple[Record, type[Addenda]]] = {
    "05": (layout.PAYMENT, PaymentAddenda),
    "98": (layout.CHANGE, NocAddenda),
    "99": (layout.RETURN, ReturnAddenda),
}
_OTHER_ADDENDA = frozenset({"02", *(str(number) for number in range(10, 19))})
_NAME_OF_RECEIVER = "10"
"""The addenda of an international entry whose text is the receiver's name."""


def _shared(struct: type[msgspec.Struct], record: Record) -> tuple[str, ...]:
    """Return the fields that a struct shares with its record."""
    return tuple(each.name for each in record.fields if each.name in struct.__struct_fields__)


_BATCH_FIELDS = _shared(Batch, layout.BATCH_HEADER)
_FILE_HEADER_FIELDS = _shared(AchFile, layout.FILE_HEADER)
_IN_BOTH = ("service_class_code", "company_identification", "originating_dfi_identification", "batch_number")
"""Fields that a batch's header and control record share."""
_ADDED = frozenset({"transaction_code", "routing_number", "amount"})
"""Fields of an entry that are part of the totals."""


def read_file(raw: bytes) -> AchFile:
    """Return the whole file in memory. Raises InvalidFile as `read_lines` does."""
    batches = tuple(
        msgspec.structs.replace(batch, entries=tuple(line.entry for line in lines))
        for (_, batch), lines in groupby(read_lines(raw), attrgetter("batch_at", "batch"))
    )
    return msgspec.structs.replace(read_header(raw), batches=batches)


def read_lines(raw: bytes) -> Iterator[EntryLine]:
    """Yield every entry with the header of its batch, and with its error if it has one.

    Lines end in LF or CRLF, or the file has no line ends. Raises InvalidFile at the end if the format
    of the file is invalid: a misplaced record, a wrong total, a truncated file. Until then the entries
    are not validated.
    """
    yield from _read(raw, _Reader())


def read_batch_mistakes(raw: bytes) -> dict[int, str]:
    """Return the errors of whole batches, by the lines of their headers. Raises as `read_lines` does."""
    reader = _Reader()
    for _ in _read(raw, reader):
        pass
    return reader.batch_mistakes


def _read(raw: bytes, reader: "_Reader") -> Iterator[EntryLine]:
    for text in lines_of(raw):
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
    reader.take(next(lines_of(raw)))
    if reader.mistakes or reader.header is None:
        raise InvalidFile(reader.mistakes or [AchFileMistake(1, None, "is not a file header")])
    return _file_of(reader.header)


class _Reader:
    """Reads line by line and checks the order of records.

    `mistakes` refuse the file; `batch_mistakes` are errors of whole batches, by the lines of their headers.
    """

    def __init__(self) -> None:
        self.mistakes: list[AchFileMistake] = []
        self.batch_mistakes: dict[int, str] = {}
        self.header: dict[str, Any] | None = None
        self._line = self._blank_lines = 0
        self._batches = 0
        self._batch: dict[str, Any] | None = None
        self._batch_header: Batch | None = None
        self._batch_at = 0
        self._batch_totals, self._file_totals = TotalsCounter(), TotalsCounter()
        self._control_sums, self._moved_totals = TotalsCounter(), TotalsCounter()
        self._is_complete = True
        self._entry: dict[str, Any] | None = None
        self._entry_at = 0
        self._entry_mistake = ""
        self._addenda: list[Addenda] = []
        self._completed: EntryLine | None = None
        self._control = ""
        self._control_at = 0
        self._control_records = [layout.FILE_CONTROL]

    def take(self, line: str) -> EntryLine | None:
        """Read one line; return the entry that the previous line completed, if any."""
        self._line += 1
        self._completed = None
        if not line.strip():
            self._blank_lines += 1
        elif len(line) != layout.WIDTH:
            self._add_mistake(f"has {len(line)} characters instead of {layout.WIDTH}")
        elif self._control:
            if line != layout.FILLER:
                self._add_mistake("follows the file control and is not a filler of nines")
        elif line[0] in self._READERS:
            self._READERS[line[0]](self, line)
        else:
            self._add_mistake(f"begins with {line[0]!r}, which is not a record type")
        return self._completed

    def end(self) -> None:
        """Check that the file is complete."""
        if not self._control:
            self._add_mistake("ends without a file control: the file is truncated")
        elif not self.mistakes:
            self._check_file(self._line - self._blank_lines)

    def _add_mistake(self, reason: str, columns: tuple[int, int] | None = None) -> None:
        self.mistakes.append(AchFileMistake(self._line, columns, reason))

    def _read_file_header(self, line: str) -> None:
        if self.header is not None:
            self._add_mistake("is a second file header")
            return
        if self._line != 1:
            self._add_mistake("is a file header but not the first line")
        self.header, invalid = layout.FILE_HEADER.read_tolerantly(line)
        for each in invalid:
            if each.name != "file_creation_time":
                self._add_mistake(f"file header: {each}", each.columns)
        if not self.mistakes and self.header["file_creation_date"] is None:
            self._add_mistake("file header: file creation date is missing", (24, 29))

    def _read_batch_header(self, line: str) -> None:
        if self.header is None:
            self._add_mistake("is a batch header before any file header")
        if self._batch is not None:
            self._add_mistake("is a batch header, but the batch before has no control")
        batch, invalid = layout.BATCH_HEADER.read_tolerantly(line)
        self._batch, self._entry, self._batch_at = batch, None, self._line
        self._batch_header = Batch(**{name: batch[name] for name in _BATCH_FIELDS})
        self._batch_totals, self._is_complete = TotalsCounter(), True
        for each in invalid:
            if each.name in {"service_class_code", "originating_dfi_identification"}:
                self._mark_batch(f"batch header: {each}")
        if batch["standard_entry_class_code"] not in _CLASSES:
            self._mark_batch(f"{batch['standard_entry_class_code']!r} is not an entry class")
        if batch["standard_entry_class_code"] == ADVICE:
            self._control_records = [layout.FILE_CONTROL, layout.ADV_FILE_CONTROL]

    def _mark_batch(self, reason: str) -> None:
        self.batch_mistakes.setdefault(self._batch_at, reason)

    def _mark_entry(self, reason: str) -> None:
        self._entry_mistake = self._entry_mistake or reason

    def _read_entry(self, line: str) -> None:
        if self._batch_header is None or self._batch is None:
            self._add_mistake("is an entry outside a batch")
            return
        self._close_entry()
        self._entry, invalid = _read_as(_entry_records(self._batch_header), line)
        self._addenda, self._entry_at, self._entry_mistake = [], self._line, ""
        for each in invalid:
            self._mark_entry(str(each))
            # A value that cannot be read cannot be added, so only the count of the totals is compared.
            self._is_complete = self._is_complete and each.name not in _ADDED
            if each.name == "transaction_code":  # the direction of the amount is unknown
                self._entry["amount"] = 0
        self._check_entry(self._entry)

    def _read_addenda(self, line: str) -> None:
        if self._entry is None:
            if not self.mistakes:
                self._add_mistake("is an addenda without an entry")
            return
        record, struct = _ADDENDA.get(line[1:3], (layout.OTHER, OtherAddenda))
        values, _ = record.read_tolerantly(line)
        if struct is PaymentAddenda:
            self._check_addenda(values)
        elif struct is OtherAddenda and line[1:3] not in _OTHER_ADDENDA:
            self._mark_entry(f"addenda type {line[1:3]!r} is not known")
        self._addenda.append(struct(**{name: values[name] for name in _shared(struct, record)}))

    def _read_batch_control(self, line: str) -> None:
        if self._batch is None:
            self._add_mistake("is a batch control outside a batch")
            return
        self._close_entry()
        is_advice = self._batch["standard_entry_class_code"] == ADVICE
        control, invalid = _read_as(_ADVICE_CONTROLS if is_advice else _CONTROLS, line)
        for each in invalid:
            self._mark_batch(f"batch control: {each}")
        self._check_batch(self._batch, control)
        self._batches += 1
        self._file_totals.add_batch(self._batch_totals.sums)
        if not is_advice:
            self._moved_totals.add_batch(self._batch_totals.sums)
        self._control_sums.add_batch(ControlTotals(*(control[name] for name in ControlTotals._fields)))
        self._batch = None

    def _read_file_control(self, line: str) -> None:
        if self._batch is not None:
            self._add_mistake("is a file control, but the batch before has no control")
        if self.header is None:
            self._add_mistake("is a file control before any file header")
        self._control, self._control_at = line, self._line

    def _close_entry(self) -> None:
        values, self._entry = self._entry, None
        if values is None or self._batch_header is None:
            return
        if (values["addenda_record_indicator"] == "1") != bool(self._addenda):
            self._mark_entry("its addenda record indicator is wrong")
        entry = _entry_of(values, tuple(self._addenda))
        self._batch_totals.add(entry)
        if not self.mistakes:
            self._completed = EntryLine(self._entry_at, self._batch_header, entry, self._entry_mistake, self._batch_at)

    def _check_entry(self, values: Mapping[str, Any]) -> None:
        is_advice = self._batch is not None and self._batch["standard_entry_class_code"] == ADVICE
        if values["transaction_code"] not in (_ADVICE_CODES if is_advice else _TRANSACTION_CODES):
            self._mark_entry(f"{values['transaction_code']} is not a transaction code")
        if not is_routing_number(values["routing_number"]):
            self._mark_entry(f"routing number {values['routing_number']} fails its check digit")
        if not values["dfi_account_number"]:
            self._mark_entry("dfi account number is missing")

    def _check_addenda(self, values: Mapping[str, Any]) -> None:
        entry = self._entry or {}
        if values["addenda_sequence_number"] != len(self._addenda) + 1:
            self._mark_entry("an addenda sequence number is not consecutive from 1")
        if values["entry_detail_sequence_number"] != entry["trace_number"][8:]:
            self._mark_entry("an entry detail sequence number is that of another entry")

    def _check_batch(self, header: Mapping[str, Any], control: Mapping[str, Any]) -> None:
        for name in _IN_BOTH:
            if control.get(name, header[name]) != header[name]:
                self._mark_batch(
                    f"batch control: {name.replace('_', ' ')} {control[name]} is {header[name]} in its header"
                )
        actual = self._batch_totals.sums
        others = {"220": actual.debit_total, "225": actual.credit_total}
        if others.get(header["service_class_code"]):
            self._mark_batch(f"service class {header['service_class_code']} does not fit its entries")
        compared = actual._asdict() if self._is_complete else {"entry_count": actual.entry_count}
        for reason in _differences(compared, control):
            self._mark_batch(f"batch control: {reason}")

    def _check_file(self, lines: int) -> None:
        """Compare the file control with its batches, with their controls, and with the batches that move money.

        It may match any of them: an error in one batch is reported for that batch.
        """
        self._line = self._control_at
        blocks = -(-lines // layout.BLOCK)
        counted = self._file_totals.sums._asdict()
        sums = (counted, self._control_sums.sums._asdict(), self._moved_totals.sums._asdict())
        found = []
        for record in self._control_records:
            control, invalid = record.read_tolerantly(self._control)
            agreed = {name: said for name, said in control.items() if any(each.get(name) == said for each in sums)}
            totals = {"batch_count": self._batches, "block_count": blocks} | counted | agreed
            found.append([*map(str, invalid), *_differences(totals, control)])
        for reason in min(found, key=len):
            self._add_mistake(f"file control: {reason}")

    _READERS = {  # noqa: RUF012 - never changes
        "1": _read_file_header,
        "5": _read_batch_header,
        "6": _read_entry,
        "7": _read_addenda,
        "8": _read_batch_control,
        "9": _read_file_control,
    }


def _differences(totals: Mapping[str, int], control: Mapping[str, Any]) -> Iterator[str]:
    for name, actual in totals.items():
        if control[name] != actual:
            yield f"{name.replace('_', ' ')} says {control[name]}, is {actual}"


def _entry_records(batch: Batch) -> tuple[Record, ...]:
    """Return the possible layouts of the entries of a batch."""
    if batch.is_international:
        return (layout.IAT_ENTRY,)
    return (layout.ADV_ENTRY, layout.ENTRY) if batch.standard_entry_class_code == ADVICE else (layout.ENTRY,)


_CONTROLS = (layout.BATCH_CONTROL,)
_ADVICE_CONTROLS = (layout.ADV_BATCH_CONTROL, layout.BATCH_CONTROL)
"""Advices have their own records; some banks use the regular ones for them."""


def _read_as(records: tuple[Record, ...], line: str) -> tuple[dict[str, Any], list[InvalidField]]:
    """Return the fields of a line, by the first of these records that can read it."""
    first, *others = (record.read_tolerantly(line) for record in records)
    return next((read for read in (first, *others) if not read[1]), first)


def _entry_of(values: Mapping[str, Any], addenda: tuple[Addenda, ...]) -> Entry:
    fields = {name: values[name] for name in Entry.__struct_fields__ if name in values}
    if "individual_name" not in fields:  # an international entry has its receiver's name in an addenda
        others = (each for each in addenda if isinstance(each, OtherAddenda))
        texts = (each.text for each in others if each.addenda_type_code == _NAME_OF_RECEIVER)
        fields["individual_name"] = next(texts, "")[43:78].strip()
    return Entry(addenda=addenda, **fields)


def _file_of(header: Mapping[str, Any]) -> AchFile:
    midnight = datetime.combine(header["file_creation_date"], time())
    return AchFile(
        created_at=midnight + header["file_creation_time"], **{name: header[name] for name in _FILE_HEADER_FIELDS}
    )
