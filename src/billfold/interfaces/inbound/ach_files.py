"""Files of the ACH network that have arrived: all of one is taken, or none.

A file is kept before anything is done with it, then checked as a whole, then booked entry by
entry through commands named after its lines. A process that dies leaves the file to the next,
which finds what has been booked already.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from billfold.domain import rails
from billfold.interfaces.inbound.ach_booking import Booking
from billfold.interfaces.inbound.ach_checks import mistakes_in
from billfold.kit.ids import command_id
from billfold.ports.ach_network import AchFile, AchFormat, FileRefused, Mistake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from billfold.domain.agenda import Appointment
    from billfold.domain.rails import RailFile
    from billfold.engine.bank import Bank
    from billfold.ports.exchange import Arrived

log = structlog.get_logger(__name__)

_GATE = 0x61676174  # "agat": the advisory lock under which files are taken
_WAIT_SECONDS = 30.0
FILES = "ach.files"
"""The kind of appointment at which what has arrived is taken. The worker also looks by itself."""


class AchGate:
    """Takes the files that have arrived for one bank after the other."""

    def __init__(self, spelling: AchFormat) -> None:
        self._spelling = spelling
        self._turn = asyncio.Lock()

    async def keep(self, bank: Bank, at: Appointment) -> None:
        """Take what has arrived by this appointment."""
        del at
        await self.take(bank)

    async def take(self, bank: Bank) -> int:
        """Take every file that has arrived, and go on with those begun; return how many.

        One at a time, whoever asks: a file that two work on is put away under the feet of one.
        """
        if not await self._is_waiting(bank):
            return 0
        async with self._turn, bank.pool.acquire() as conn:
            await conn.execute("SELECT pg_advisory_lock($1)", _GATE, timeout=_WAIT_SECONDS)
            try:
                return await self._take_all(bank)
            finally:
                await conn.execute("SELECT pg_advisory_unlock($1)", _GATE)

    async def _is_waiting(self, bank: Bank) -> bool:
        if await bank.rails.ach.arrived():
            return True
        return bool(await rails.list_unfinished(bank.pool, "ACH", "IN"))

    async def _take_all(self, bank: Bank) -> int:
        done = 0
        for arrived in await bank.rails.ach.arrived():
            done += await self._admit(bank, arrived)
        for file in await rails.list_unfinished(bank.pool, "ACH", "IN"):
            await self._work_on(bank, file)
            done += 1
        return done

    async def _admit(self, bank: Bank, arrived: Arrived) -> int:
        """Keep a file; one whose content was there before is put away. Return 1 for that one."""
        proof = sha256(arrived.content).hexdigest()
        file_id = command_id("ach-arrived", f"{arrived.name}:{proof}")
        try:
            file = await rails.keep_arrived(
                bank.pool, file_id, "ACH", arrived.name, arrived.content, now=await bank.now()
            )
        except rails.AlreadyArrived as error:
            await _refuse(bank, arrived.name, [Mistake(0, None, str(error))])
            return 1
        if file.done_at is None:
            return 0
        if file.state == "REFUSED":
            report = (file.report or "{}").encode()
            await bank.rails.ach.put_away(arrived.name, report=report, refused=True)
        else:
            same = str(rails.AlreadyArrived(file.name, file.created_at))
            await _refuse(bank, arrived.name, [Mistake(0, None, same)])
        return 1

    async def _work_on(self, bank: Bank, file: RailFile) -> None:
        content = await rails.read_content(bank.pool, file.file_id)
        try:
            told = await self._read(bank, content)
        except FileRefused as refused:
            report = await _refuse(bank, file.name, refused.mistakes)
            await self._finish(bank, file, "REFUSED", report)
            return
        became = await Booking(bank, file.file_id, file.created_at).book(told)
        report = {"file": file.name, "state": "TAKEN", **msgspec.to_builtins(became)}
        # The report first: a file that is finished and still in the folder has come again.
        await bank.rails.ach.put_away(file.name, report=msgspec.json.encode(report))
        await self._finish(bank, file, "TAKEN", report)

    async def _read(self, bank: Bank, content: bytes) -> AchFile:
        """Return what a file says. Raises FileRefused when it cannot be taken as a whole."""
        told = await asyncio.to_thread(self._spelling.read, content)
        mistakes = mistakes_in(told, bank.settings.bank_routing_number)
        if mistakes:
            raise FileRefused(mistakes)
        return told

    async def _finish(self, bank: Bank, file: RailFile, state: str, report: dict[str, Any]) -> None:
        now = await bank.now()
        await rails.finish(bank.pool, file.file_id, state, now=now, report=report)
        log.info("ach_file_arrived", name=file.name, state=state)


async def _refuse(bank: Bank, name: str, mistakes: Sequence[Mistake]) -> dict[str, Any]:
    """Put a file away with the lines and reasons for which nothing of it was taken."""
    told = [{"line": m.line, "columns": m.columns, "reason": m.reason} for m in mistakes]
    report: dict[str, Any] = {"file": name, "state": "REFUSED", "mistakes": told}
    await bank.rails.ach.put_away(name, report=msgspec.json.encode(report), refused=True)
    return report
