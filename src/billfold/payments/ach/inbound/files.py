"""Files of the ACH network that have arrived: all of one is taken, or none.

A file is kept before anything is done with it, then checked as a whole, then booked entry by
entry through commands named after its lines. A process that dies leaves the file to the next,
which finds what has been booked already. Lines that cannot be booked are tried again, later each
time, and hold up nothing else.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from billfold.payments.ach.inbound.booking import AchFileBooking
from billfold.payments.ach.inbound.validation import check_file
from billfold.payments.ach.nacha.reader import normalize, read_lines
from billfold.payments.ach.nacha.types import AchFile, AchFileMistake, InvalidAchFile
from billfold.payments.files import exceptions
from billfold.payments.files import store as files_store
from billfold.payments.files.retries import DATABASE_UNAVAILABLE, error_summary, postpone_file
from billfold.payments.files.store import DuplicateFile
from billfold.platform.clock import wall_now
from billfold.platform.database.claims import claimed
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from billfold.ledger.bank import Bank
    from billfold.ledger.jobs.types import ScheduledJob
    from billfold.payments.files.store import RailFile

log = structlog.get_logger(__name__)

ACH_FILES_JOB = "ach.files"
"""The kind of appointment at which what has arrived is taken. The worker also looks by itself."""
_WAIT = timedelta(seconds=30)


class AchFileProcessor:
    """Takes the files that have arrived for one bank after the other."""

    async def keep(self, bank: Bank, at: ScheduledJob) -> None:
        """Take what has arrived by this appointment."""
        del at
        await self.take(bank)

    async def take(self, bank: Bank) -> int:
        """Take every file that has arrived, and go on with those begun; return how many.

        A file that another process is at is left to it, one that waits to its time.
        """
        done = 0
        for name in await bank.rails.ach.waiting():
            done += await self.admit(bank, name) is None
        for file in await exceptions.list_due(bank.pool, "ACH", wall_now()):
            done += await self._process(bank, file)
        return done

    async def process_file(self, bank: Bank, name: str) -> None:
        """Take one file that has arrived, or wait until whoever is at it is done."""
        file = await self.admit(bank, name)
        if file is not None:
            await self._process(bank, file, wait=_WAIT)

    async def admit(self, bank: Bank, name: str) -> RailFile | None:
        """Keep a file and return it; one whose content was there before is put away."""
        raw = await bank.rails.ach.read(name)
        if raw is None:
            return None
        content = normalize(raw)
        file_id = command_id("ach-arrived", f"{name}:{sha256(content).hexdigest()}")
        try:
            file = await files_store.save_inbound(bank.pool, file_id, "ACH", name, content, now=await bank.now())
        except DuplicateFile as error:
            await _reject(bank, name, [AchFileMistake(0, None, str(error))])
            return None
        if file.done_at is None:
            return file
        if await bank.rails.ach.read(name) is None:  # it was finished while we looked
            return None
        if file.state == "REFUSED":
            report = (file.report or "{}").encode()
            await bank.rails.ach.put_away(name, report=report, refused=True)
        else:
            duplicate = str(DuplicateFile(file.name, file.created_at))
            await _reject(bank, name, [AchFileMistake(0, None, duplicate)])
        return None

    async def check_file(self, bank: Bank, content: bytes) -> AchFile:
        """Return what a file says of itself. Raises FileRefused unless all of it holds."""
        own_number = bank.settings.bank_routing_number
        return await asyncio.to_thread(check_file, content, own_number)

    async def _process(self, bank: Bank, file: RailFile, *, wait: timedelta | None = None) -> bool:
        """Check and book a file, one process at a time; False when another is at it."""
        async with claimed(bank.pool, f"ach file {file.file_id}", wait=wait) as acquired:
            if not acquired:
                return False
            file = await files_store.find_file(bank.pool, file.file_id)
            if file.done_at is not None:
                return True
            try:
                await self._book(bank, file)
            except DATABASE_UNAVAILABLE:
                raise
            except Exception as error:  # noqa: BLE001 - a bug in one file must not hold up others
                await postpone_file(bank, file, error=error_summary(error))
            return True

    async def _book(self, bank: Bank, file: RailFile) -> None:
        content = await files_store.read_content(bank.pool, file.file_id)
        try:
            head = await self.check_file(bank, content)
        except InvalidAchFile as refused:
            report = await _reject(bank, file.name, refused.mistakes)
            await self._finish(bank, file, "REFUSED", report)
            return
        file_report = await AchFileBooking(bank, file, head).book(read_lines(content))
        fields = msgspec.to_builtins(file_report)
        if file_report.stuck:
            partial_report = await postpone_file(bank, file, **fields)
            await self._archive(bank, file, partial_report)
            return
        report = {"file": file.name, "state": "TAKEN", **fields}
        # The report first: a file that is finished and still in the folder has come again.
        await self._archive(bank, file, msgspec.json.encode(report))
        await self._finish(bank, file, "TAKEN", report)

    async def _archive(self, bank: Bank, file: RailFile, report: bytes) -> None:
        """Put a file away; one that has waited may have a later one of its name in its place."""
        if exceptions.retry_state_of(file) is not None:
            current = await bank.rails.ach.read(file.name)
            if current and sha256(normalize(current)).hexdigest() != file.sha256:
                return
        await bank.rails.ach.put_away(file.name, report=report)

    async def _finish(self, bank: Bank, file: RailFile, state: str, report: dict[str, Any]) -> None:
        now = await bank.now()
        await files_store.complete_file(bank.pool, file.file_id, state, now=now, report=report)
        log.info("ach_file_processed", name=file.name, state=state)


async def _reject(bank: Bank, name: str, mistakes: Sequence[AchFileMistake]) -> dict[str, Any]:
    """Put a file away with the lines and reasons for which nothing of it was taken."""
    fields = [{"line": m.line, "columns": m.columns, "reason": m.reason} for m in mistakes]
    report: dict[str, Any] = {"file": name, "state": "REFUSED", "mistakes": fields}
    await bank.rails.ach.put_away(name, report=msgspec.json.encode(report), refused=True)
    return report
