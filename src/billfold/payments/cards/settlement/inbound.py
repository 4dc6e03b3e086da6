"""Inbound settlement files: a valid file is recorded, then each record is booked, or held in suspense.

Every command is safe to repeat: its key is the record's.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final
from uuid import UUID

from typing_extensions import override

from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Rail
from billfold.payments.cards.authorizations.types import CardPaymentKind
from billfold.payments.cards.settlement import store
from billfold.payments.cards.settlement.booking import book_record
from billfold.payments.cards.settlement.commands import BookCardSettlement
from billfold.payments.cards.settlement.file_format import read_file
from billfold.payments.cards.settlement.rows import CALLER, DIFFERS, file_row, rows_of
from billfold.payments.cards.settlement.types import (
    Fee,
    Header,
    Presentment,
    Record,
    RecordOfCard,
    RecordType,
    SettlementFile,
    SettlementMistake,
    SettlementRecordRow,
    Unreadable,
)
from billfold.payments.files.inbound import InboundFiles
from billfold.payments.files.types import SETTLEMENT_LOOKBACK, InvalidFile, RailFile, StuckLine
from billfold.payments.suspense.commands import HoldInSuspense
from billfold.payments.suspense.store import find_items
from billfold.payments.suspense.types import NOT_RETURNABLE
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id

AHEAD_MAX: Final = timedelta(days=7)
"""How far ahead of the open business date a file may settle."""
STUCK_RECORDS_MAX: Final = 100
"""More than that, and the cause is not the records: the whole file is tried again."""
_CONCURRENT_RECORDS: Final = 200
_STAYS = "Run `billfold card-settlement assign`, or `billfold card-settlement write-off`."


class CardSettlementFiles(InboundFiles):
    """Processes the files of the card processor."""

    rail = "CARD"
    whole_file = SettlementMistake(0, "")

    @override
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        return command_id("card-settlement-file", f"{name}:{digest}:{attempt}")

    @override
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> dict[str, Any]:
        settlement = await asyncio.to_thread(read_file, content)
        rows = await _accept(bank, file.file_id, settlement)
        booking = _Booking(bank, settlement, rows)
        await booking.run()
        return {
            "reference": settlement.header.reference,
            "settles_on": settlement.header.settles_on,
            "net_settlement": settlement.trailer.net_settlement,
            "records": len(rows),
            "held": sorted(booking.held, key=lambda each: each["line"]),
            "stuck": sorted(booking.stuck, key=lambda each: each.line),
        }


class _Booking:
    """Books the records of one file, each type after those that it refers to."""

    def __init__(self, bank: Bank, file: SettlementFile, rows: Sequence[SettlementRecordRow]) -> None:
        self._bank, self._file, self._rows = bank, file, rows
        self._bank_id = bank_customer_id(bank.seed)
        self._semaphore = asyncio.Semaphore(_CONCURRENT_RECORDS)
        self._holders: Mapping[UUID, UUID] = {}
        self._booked: Mapping[UUID, store.BookedRecord] = {}
        self.held: list[dict[str, Any]] = []
        self.stuck: list[StuckLine] = []

    async def run(self) -> None:
        """Book everything; what fails otherwise than by a refusal is `stuck` and tried again later."""
        await self._book_own()
        self._holders = await store.find_holders(self._bank.pool, {e.card_id for e in self._rows if e.card_id})
        self._booked = await store.find_payments(self._bank.pool, [e.record_id for e in self._rows if e.record_id])
        items = await find_items(self._bank.pool, [each.item_id for each in self._rows])
        held = {each.item_id for each in items}
        for row, item in ((row, item) for row in self._rows for item in items if item.item_id == row.item_id):
            self._report(row, item.reason)
        lines = [(row, record) for row, (_, record) in zip(self._rows, self._file.records, strict=True)]
        for record_type in RecordType:
            await asyncio.gather(
                *(
                    self._attempt(row, each)
                    for row, each in lines
                    if row.type == record_type and row.item_id not in held
                )
            )

    async def _book_own(self) -> None:
        interchange = self._file.trailer.interchange
        fees = sum(each.amount for each in self._rows if each.type == RecordType.FEE and each.reason is None)
        if not (interchange or fees):
            return
        await self._bank.engine.submit(
            BookCardSettlement(
                caller=CALLER,
                key=self._rows[0].file_id,
                customers=(self._bank_id,),
                file_id=self._rows[0].file_id,
                settles_on=self._file.header.settles_on,
                interchange=interchange,
                fees=fees,
            )
        )

    async def _attempt(self, row: SettlementRecordRow, record: Record | Unreadable) -> None:
        try:
            async with self._semaphore:
                reason = await self._refusal(row, record)
                if reason is not None and row.amount:
                    await self._hold(row, reason)
        except Exception as error:  # a bug in one record must not block others
            if is_shortage(error) or len(self.stuck) >= STUCK_RECORDS_MAX:
                raise
            self.stuck.append(StuckLine(row.line, str(row.record_id), error_summary(error)))
        else:
            if reason is not None:
                self._report(row, reason)

    async def _refusal(self, row: SettlementRecordRow, record: Record | Unreadable) -> str | None:
        """Book a record; return why it cannot be booked, or None."""
        if row.reason is not None or isinstance(record, Unreadable | Fee):
            return row.reason
        booked = self._booked.get(record.record_id)
        if booked is not None:  # before the file, or by an attempt that was interrupted
            return None if booked == _as_booked(record) else DIFFERS
        holder = self._holders.get(record.card_id)
        if holder is None:
            return "unknown-card"
        try:
            await book_record(self._bank, record, holder, self._file.header.settles_on)
        except (NotFound, Refused) as refused:
            return refused.code
        return None

    async def _hold(self, row: SettlementRecordRow, reason: str) -> None:
        await self._bank.engine.submit(
            HoldInSuspense(
                caller=CALLER,
                key=row.item_id,
                customers=(self._bank_id,),
                item_id=row.item_id,
                rail=Rail.CARD,
                direction=row.direction,
                amount=row.amount,
                reason=reason,
                details={NOT_RETURNABLE: _STAYS, "file_id": str(row.file_id), "line": row.line, "type": row.type},
                settles_on=self._file.header.settles_on,
            )
        )

    def _report(self, row: SettlementRecordRow, reason: str) -> None:
        self.held.append({"line": row.line, "record_id": row.record_id, "item_id": row.item_id, "reason": reason})


def _as_booked(record: RecordOfCard) -> store.BookedRecord:
    kind = CardPaymentKind.PURCHASE if isinstance(record, Presentment) else CardPaymentKind(record.type)
    return store.BookedRecord(record.record_id, record.card_id, kind, record.amount, record.interchange)


async def _accept(bank: Bank, file_id: UUID, file: SettlementFile) -> Sequence[SettlementRecordRow]:
    """Return the records as they are stored. Raises InvalidFile; a file that was accepted stays so."""
    header = file.header
    known = await store.find_files(bank.pool, file_id, header.reference)
    if any(each.file_id == file_id for each in known):
        return await store.list_records(bank.pool, file_id)
    open_day = await store.get_business_date(bank.pool, bank_customer_id(bank.seed))
    if mistakes := [SettlementMistake(1, each) for each in _mistakes(bank, header, open_day, is_known=bool(known))]:
        raise InvalidFile(mistakes)
    async with bank.pool.acquire() as conn, conn.transaction():
        ids = [each.record_id for _, each in file.records if not isinstance(each, Unreadable)]
        rows = rows_of(file_id, file.records, await store.find_recorded(conn, ids))
        await store.save_file(conn, file_row(file_id, file), rows, now=await bank.now(conn))
    return rows


def _mistakes(bank: Bank, header: Header, open_day: date, *, is_known: bool) -> Iterator[str]:
    if header.bank != bank.settings.bank_routing_number:
        yield f"it is for bank {header.bank}, not {bank.settings.bank_routing_number}"
    calendars = bank.calendars
    # What was to settle on a day that has been declared closed since keeps that day, and settles later.
    if not calendars.is_fed_day(header.settles_on) and header.settles_on not in calendars.closures():
        yield f"nothing settles on {header.settles_on}"
    elif not open_day - SETTLEMENT_LOOKBACK <= header.settles_on <= open_day + AHEAD_MAX:
        yield f"it settles on {header.settles_on}, too far from the open business date {open_day}"
    if is_known:
        yield f"another file has the reference {header.reference}"
