"""The windows of the ACH network: what waits goes into one file, which is handed over.

First entries get their numbers and their file, then the file is written from them, kept, handed
over, and everybody is told. Each step can be done again, so that a process that dies between two
of them leaves nothing undone and sends nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from billfold.ledger.engine.bulk import submit_many
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.types import Appointment
from billfold.ledger.types import Direction
from billfold.payments.ach.commands import CollectAch, CountAchSettled, PostponeAch, SendAch
from billfold.payments.ach.outbound.compose import Composer
from billfold.payments.ach.rules.originate import WINDOW, window_at
from billfold.payments.ach.rules.windows import next_deadline
from billfold.payments.ach.store import files
from billfold.payments.ach.store.files import Numbered
from billfold.payments.files import store as files_store
from billfold.payments.suspense.types import STAYS
from billfold.payments.suspense.worker import OUR_CUSTOMERS, Unclaimed, hold_unclaimed
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.ach.ports import AchFormat

log = structlog.get_logger(__name__)

COLLECT, COUNT = "ach.collect", "ach.count"
"""Appointments of a file: its debits are booked, its entries count as settled."""
OnHanded = Callable[["Bank", Numbered], Awaitable[None]]
"""What is done once a file is handed over, as the sandbox's world does."""
TOLD_AT_ONCE = 500
"""Entries of one customer that one command tells of."""


class AchWindows:
    """Keeps the appointments of windows and of the files that went out in them."""

    def __init__(self, spelling: AchFormat, on_handed: OnHanded | None = None) -> None:
        self._spelling = spelling
        self._on_handed = on_handed

    async def open_window(self, bank: Bank, at: Appointment) -> None:
        """Send everything that is due, and finish what another process began."""
        await postpone(bank)
        sent = await self.number(bank, at.at)
        for file in await files.list_untold(bank.pool):
            size = await self.hand_over(bank, file)
            await self.tell(bank, file)
            log.info("ach_file_sent", name=file.name, bytes=size)
        if sent:
            # Who came while this window closed finds the next one open, even if he is the only one.
            after = next_deadline(await bank.now(), bank.calendars)
            await jobs_store.make(bank.pool, [Appointment(WINDOW, window_at(after), None, after)])

    async def number(self, bank: Bank, by: datetime) -> bool:
        """Give everything that is due by then its number and one file. False without any."""
        now = await bank.now()
        async with bank.pool.acquire() as conn, conn.transaction():
            return await files.number_waiting(
                conn, by=max(now, by), now=now, bank=bank.settings.bank_routing_number[:8]
            )

    async def hand_over(self, bank: Bank, file: Numbered) -> int:
        """Write a file unless it has been written, keep it, hand it over; return its bytes."""
        if not await bank.pool.fetchval(_IS_KEPT, file.file_id):
            written = await self._write(bank, file)
            await files_store.keep_made(
                bank.pool, file.file_id, "ACH", file.name, written, now=file.made_at
            )
            del written
        content = await files_store.read_content(bank.pool, file.file_id)
        await bank.rails.ach.hand_over(file.name, content)
        return len(content)

    async def tell(self, bank: Bank, file: Numbered) -> None:
        """Tell everybody whose entries are in a file that it has gone."""
        parts = await files.read_parts(bank.pool, file.file_id)
        commands = (
            SendAch(
                caller="ach-file", key=command_id(f"sent:{file.name}:{nth}", customer_id),
                customers=(customer_id,), ach_ids=ids, references=ids,
            )
            for customer_id, ach_ids in parts
            for nth, ids in enumerate(_in_lots(ach_ids))
        )  # fmt: skip
        async for _ in submit_many(bank, commands):
            pass
        now = await bank.now()
        await jobs_store.make(bank.pool, _appointments(file))
        if self._on_handed is not None:
            await self._on_handed(bank, file)
        await files_store.finish(bank.pool, file.file_id, "HANDED", now=now)
        await files.everybody_told(bank.pool, file.file_id, now)

    async def _write(self, bank: Bank, file: Numbered) -> bytes:
        composer = Composer(bank, self._spelling, file)
        async with bank.pool.acquire() as conn, conn.transaction():
            async for entries in files.read_entries(conn, file.file_id):
                await asyncio.to_thread(composer.add, entries)
            async for answers in files.read_answers(conn, file.file_id):
                await asyncio.to_thread(composer.add_answers, answers)
        return composer.end()


async def postpone(bank: Bank) -> None:
    """Let entries whose window was missed take the next one: what is sent has its days to come."""
    now = await bank.now()
    commands = (
        PostponeAch(
            caller="ach-window", key=command_id(f"late:{now.isoformat()}:{nth}", customer_id),
            customers=(customer_id,), ach_ids=ids, references=ids,
        )
        for customer_id, ach_ids in await files.list_late(bank.pool, now)
        for nth, ids in enumerate(_in_lots(ach_ids))
    )  # fmt: skip
    async for _ in submit_many(bank, commands):
        pass


async def collect(bank: Bank, at: Appointment) -> None:
    """Book the debits of a file: they have settled."""
    parts = await files.read_parts(bank.pool, at.object_id, direction=Direction.DEBIT)
    commands = (
        CollectAch(
            caller="ach-file", key=command_id("collect", ach_id), customers=(customer_id,),
            ach_id=ach_id, references=(ach_id,),
        )
        for customer_id, ach_ids in parts
        for ach_id in ach_ids
    )  # fmt: skip
    async for command, answer in submit_many(bank, commands):
        if answer.outcome["status"] == "NO_POCKET":
            item_id, amount = command.references[0], answer.outcome["amount"]
            why, told = "The Pocket was closed.", {STAYS: OUR_CUSTOMERS}
            lost = Unclaimed(item_id, Direction.CREDIT, amount, why, told)
            await hold_unclaimed(bank, [lost])


async def count(bank: Bank, at: Appointment) -> None:
    """Count the entries of a file as settled."""
    parts = await files.read_parts(bank.pool, at.object_id)
    commands = (
        CountAchSettled(
            caller="ach-file", key=command_id(f"count:{at.object_id}:{nth}", customer_id),
            customers=(customer_id,), ach_ids=ids, references=ids,
        )
        for customer_id, ach_ids in parts
        for nth, ids in enumerate(_in_lots(ach_ids))
    )  # fmt: skip
    async for _ in submit_many(bank, commands):
        pass


_IS_KEPT = "SELECT EXISTS (SELECT 1 FROM rail_file WHERE file_id = $1)"


def _appointments(file: Numbered) -> list[Appointment]:
    """Return what is to be done with a file that has gone."""
    if file.settles_at is None or file.settled_at is None:
        return []
    return [
        Appointment(COLLECT, file.file_id, None, file.settles_at),
        Appointment(COUNT, file.file_id, None, file.settled_at),
    ]


def _in_lots(ach_ids: Sequence[UUID]) -> Iterator[tuple[UUID, ...]]:
    for start in range(0, len(ach_ids), TOLD_AT_ONCE):
        yield tuple(ach_ids[start : start + TOLD_AT_ONCE])
