"""Inbound settlement files: a valid file is recorded, then each record is booked, or held in suspense.

Every command is safe to repeat: its key is the record's.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.ledger.bank import Bank
from billfold.ledger.commands import Outcome
from billfold.ledger.dry_run import dry_run
from billfold.ledger.types import Origin, Rail
from billfold.payments.cards.authorizations.commands import (
    CardPaymentKind,
    CardRecord,
    ChargeBack,
    ClearCard,
    RefundCard,
    Represent,
    references_of,
)
from billfold.payments.cards.authorizations.rules.refunds import NO_POCKET
from billfold.payments.cards.rules import BookCardSettlement
from billfold.payments.cards.settlement import records, store
from billfold.payments.cards.settlement.file_format import CALLER, DIFFERS, REPEATED, file_row, read_file, rows_of
from billfold.payments.cards.settlement.records import (
    Chargeback,
    Presentment,
    RecordOfCard,
    Refund,
    Representment,
    SettlementRecordRow,
)
from billfold.payments.files.inbound import InboundFiles
from billfold.payments.files.store import read_content
from billfold.payments.files.types import SETTLEMENT_LOOKBACK, InvalidFile, RailFile, StuckLine
from billfold.payments.suspense.rules import NOT_RETURNABLE, ReleaseFromSuspense, SuspenseStatus
from billfold.payments.suspense.store import find_items, get_item
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform import ids
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id

OPERATOR: Final = "operator"
_COMMANDS: Final[Mapping[type[RecordOfCard], type[CardRecord]]] = {
    Presentment: ClearCard,
    Refund: RefundCard,
    Chargeback: ChargeBack,
    Representment: Represent,
}


async def book_record(bank: Bank, record: RecordOfCard, holder: UUID, settles_on: date) -> Outcome:
    """Book a record to its card; return the outcome.

    Raises NotFound, and Refused if the rule refuses it or its Pocket is closed.
    """
    command = _command_of(record, holder, settles_on, caller=CALLER, key=record.record_id)
    return _require_booked((await bank.engine.submit(command)).outcome)


async def assignment_of(bank: Bank, row: SettlementRecordRow, card_id: UUID) -> CardRecord:
    """Return the command that books a record in suspense to a card; `carry_out_assignment` submits it.

    Raises NotFound for an unknown card. Refuses: suspense-item-settled, suspense-item-stays if it cannot be booked,
    and the rule's refusals.
    """
    _require_held((await get_item(bank.pool, row.item_id)).status)
    holder = (await store.find_holders(bank.pool, [card_id])).get(card_id)
    if holder is None:
        raise NotFound("There is no such card.")
    record = msgspec.structs.replace(await _read_record(bank, row), card_id=card_id)
    if await store.find_payments(bank.pool, [record.record_id]):
        raise Refused("suspense-item-stays", "A record with this id is booked already. Write this one off.")
    settles_on = await store.get_business_date(bank.pool, bank.own_id)
    command = _command_of(record, holder, settles_on, caller=OPERATOR, key=ids.new())
    async with bank.pool.acquire() as conn:
        _require_booked((await dry_run(conn, bank, command)).outcome)
    return command


async def carry_out_assignment(bank: Bank, command: CardRecord, *, item_id: UUID) -> Outcome:
    """Book a record to a card on the open business date, and release it from suspense. Safe to repeat.

    Refuses: suspense-item-settled, and the rule's refusals.
    """
    holder, bank_id = command.customers[0], bank.own_id
    item = await get_item(bank.pool, item_id)
    if await store.find_decision(bank.pool, holder, command.command_id) is None:
        _require_held(item.status)
    settles_on = await store.get_business_date(bank.pool, bank_id)
    answer = await bank.engine.submit(msgspec.structs.replace(command, settles_on=settles_on))
    outcome = _require_booked(answer.outcome)
    await bank.engine.submit(
        ReleaseFromSuspense(
            caller=OPERATOR,
            key=command_id("card-settlement.assign", item_id),
            customers=(bank_id,),
            origin=Origin.operator(),
            references=(item_id,),
            item_id=item_id,
            owner_id=holder,
            settles_on=settles_on,
        )
    )
    return outcome


def _command_of(record: RecordOfCard, holder: UUID, settles_on: date, *, caller: str, key: UUID) -> CardRecord:
    own: dict[str, Any] = {name: getattr(record, name) for name in ("merchant", "is_final") if hasattr(record, name)}
    referenced = []
    if isinstance(record, Chargeback | Representment):
        own["original_id"] = record.original_record_id
        referenced.append(record.original_record_id)
    return _COMMANDS[type(record)](
        caller=caller,
        key=key,
        customers=(holder,),
        record_id=record.record_id,
        card_id=record.card_id,
        amount=record.amount,
        settles_on=settles_on,
        network_reference=record.network_reference,
        interchange_cents=record.interchange,
        references=references_of(record.card_id, record.network_reference, *referenced),
        **own,
    )


def _require_booked(outcome: Outcome) -> Outcome:
    if outcome["status"] == NO_POCKET:
        raise Refused("pocket-not-open", "The Pocket of the card is closed.")
    return outcome


def _require_held(status: SuspenseStatus) -> None:
    if status != SuspenseStatus.HELD:
        raise Refused("suspense-item-settled", f"The item is {status} already.")


async def _read_record(bank: Bank, row: SettlementRecordRow) -> RecordOfCard:
    if row.reason == REPEATED:
        raise Refused("suspense-item-stays", "The record is booked from another line. Write this one off.")
    file = await asyncio.to_thread(read_file, await read_content(bank, row.file_id))
    record = dict(file.records)[row.line]
    if not isinstance(record, Presentment | Refund | Chargeback | Representment):
        raise Refused("suspense-item-stays", f"The record is not a card payment ({row.reason}). Write it off.")
    return record


AHEAD_MAX: Final = timedelta(days=7)
"""Maximum distance of a file's settlement date from the open business date, into the future."""
STUCK_RECORDS_MAX: Final = 100
"""If more records fail, they are not the cause: the whole file is tried again."""
_CONCURRENT_RECORDS: Final = 200
_STAYS = "Run `billfold card-settlement assign`, or `billfold card-settlement write-off`."


class CardSettlementFiles(InboundFiles):
    """Processes the files of the card processor."""

    rail = "CARD"
    whole_file = records.SettlementMistake(0, "")

    @override
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        return command_id("card-settlement-file", f"{name}:{digest}:{attempt}")

    @override
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> dict[str, Any]:
        settlement = await asyncio.to_thread(read_file, content)
        rows = await _accept_file(bank, file.file_id, settlement)
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
    """Books the records of one file, each type after the types that it refers to."""

    def __init__(self, bank: Bank, file: records.SettlementFile, rows: Sequence[records.SettlementRecordRow]) -> None:
        self._bank, self._file, self._rows = bank, file, rows
        self._bank_id = bank.own_id
        self._semaphore = asyncio.Semaphore(_CONCURRENT_RECORDS)
        self._holders: Mapping[UUID, UUID] = {}
        self._booked: Mapping[UUID, store.BookedRecord] = {}
        self.held: list[dict[str, Any]] = []
        self.stuck: list[StuckLine] = []

    async def run(self) -> None:
        """Book everything; records that fail other than by a refusal are `stuck` and tried again later."""
        await self._book_own()
        self._holders = await store.find_holders(self._bank.pool, {e.card_id for e in self._rows if e.card_id})
        self._booked = await store.find_payments(self._bank.pool, [e.record_id for e in self._rows if e.record_id])
        items = await find_items(self._bank.pool, [each.item_id for each in self._rows])
        held = {each.item_id for each in items}
        for row, item in ((row, item) for row in self._rows for item in items if item.item_id == row.item_id):
            self._report(row, item.reason)
        lines = [(row, record) for row, (_, record) in zip(self._rows, self._file.records, strict=True)]
        for record_type in records.RecordType:
            await asyncio.gather(
                *(
                    self._attempt(row, each)
                    for row, each in lines
                    if row.type == record_type and row.item_id not in held
                )
            )

    async def _book_own(self) -> None:
        interchange = self._file.trailer.interchange
        fees = sum(each.amount for each in self._rows if each.type == records.RecordType.FEE and each.reason is None)
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

    async def _attempt(self, row: records.SettlementRecordRow, record: records.Record | records.Unreadable) -> None:
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

    async def _refusal(
        self, row: records.SettlementRecordRow, record: records.Record | records.Unreadable
    ) -> str | None:
        """Book a record; return why it cannot be booked, or None."""
        if row.reason is not None or isinstance(record, records.Unreadable | records.Fee):
            return row.reason
        booked = self._booked.get(record.record_id)
        if booked is not None:  # before the file, or by an interrupted attempt
            return None if booked == _as_booked(record) else DIFFERS
        holder = self._holders.get(record.card_id)
        if holder is None:
            return "unknown-card"
        try:
            await book_record(self._bank, record, holder, self._file.header.settles_on)
        except (NotFound, Refused) as refused:
            return refused.code
        return None

    async def _hold(self, row: records.SettlementRecordRow, reason: str) -> None:
        item = UnclaimedPayment(
            row.item_id,
            row.direction,
            row.amount,
            reason=reason,
            details={NOT_RETURNABLE: _STAYS, "file_id": str(row.file_id), "line": row.line, "type": row.type},
            settles_on=self._file.header.settles_on,
        )
        await hold_unclaimed_payments(self._bank, [item], rail=Rail.CARD, caller=CALLER)

    def _report(self, row: records.SettlementRecordRow, reason: str) -> None:
        self.held.append({"line": row.line, "record_id": row.record_id, "item_id": row.item_id, "reason": reason})


def _as_booked(record: records.RecordOfCard) -> store.BookedRecord:
    kind = CardPaymentKind.PURCHASE if isinstance(record, records.Presentment) else CardPaymentKind(record.type)
    return store.BookedRecord(record.record_id, record.card_id, kind, record.amount, record.interchange)


async def _accept_file(
    bank: Bank, file_id: UUID, file: records.SettlementFile
) -> Sequence[records.SettlementRecordRow]:
    """Return the records as stored. Raises InvalidFile; an accepted file stays accepted."""
    header = file.header
    known = await store.find_files(bank.pool, file_id, header.reference)
    if any(each.file_id == file_id for each in known):
        return await store.list_records(bank.pool, file_id)
    open_day = await store.get_business_date(bank.pool, bank.own_id)
    if mistakes := [
        records.SettlementMistake(1, each) for each in _mistakes(bank, header, open_day, is_known=bool(known))
    ]:
        raise InvalidFile(mistakes)
    async with bank.pool.acquire() as conn, conn.transaction():
        ids = [each.record_id for _, each in file.records if not isinstance(each, records.Unreadable)]
        rows = rows_of(file_id, file.records, await store.find_recorded(conn, ids))
        await store.save_file(conn, file_row(file_id, file), rows, now=await bank.now(conn))
    return rows


def _mistakes(bank: Bank, header: records.Header, open_day: date, *, is_known: bool) -> Iterator[str]:
    if header.bank != bank.settings.bank_routing_number:
        yield f"it is for bank {header.bank}, not {bank.settings.bank_routing_number}"
    calendars = bank.calendars
    # A settlement date that has since been declared closed is kept, and settles later.
    if not calendars.is_fed_day(header.settles_on) and header.settles_on not in calendars.closures():
        yield f"nothing settles on {header.settles_on}"
    elif not open_day - SETTLEMENT_LOOKBACK <= header.settles_on <= open_day + AHEAD_MAX:
        yield f"it settles on {header.settles_on}, too far from the open business date {open_day}"
    if is_known:
        yield f"another file has the reference {header.reference}"
