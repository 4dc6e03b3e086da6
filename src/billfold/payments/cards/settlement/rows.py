"""An accepted file as rows: what its trailer states, and what each record moves."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from billfold.ledger.types import Direction
from billfold.payments.cards.settlement.file_format import TOTALS
from billfold.payments.cards.settlement.types import (
    Fee,
    NumberedRecord,
    SettlementFile,
    SettlementFileRow,
    SettlementRecordRow,
    Unreadable,
)
from billfold.platform.ids import command_id

CALLER: Final = "card-settlement"
"""Books records, under their own ids."""
REPEATED: Final = "repeated"
"""Why a record is held that another line has."""
DIFFERS: Final = "differs-from-booked"
"""Why one is held that was booked before, as something else."""


def file_row(file_id: UUID, file: SettlementFile) -> SettlementFileRow:
    """Return a file as it is stored."""
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
    """Return the records as they are stored; one that was `recorded` before, or stands twice, is not booked again."""
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
