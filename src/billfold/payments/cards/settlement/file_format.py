"""The settlement file: JSON lines (RFC 8259, UTF-8), a header, records, and a trailer with counts and sums.

A line that is not a record does not invalidate the file: the trailer states the totals. `docs/reference` has the
format.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from billfold.ledger.types import Direction
from billfold.payments.cards.settlement.records import (
    AMOUNT_MAX,
    FORMAT,
    VERSION,
    Fee,
    Header,
    NumberedRecord,
    Record,
    RecordType,
    SettlementFile,
    SettlementFileRow,
    SettlementMistake,
    SettlementRecordRow,
    Total,
    Trailer,
    Unreadable,
)
from billfold.payments.files.types import InvalidFile
from billfold.platform.ids import command_id

_LINES_MIN: Final = 2
_header, _trailer = msgspec.json.Decoder(Header), msgspec.json.Decoder(Trailer)
_record: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)
TOTALS: Final = {
    RecordType.PRESENTMENT: "presentments",
    RecordType.REFUND: "refunds",
    RecordType.CHARGEBACK: "chargebacks",
    RecordType.REPRESENTMENT: "representments",
    RecordType.FEE: "fees",
}
_SIGN: Final = {"presentments": 1, "refunds": -1, "chargebacks": -1, "representments": 1, "fees": 1}
_Frame = TypeVar("_Frame", Header, Trailer)


def write_file(header: Header, records: Iterable[Record]) -> bytes:
    """Return a file with its trailer."""
    lines = [*records]
    return b"".join(msgspec.json.encode(each) + b"\n" for each in (header, *lines, trailer_of(lines)))


def trailer_of(records: Sequence[Record | Unreadable]) -> Trailer:
    """Return the trailer of these records."""
    interchange = sum(each.interchange for each in records)
    return Trailer(
        records=len(records),
        **{name: _total(records, each) for each, name in TOTALS.items()},
        interchange=interchange,
        net_settlement=sum(each.paid for each in records) - interchange,
    )


def read_file(content: bytes) -> SettlementFile:
    """Return the content of a file. Raises InvalidFile for one that is truncated or has wrong totals."""
    lines = content.removesuffix(b"\n").split(b"\n")
    if len(lines) < _LINES_MIN:
        raise InvalidFile([SettlementMistake(0, "it has no header and trailer")])
    header, trailer = _decode(_header, lines[0], 1), _decode(_trailer, lines[-1], len(lines))
    if (header.format, header.version, header.currency) != (FORMAT, VERSION, "USD"):
        raise InvalidFile([SettlementMistake(1, f"it is not {FORMAT} {VERSION} in USD")])
    records = [(number, _read(line)) for number, line in enumerate(lines[1:-1], start=2)]
    return SettlementFile(header, _check_totals(records, trailer, len(lines)), trailer)


def _decode(decoder: msgspec.json.Decoder[_Frame], line: bytes, number: int) -> _Frame:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidFile([SettlementMistake(number, str(error))]) from None


def _read(line: bytes) -> Record | Unreadable:
    try:
        return _record.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Unreadable(str(error))


def _check_totals(records: list[NumberedRecord], trailer: Trailer, number: int) -> list[NumberedRecord]:
    """Return the records, with the trailer's remainder assigned to the first unreadable one. Raises InvalidFile."""
    unreadable = [nth for nth, (_, each) in enumerate(records) if isinstance(each, Unreadable)]
    found = trailer_of([each for _, each in records])
    left = {name: _difference(getattr(trailer, name), getattr(found, name)) for name in TOTALS.values()}
    paid = sum(_SIGN[name] * total.amount for name, total in left.items())
    interchange = trailer.interchange - found.interchange
    wrong = {
        **{name: total.count < 0 or not 0 <= total.amount <= AMOUNT_MAX * total.count for name, total in left.items()},
        "records": trailer.records != len(records) or sum(total.count for total in left.values()) != len(unreadable),
        "interchange": abs(interchange) > AMOUNT_MAX * len(unreadable),
        "net_settlement": trailer.net_settlement != found.net_settlement + paid - interchange,
    }
    if mistakes := [SettlementMistake(number, _wrong_total(name, trailer, found)) for name in wrong if wrong[name]]:
        raise InvalidFile(mistakes)
    if unreadable:
        line, first = records[unreadable[0]]
        assert isinstance(first, Unreadable)
        records[unreadable[0]] = (line, first._replace(paid=paid, interchange=interchange))
    return records


def _total(records: Sequence[Record | Unreadable], of: RecordType) -> Total:
    amounts = [each.amount for each in records if not isinstance(each, Unreadable) and each.type == of]
    return Total(count=len(amounts), amount=sum(amounts))


def _difference(stated: Total, found: Total) -> Total:
    return Total(count=stated.count - found.count, amount=stated.amount - found.amount)


def _wrong_total(name: str, trailer: Trailer, found: Trailer) -> str:
    stated, counted = (msgspec.json.encode(getattr(each, name)).decode() for each in (trailer, found))
    return f"{name} is {stated}, but the records come to {counted}"


CALLER: Final = "card-settlement"
"""The caller that books records, under their own ids."""
REPEATED: Final = "repeated"
"""The reason for holding a record that occurs twice."""
DIFFERS: Final = "differs-from-booked"
"""The reason for holding a record that was booked before with other content."""


def file_row(file_id: UUID, file: SettlementFile) -> SettlementFileRow:
    """Return a file as stored."""
    header, trailer = file.header, file.trailer
    return SettlementFileRow(
        file_id=file_id,
        reference=header.reference,
        settles_on=header.settles_on,
        records=trailer.records,
        **{name: getattr(trailer, name).amount for name in TOTALS.values()},
        interchange=trailer.interchange,
        net_settlement=trailer.net_settlement,
    )


def rows_of(file_id: UUID, records: Sequence[NumberedRecord], recorded: Collection[UUID]) -> list[SettlementRecordRow]:
    """Return the records as stored; one that was `recorded` before, or occurs twice, is not booked again."""
    seen, rows = {*recorded}, []
    for line, record in records:
        record_id = card_id = None
        if isinstance(record, Unreadable):
            reason: str | None = f"unreadable: {record.reason}"
        else:
            record_id = record.record_id
            reason = REPEATED if record_id in seen else None
            seen.add(record_id)
        if not isinstance(record, Unreadable | Fee):
            card_id = record.card_id
        rows.append(
            SettlementRecordRow(
                file_id=file_id,
                line=line,
                type=record.type,
                record_id=record_id,
                card_id=card_id,
                direction=Direction.CREDIT if record.paid < 0 else Direction.DEBIT,
                amount=abs(record.paid),
                interchange=record.interchange,
                item_id=command_id("card-settlement.item", f"{file_id}:{line}"),
                reason=reason,
            )
        )
    return rows
