"""Writes a file: every line from its table, every sum from the entries."""

import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from billfold.adapters.nacha_files import layout
from billfold.adapters.nacha_files.sums import directions_of, sums_of_batch, sums_of_file
from billfold.ports.ach_network import AchFile, Addenda, Batch, Change, Entry, Payment


def write_file(file: AchFile) -> bytes:
    """Return the file: lines of 94 columns, each with a line feed, in whole blocks of ten.

    Raises ValueError with record and field when something cannot be written as it is; nothing is
    cut short. `as_text` fits names and descriptions first.
    """
    lines = list(_lines(file))
    blocks = -(-(len(lines) + 1) // layout.BLOCK)
    sums = sums_of_file(file)
    lines.append(
        layout.FILE_CONTROL.write(
            {**sums._asdict(), "batch_count": len(file.batches), "block_count": blocks}
        )
    )
    lines += [layout.FILLER] * (blocks * layout.BLOCK - len(lines))
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def as_text(text: str, width: int) -> str:
    """Return a name or description as the network carries it: ASCII, upper case, cut to `width`.

    Letters lose their accents. What has no ASCII form becomes a space.
    """
    plain = unicodedata.normalize("NFKD", text)
    kept = (each for each in plain if not unicodedata.combining(each))
    ascii_only = "".join(each if each.isascii() and each.isprintable() else " " for each in kept)
    return " ".join(ascii_only.upper().split())[:width].rstrip()


def _lines(file: AchFile) -> Iterator[str]:
    at = file.created_at
    yield layout.FILE_HEADER.write(
        {
            "immediate_destination": file.destination,
            "immediate_origin": file.origin,
            "file_creation_date": at.date(),
            "file_creation_time": timedelta(hours=at.hour, minutes=at.minute),
            "file_id_modifier": file.modifier,
            "destination_name": file.destination_name,
            "origin_name": file.origin_name,
            "reference_code": file.reference,
        }
    )
    for batch in file.batches:
        yield from _batch_lines(batch)


def _batch_lines(batch: Batch) -> Iterator[str]:
    _expect_order(batch)
    told = {
        "service_class": directions_of(batch),
        "company_identification": batch.company_id,
        "originating_bank": batch.bank,
        "batch_number": batch.number,
    }
    yield layout.BATCH_HEADER.write(
        {
            **told,
            "company_name": batch.company,
            "discretionary_data": batch.discretionary,
            "entry_class": batch.entry_class,
            "entry_description": batch.purpose,
            "descriptive_date": batch.descriptive_date,
            "effective_entry_date": batch.effective_on,
            "settlement_date": batch.settlement_day,
            "originator_status": "1",
        }
    )
    for entry in batch.entries:
        yield _entry_line(entry)
        for number, addenda in enumerate(entry.addenda, start=1):
            yield _addenda_line(addenda, number, entry)
    yield layout.BATCH_CONTROL.write({**told, **sums_of_batch(batch)._asdict()})


def _expect_order(batch: Batch) -> None:
    if not batch.entries:
        reason = f"batch {batch.number} has no entries"
        raise ValueError(reason)
    for before, after in pairwise(batch.entries):
        if after.trace <= before.trace:
            reason = f"trace {after.trace} stands after {before.trace}: traces of a batch ascend"
            raise ValueError(reason)


def _entry_line(entry: Entry) -> str:
    return layout.ENTRY.write(
        {
            "transaction_code": entry.code,
            "routing_number": entry.routing_number,
            "account_number": entry.account_number,
            "amount": entry.amount,
            "identification": entry.identification,
            "name": entry.name,
            "discretionary_data": entry.discretionary,
            "addenda_indicator": "1" if entry.addenda else "0",
            "trace_number": entry.trace,
        }
    )


def _addenda_line(addenda: Addenda, number: int, entry: Entry) -> str:
    if isinstance(addenda, Payment):
        return layout.PAYMENT.write(
            {
                "payment_information": addenda.text,
                "addenda_sequence": number,
                "entry_sequence": entry.trace[8:],
            }
        )
    told = {
        "original_trace": addenda.original_trace,
        "original_bank": addenda.original_bank,
        "trace_number": entry.trace,
    }
    if isinstance(addenda, Change):
        return layout.CHANGE.write(
            {**told, "change_code": addenda.code, "corrected_data": addenda.corrected}
        )
    return layout.RETURN.write(
        {
            **told,
            "return_reason": addenda.reason,
            "date_of_death": addenda.died_on,
            "information": addenda.information,
        }
    )
