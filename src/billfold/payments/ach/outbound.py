"""Windows: at each deadline the waiting entries and returns are sent in one file.

Steps: assign trace numbers and the file, compose and store the file, transmit it, confirm it to the
customers. Each step is idempotent: after a crash another process continues and sends nothing twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

import msgspec
import structlog

from billfold.accounts.counterparties.rules.verification_kinds import SANCTION_SCREEN_FAILED
from billfold.data_keys.keys import DataKeys, DataShredded, PartyField, PaymentKeys, bank_key
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.dry_run import submit_in_lots
from billfold.ledger.types import Direction, ScheduledJob
from billfold.payments.ach import store
from billfold.payments.ach.commands import (
    AchStatus,
    CollectAch,
    MarkAchTransmitted,
    RescheduleAch,
    ReturnEntry,
    ReviewAch,
    SettleAch,
)
from billfold.payments.ach.nacha.records import AchFile, Batch, Entry, PaymentAddenda, ReturnAddenda
from billfold.payments.ach.nacha.writer import NachaWriter, to_ach_text
from billfold.payments.ach.rules.entries import ACH_WINDOW, window_at
from billfold.payments.ach.rules.windows import next_deadline, same_day_descriptive_date
from billfold.payments.ach.store import NumberedFile, OutgoingEntry, OutgoingReturn
from billfold.payments.files import store as file_store
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.store import read_content, seal_content
from billfold.payments.suspense.rules import NOT_RETURNABLE
from billfold.payments.suspense.worker import CLOSED_POCKET_REASON, UnclaimedPayment, hold_unclaimed_payments
from billfold.platform.errors import InvariantError
from billfold.platform.ids import command_id, digits

OPERATOR, OPERATOR_NAME = "061000146", "FEDERAL RESERVE BANK"
"""The ACH operator that receives our files."""
_CODES: dict[tuple[str, str], str] = {
    ("CHECKING", Direction.CREDIT): "22",
    ("CHECKING", Direction.DEBIT): "27",
    ("SAVINGS", Direction.CREDIT): "32",
    ("SAVINGS", Direction.DEBIT): "37",
}


class AchFileComposer:
    """Composes one file from its rows. Consecutive entries with the same batch fields form a batch."""

    def __init__(self, bank: Bank, file: NumberedFile) -> None:
        self._seed = bank.seed
        self._own_routing_prefix = bank.settings.bank_routing_number[:8]
        self._writer = NachaWriter(
            AchFile(
                immediate_destination=OPERATOR,
                immediate_destination_name=OPERATOR_NAME,
                immediate_origin=bank.settings.bank_routing_number,
                immediate_origin_name=to_ach_text(bank.settings.bank_name, 23),
                created_at=file.clock,
                file_id_modifier=file.modifier,
            )
        )
        self._batches = 0
        self._batch_key: tuple[object, ...] | None = None

    def add(self, entries: Iterable[OutgoingEntry], keys: PaymentKeys) -> None:
        """Write entries in the order of their trace numbers, opened with the keys of their customers."""
        for each in entries:
            if each.batch_key != self._batch_key:
                self._batch_key = each.batch_key
                self._writer.begin(self._batch(each))
            self._writer.add(self._entry(each, keys))

    def add_return_entries(self, returns: Iterable[OutgoingReturn], keys: PaymentKeys) -> None:
        """Write returns in the order of their trace numbers, opened."""
        for customer_id, trace, stored in returns:
            return_entry = _decrypt_return(customer_id, stored, keys)
            batch_key = (
                "answer",
                return_entry.company,
                return_entry.company_id,
                return_entry.entry_class,
                return_entry.purpose,
            )
            if batch_key != self._batch_key:
                self._batch_key = batch_key
                self._writer.begin(self._return_batch(return_entry))
            self._writer.add(_return_entry(trace, return_entry))

    def end(self) -> bytes:
        """Return the content of the file."""
        return self._writer.end()

    def _next_number(self) -> int:
        self._batches += 1
        return self._batches

    def _batch(self, first: OutgoingEntry) -> Batch:
        return Batch(
            batch_number=self._next_number(),
            company_name=to_ach_text(first.company_name, 16),
            company_identification="9" + digits(self._seed, first.customer_id, 0, count=9),
            standard_entry_class_code=first.sec_code,
            company_entry_description=to_ach_text(first.description, 10),
            effective_entry_date=first.effective_on,
            originating_dfi_identification=self._own_routing_prefix,
            company_descriptive_date=same_day_descriptive_date(first.due_at, first.effective_on),
        )

    def _entry(self, entry: OutgoingEntry, keys: PaymentKeys) -> Entry:
        account_number = keys.open(PartyField.ACCOUNT, entry.customer_id, entry.account_number)
        if account_number is None:
            raise DataShredded(entry.customer_id)
        return Entry(
            transaction_code=_CODES[entry.account_type, entry.direction],
            routing_number=entry.routing_number,
            dfi_account_number=account_number,
            amount=entry.amount,
            individual_name=to_ach_text(entry.party_name, 22),
            individual_identification_number=entry.identification,
            discretionary_data="S" if entry.sec_code == "WEB" else "",
            trace_number=entry.trace_number,
            addenda=tuple(PaymentAddenda(to_ach_text(line, 80)) for line in entry.lines),
        )

    def _return_batch(self, first: ReturnEntry) -> Batch:
        return Batch(
            batch_number=self._next_number(),
            company_name=first.company,
            company_identification=first.company_id,
            standard_entry_class_code=first.entry_class,
            company_entry_description=first.purpose,
            effective_entry_date=None,
            originating_dfi_identification=self._own_routing_prefix,
        )


def _decrypt_return(customer_id: UUID, stored: ReturnEntry, keys: PaymentKeys) -> ReturnEntry:
    """Return a return in plain text. If a key was destroyed, its trace number remains to identify it."""
    return msgspec.structs.replace(
        stored,
        account_number=keys.open(PartyField.ACCOUNT, customer_id, stored.account_number) or "0",
        name=keys.open(PartyField.TEXT, customer_id, stored.name) or "",
        identification=keys.open(PartyField.TEXT, customer_id, stored.identification) or "",
        company_id=keys.open(PartyField.TEXT, customer_id, stored.company_id) or "",
    )


def _return_entry(trace: str, return_entry: ReturnEntry) -> Entry:
    return Entry(
        transaction_code=return_entry.code,
        routing_number=return_entry.routing_number,
        dfi_account_number=return_entry.account_number,
        amount=return_entry.amount,
        individual_name=return_entry.name,
        individual_identification_number=return_entry.identification,
        trace_number=trace,
        addenda=(
            ReturnAddenda(
                return_reason_code=return_entry.reason,
                original_entry_trace_number=return_entry.original_trace,
                original_receiving_dfi_identification=return_entry.original_bank,
                addenda_information=return_entry.information,
            ),
        ),
    )


log = structlog.get_logger(__name__)

COLLECT_JOB, COUNT_SETTLED_JOB = "ach.collect", "ach.count"
"""Scheduled jobs of a file: its debits are booked, its entries count as settled."""
OnHanded = Callable[["Bank", NumberedFile], Awaitable[None]]
"""Called after a file is transmitted; the sandbox schedules its simulated answer."""
ENTRIES_PER_COMMAND = 500
"""Maximum entries of one command."""


class AchWindows:
    """Opens windows and transmits their files."""

    def __init__(self, on_handed: OnHanded | None = None) -> None:
        self._on_handed = on_handed

    async def open_window(self, bank: Bank, at: ScheduledJob) -> None:
        """Send everything that is due, and complete files of an interrupted process."""
        if await _postpone_job(bank, at):
            return
        await _reject_stopped(bank, at.at)
        await reschedule_late(bank)
        sent = await self.assign_numbers(bank, at.at)
        for file in await store.list_unconfirmed(bank.pool):
            size = await self.transmit(bank, file)
            await self.confirm(bank, file)
            log.info("ach_file_transmitted", name=file.name, bytes=size)
        if sent:
            # Entries accepted while this window closed have no job yet: open the next window.
            next_at = next_deadline(await bank.now(), bank.calendars)
            await scheduler.schedule(bank.pool, [ScheduledJob(ACH_WINDOW, window_at(next_at), None, at=next_at)])

    async def assign_numbers(self, bank: Bank, by: datetime) -> bool:
        """Assign trace numbers and a file to everything due by then. False if nothing is due."""
        now = await bank.now()
        by = max(now, by)
        set_aside = await _find_unreadable(bank, by)
        async with bank.pool.acquire() as conn, conn.transaction():
            is_numbered = await store.number_waiting(
                conn, by=by, now=now, bank=bank.settings.bank_routing_number[:8], without=set_aside
            )
        return is_numbered or bool(set_aside)

    async def transmit(self, bank: Bank, file: NumberedFile) -> int:
        """Compose and store a file unless it is stored, transmit it; return its size in bytes."""
        if not await bank.pool.fetchval(_EXISTS, file.file_id):
            written = await self._write(bank, file)
            sealed = await asyncio.to_thread(seal_content, await bank_key(bank), file.file_id, written)
            await file_store.save_outbound(
                bank.pool, file.file_id, "ACH", name=file.name, content=sealed, now=file.made_at
            )
            del written, sealed
        content = await read_content(bank, file.file_id)
        await bank.ports[RailExchanges].ach.transmit(file.name, content)
        return len(content)

    async def confirm(self, bank: Bank, file: NumberedFile) -> None:
        """Mark the entries of a file as transmitted, and complete the file."""
        entries = await store.entries_by_customer(bank.pool, file.file_id)
        await _submit_by_customer(bank, MarkAchTransmitted, entries, caller="ach-file", key=f"sent:{file.name}")
        now = await bank.now()
        await scheduler.schedule(bank.pool, _jobs_of(file))
        if self._on_handed is not None:
            await self._on_handed(bank, file)
        await file_store.complete_file(bank.pool, file.file_id, "TRANSMITTED", now=now)
        await store.mark_confirmed(bank.pool, file.file_id, now)

    async def _write(self, bank: Bank, file: NumberedFile) -> bytes:
        composer = AchFileComposer(bank, file)
        async with bank.pool.acquire() as conn, conn.transaction():
            async for entries in store.read_entries(conn, file.file_id):
                keys = await PaymentKeys.load(bank, {each.customer_id for each in entries})
                await asyncio.to_thread(composer.add, entries, keys)
            async for answers in store.read_return_entries(conn, file.file_id):
                keys = await PaymentKeys.load(bank, {each.customer_id for each in answers})
                await asyncio.to_thread(composer.add_return_entries, answers, keys)
        return composer.end()


async def _find_unreadable(bank: Bank, by: datetime) -> list[UUID]:
    """Return the customers of due entries whose data key is damaged: their entries wait until it is restored."""
    await bank_key(bank)
    customer_ids = await store.list_due_customers(bank.pool, by)
    with suppress(InvariantError):
        await bank.ports[DataKeys].load(bank.pool, customer_ids)
        return []
    unreadable = []
    for customer_id in customer_ids:
        try:
            await bank.ports[DataKeys].load(bank.pool, (customer_id,))
        except InvariantError:
            unreadable.append(customer_id)
            log.exception("ach_entries_set_aside", customer_id=str(customer_id), reason="its data key is damaged")
    return unreadable


async def _reject_stopped(bank: Bank, by: datetime) -> None:
    """Cancel entries whose customer was frozen, or counterparty stopped by sanctions screening, in the meantime."""
    for customer_id, ach_id, is_frozen in await store.list_stopped(bank.pool, max(await bank.now(), by)):
        await bank.engine.submit(
            ReviewAch(
                caller="ach-window:stopped",
                key=ach_id,
                customers=(customer_id,),
                references=(ach_id,),
                ach_id=ach_id,
                decision=AchStatus.CANCELLED,
                reason="ACCOUNT_UNAVAILABLE" if is_frozen else SANCTION_SCREEN_FAILED,
            )
        )


async def reschedule_late(bank: Bank) -> None:
    """Reschedule entries that missed their window."""
    now = await bank.now()
    late = await store.list_late(bank.pool, now)
    await _submit_by_customer(bank, RescheduleAch, late, caller="ach-window", key=f"late:{now.isoformat()}")


async def _postpone_job(bank: Bank, job: ScheduledJob) -> bool:
    """Postpone a job to the next open day if its day has been declared closed; return whether it was.

    A window then also gets the entries that missed theirs.
    """
    at = bank.calendars.settles_at(job.at)
    if at == job.at:
        return False
    object_id = window_at(at) if job.kind == ACH_WINDOW else job.object_id
    await scheduler.schedule(bank.pool, [job._replace(object_id=object_id, at=at)])
    return True


async def collect_debits(bank: Bank, at: ScheduledJob) -> None:
    """Book the debits of a file that have settled: a scheduled job."""
    if await _postpone_job(bank, at):
        return
    entries_by_customer = await store.entries_by_customer(bank.pool, at.object_id, direction=Direction.DEBIT)
    commands = (
        CollectAch(
            caller="ach-file",
            key=command_id("collect", ach_id),
            customers=(customer_id,),
            ach_id=ach_id,
            references=(ach_id,),
        )
        for customer_id, ach_ids in entries_by_customer
        for ach_id in ach_ids
    )
    async for command, answer in submit_in_lots(bank, commands):
        if answer.outcome["status"] == "NO_POCKET":
            item_id, amount = command.references[0], answer.outcome["amount"]
            reason, details = "The Pocket was closed.", {NOT_RETURNABLE: CLOSED_POCKET_REASON}
            item = UnclaimedPayment(item_id, Direction.CREDIT, amount, reason=reason, details=details)
            await hold_unclaimed_payments(bank, [item])


async def count_settled(bank: Bank, at: ScheduledJob) -> None:
    """Count the entries of a file as settled: a scheduled job."""
    if await _postpone_job(bank, at):
        return
    entries = await store.entries_by_customer(bank.pool, at.object_id)
    await _submit_by_customer(bank, SettleAch, entries, caller="ach-file", key=f"count:{at.object_id}")


_EXISTS = "SELECT EXISTS (SELECT 1 FROM rail_file WHERE file_id = $1)"


def _jobs_of(file: NumberedFile) -> list[ScheduledJob]:
    """Return the scheduled jobs of a transmitted file."""
    if file.settles_at is None or file.settled_at is None:
        return []
    return [
        ScheduledJob(COLLECT_JOB, file.file_id, None, at=file.settles_at),
        ScheduledJob(COUNT_SETTLED_JOB, file.file_id, None, at=file.settled_at),
    ]


async def _submit_by_customer(
    bank: Bank,
    kind: type[MarkAchTransmitted | RescheduleAch | SettleAch],
    entries: Iterable[tuple[UUID, Sequence[UUID]]],
    *,
    caller: str,
    key: str,
) -> None:
    """Submit one command per customer and batch of entries; `key` identifies the occasion."""
    commands = (
        kind(
            caller=caller,
            key=command_id(f"{key}:{start // ENTRIES_PER_COMMAND}", customer_id),
            customers=(customer_id,),
            ach_ids=ids,
            references=ids,
        )
        for customer_id, ach_ids in entries
        for start in range(0, len(ach_ids), ENTRIES_PER_COMMAND)
        for ids in [tuple(ach_ids[start : start + ENTRIES_PER_COMMAND])]
    )
    async for _ in submit_in_lots(bank, commands):
        pass
