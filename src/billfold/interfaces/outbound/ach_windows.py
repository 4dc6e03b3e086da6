"""The windows of the ACH network: what waits goes into one file, which is handed over.

First entries get their numbers and their file, then the file is written from them, kept, handed
over, and everybody is told. Each step can be done again, so that a process that dies between two
of them leaves nothing undone and sends nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from billfold.domain import agenda, rails
from billfold.domain.ach import (
    CREDIT,
    DEBIT,
    Answered,
    answered_at,
    files,
    next_deadline,
    same_day_mark,
)
from billfold.domain.ach.files import Numbered, Outgoing
from billfold.domain.agenda import Appointment
from billfold.engine.many import submit_many
from billfold.engine.unclaimed import hold_unclaimed
from billfold.flows.collect_ach import CollectAch
from billfold.flows.originate_ach import WINDOW, window_at
from billfold.flows.send_ach import CountAchSettled, SendAch
from billfold.kit.ids import command_id, digits
from billfold.ports.ach_network import (
    CHECKING_CREDIT,
    CHECKING_DEBIT,
    SAVINGS_CREDIT,
    SAVINGS_DEBIT,
    AchFile,
    AchFormat,
    Batch,
    Entry,
    Payment,
    Return,
)

if TYPE_CHECKING:
    from billfold.engine.bank import Bank

log = structlog.get_logger(__name__)

COLLECT, COUNT, WORLD = "ach.collect", "ach.count", "sandbox.ach"
"""Appointments of a file: its debits are booked, its entries count as settled, the simulated
banks answer it."""
TOLD_AT_ONCE = 500
"""Entries of one customer that one command tells of."""
OPERATOR, OPERATOR_NAME = "061000146", "FEDERAL RESERVE BANK"
"""The operator our files go to."""
_CODES = {
    ("CHECKING", CREDIT): CHECKING_CREDIT,
    ("CHECKING", DEBIT): CHECKING_DEBIT,
    ("SAVINGS", CREDIT): SAVINGS_CREDIT,
    ("SAVINGS", DEBIT): SAVINGS_DEBIT,
}


class AchWindows:
    """Keeps the appointments of windows and of the files that went out in them."""

    def __init__(self, spelling: AchFormat) -> None:
        self._spelling = spelling

    async def open_window(self, bank: Bank, at: Appointment) -> None:
        """Send everything that is due, and finish what another process began."""
        now = await bank.now()
        async with bank.pool.acquire() as conn, conn.transaction():
            sent = await files.number_waiting(
                conn, by=max(now, at.at), now=now, bank=bank.settings.bank_routing_number[:8]
            )
        for file in await files.list_untold(bank.pool):
            await self._finish(bank, file)
        if sent:
            # Who came while this window closed finds the next one open, even if he is the only one.
            after = next_deadline(now, bank.calendars)
            await agenda.make(bank.pool, [Appointment(WINDOW, window_at(after), None, after)])

    async def _finish(self, bank: Bank, file: Numbered) -> None:
        content = await self._content(bank, file)
        await bank.rails.ach.hand_over(file.name, content)
        parts = await files.read_parts(bank.pool, file.file_id)
        commands = (
            SendAch(
                caller="ach-file", key=command_id(f"sent:{file.name}:{nth}", customer_id),
                customers=(customer_id,), ach_ids=ids, looks_at=ids,
            )
            for customer_id, ach_ids in parts
            for nth, ids in enumerate(_in_lots(ach_ids))
        )  # fmt: skip
        async for _ in submit_many(bank, commands):
            pass
        now = await bank.now()
        await agenda.make(bank.pool, _appointments(bank, file))
        await rails.finish(bank.pool, file.file_id, "HANDED", now=now)
        await files.everybody_told(bank.pool, file.file_id, now)
        log.info("ach_file_sent", name=file.name, bytes=len(content))

    async def _content(self, bank: Bank, file: Numbered) -> bytes:
        """Return what the file says, written when it is asked for the first time."""
        async with bank.pool.acquire() as conn:
            if not await conn.fetchval(_IS_KEPT, file.file_id):
                written = await self._write(bank, file)
                await rails.keep_made(
                    conn, file.file_id, "ACH", file.name, written, now=file.made_at
                )
            return await rails.read_content(conn, file.file_id)

    async def _write(self, bank: Bank, file: Numbered) -> bytes:
        ours = bank.settings.bank_routing_number
        batches: list[Batch] = []
        async with bank.pool.acquire() as conn, conn.transaction():
            first: Outgoing | None = None
            entries: list[Entry] = []
            async for each in files.read_entries(conn, file.file_id):
                if first is not None and first.together != each.together:
                    batches.append(self._batch(bank, len(batches) + 1, first, entries))
                    first, entries = None, []
                first = first or each
                entries.append(self._entry(each))
            if first is not None:
                batches.append(self._batch(bank, len(batches) + 1, first, entries))
            answers = await files.read_answers(conn, file.file_id)
        for _, answered in groupby(answers, _answer_key):
            batches.append(self._returns(ours[:8], len(batches) + 1, list(answered)))
        whole = AchFile(
            destination=OPERATOR, destination_name=OPERATOR_NAME, origin=ours,
            origin_name=self._spelling.text(bank.settings.bank_name, 23),
            created_at=file.clock, modifier=file.modifier, batches=tuple(batches),
        )  # fmt: skip
        del entries, answers, batches
        return await asyncio.to_thread(self._spelling.write, whole)

    def _batch(self, bank: Bank, number: int, first: Outgoing, entries: Sequence[Entry]) -> Batch:
        text = self._spelling.text
        same_day = same_day_mark(first.due_at, first.effective_on)
        return Batch(
            number=number,
            company=text(first.company_name, 16),
            company_id="9" + digits(bank.seed, first.customer_id, 0, 9),
            entry_class=first.sec_code,
            purpose=text(first.description, 10),
            effective_on=first.effective_on,
            bank=bank.settings.bank_routing_number[:8],
            descriptive_date=same_day,
            entries=tuple(entries),
        )

    def _entry(self, entry: Outgoing) -> Entry:
        text = self._spelling.text
        return Entry(
            code=_CODES[entry.account_type, entry.direction],
            routing_number=entry.routing_number,
            account_number=entry.account_number,
            amount=entry.amount,
            name=text(entry.party_name, 22),
            identification=entry.identification,
            discretionary="S" if entry.sec_code == "WEB" else "",
            trace=entry.trace_number,
            addenda=tuple(Payment(text(line, 80)) for line in entry.lines),
        )

    def _returns(self, bank: str, number: int, answers: Sequence[tuple[str, Answered]]) -> Batch:
        first = answers[0][1]
        return Batch(
            number=number,
            company=first.company,
            company_id=first.company_id,
            entry_class=first.entry_class,
            purpose=first.purpose,
            effective_on=None,
            bank=bank,
            entries=tuple(_return_entry(trace, told) for trace, told in answers),
        )


async def collect(bank: Bank, at: Appointment) -> None:
    """Book the debits of a file: they have settled."""
    parts = await files.read_parts(bank.pool, at.object_id, direction=DEBIT)
    commands = (
        CollectAch(
            caller="ach-file", key=command_id("collect", ach_id), customers=(customer_id,),
            ach_id=ach_id, looks_at=(ach_id,),
        )
        for customer_id, ach_ids in parts
        for ach_id in ach_ids
    )  # fmt: skip
    async for command, answer in submit_many(bank, commands):
        if answer.outcome["status"] == "NO_POCKET":
            item_id, amount = command.looks_at[0], answer.outcome["amount"]
            await hold_unclaimed(bank, item_id, CREDIT, amount, "The pocket was closed.", {})


async def count(bank: Bank, at: Appointment) -> None:
    """Count the entries of a file as settled."""
    parts = await files.read_parts(bank.pool, at.object_id)
    commands = (
        CountAchSettled(
            caller="ach-file", key=command_id(f"count:{at.object_id}:{nth}", customer_id),
            customers=(customer_id,), ach_ids=ids, looks_at=ids,
        )
        for customer_id, ach_ids in parts
        for nth, ids in enumerate(_in_lots(ach_ids))
    )  # fmt: skip
    async for _ in submit_many(bank, commands):
        pass


_IS_KEPT = "SELECT EXISTS (SELECT 1 FROM rail_file WHERE file_id = $1)"


def _appointments(bank: Bank, file: Numbered) -> list[Appointment]:
    """Return what is to be done with a file that has gone."""
    made = []
    if file.settles_at is not None and file.settled_at is not None:
        made = [
            Appointment(COLLECT, file.file_id, None, file.settles_at),
            Appointment(COUNT, file.file_id, None, file.settled_at),
        ]
    if bank.terms.sandbox:
        made.append(Appointment(WORLD, file.file_id, None, _answers_at(bank, file)))
    return made


def _answers_at(bank: Bank, file: Numbered) -> datetime:
    """Return when banks answer a file: before business opens on the day after it settled."""
    return answered_at(file.settles_at or file.made_at, bank.calendars)


def _in_lots(ach_ids: Sequence[UUID]) -> Iterator[tuple[UUID, ...]]:
    for start in range(0, len(ach_ids), TOLD_AT_ONCE):
        yield tuple(ach_ids[start : start + TOLD_AT_ONCE])


def _answer_key(numbered: tuple[str, Answered]) -> tuple[str, ...]:
    told = numbered[1]
    return told.company, told.company_id, told.entry_class, told.purpose


def _return_entry(trace: str, told: Answered) -> Entry:
    return Entry(
        code=told.code,
        routing_number=told.routing_number,
        account_number=told.account_number,
        amount=told.amount,
        name=told.name,
        identification=told.identification,
        trace=trace,
        addenda=(
            Return(
                reason=told.reason,
                original_trace=told.original_trace,
                original_bank=told.original_bank,
                information=told.information,
            ),
        ),
    )
