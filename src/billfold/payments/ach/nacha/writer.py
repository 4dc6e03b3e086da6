"""Writes NACHA files: records from their layouts, control totals from the entries."""

import unicodedata
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from billfold.payments.ach.nacha import layout, records

_LINE = layout.WIDTH + 1
"""Bytes of a line including its line feed."""
_ADDENDA: Mapping[type[records.Addenda], layout.Record] = {
    records.PaymentAddenda: layout.PAYMENT,
    records.NocAddenda: layout.CHANGE,
    records.ReturnAddenda: layout.RETURN,
    records.OtherAddenda: layout.OTHER,
}


class NachaWriter:
    """Writes line by line: 94 columns and a line feed, in whole blocks of ten.

    Raises ValueError with record and field if a value does not fit; nothing is truncated. Use
    `to_ach_text` for names and descriptions first.
    """

    def __init__(self, file_header: records.AchFile) -> None:
        self._out = bytearray()
        self._batch: records.Batch | None = None
        self._header_at = 0
        self._last_trace = ""
        self._batch_totals, self._file_totals = records.TotalsCounter(), records.TotalsCounter()
        self._batches = 0
        self._line(_file_header(file_header))

    def begin(self, batch: records.Batch) -> None:
        """Begin a batch and end the one before."""
        self._end_batch()
        self._batch, self._batch_totals, self._last_trace = batch, records.TotalsCounter(), ""
        self._header_at = len(self._out)
        # The header is written at the end of the batch: the service class depends on the entries.
        self._out += b" " * _LINE

    def add(self, entry: records.Entry) -> None:
        """Write an entry of the batch."""
        if entry.trace_number <= self._last_trace:
            reason = f"trace {entry.trace_number} stands after {self._last_trace}: "
            raise ValueError(reason + "traces of a batch ascend")
        self._last_trace = entry.trace_number
        self._line(_entry_line(entry))
        for number, addenda in enumerate(entry.addenda, start=1):
            self._line(_addenda_line(addenda, number, entry))
        self._batch_totals.add(entry)

    def end(self) -> bytes:
        """Return the file with its control totals."""
        self._end_batch()
        lines = len(self._out) // _LINE
        blocks = -(-(lines + 1) // layout.BLOCK)
        totals = {"batch_count": self._batches, "block_count": blocks}
        self._line(layout.FILE_CONTROL.write({**self._file_totals.sums._asdict(), **totals}))
        for _ in range(blocks * layout.BLOCK - lines - 1):
            self._line(layout.FILLER)
        return bytes(self._out)

    def _line(self, text: str) -> None:
        self._out += text.encode("ascii")
        self._out += b"\n"

    def _end_batch(self) -> None:
        batch, self._batch = self._batch, None
        if batch is None:
            return
        if not self._last_trace:
            reason = f"batch {batch.batch_number} has no entries"
            raise ValueError(reason)
        values = {**msgspec.structs.asdict(batch), "service_class_code": self._batch_totals.service_class}
        header = layout.BATCH_HEADER.write({**values, "originator_status_code": "1"}).encode("ascii")
        self._out[self._header_at : self._header_at + layout.WIDTH] = header
        self._out[self._header_at + layout.WIDTH] = ord("\n")
        sums = self._batch_totals.sums
        self._line(layout.BATCH_CONTROL.write({**values, **sums._asdict()}))
        self._file_totals.add_batch(sums)
        self._batches += 1


def write_file(file: records.AchFile) -> bytes:
    """Return the content of a whole file. Raises ValueError as the writer does."""
    writer = NachaWriter(file)
    for batch in file.batches:
        writer.begin(batch)
        for entry in batch.entries:
            writer.add(entry)
    return writer.end()


def to_ach_text(text: str, width: int) -> str:
    """Return a name or description in the form of the ACH network: ASCII, upper case, cut to `width`.

    Letters lose their accents; characters without an ASCII form become spaces.
    """
    if not (text.isascii() and text.isprintable()):
        decomposed = unicodedata.normalize("NFKD", text)
        characters = (each for each in decomposed if not unicodedata.combining(each))
        text = "".join(each if each.isascii() and each.isprintable() else " " for each in characters)
    return " ".join(text.upper().split())[:width].rstrip()


def _file_header(file: records.AchFile) -> str:
    at = file.created_at
    clock = {"file_creation_date": at.date(), "file_creation_time": timedelta(hours=at.hour, minutes=at.minute)}
    return layout.FILE_HEADER.write({**msgspec.structs.asdict(file), **clock})


def _entry_line(entry: records.Entry) -> str:
    indicator = "1" if entry.addenda else "0"
    return layout.ENTRY.write({**msgspec.structs.asdict(entry), "addenda_record_indicator": indicator})


def _addenda_line(addenda: records.Addenda, number: int, entry: records.Entry) -> str:
    numbers = {
        "addenda_sequence_number": number,
        "entry_detail_sequence_number": entry.trace_number[8:],
        "trace_number": entry.trace_number,
    }
    return _ADDENDA[type(addenda)].write({**msgspec.structs.asdict(addenda), **numbers})
