"""Inbound ACH files: each is accepted or refused as a whole.

A file is stored first, then validated, then booked entry by entry with idempotency keys made of its
lines. After a crash another process continues without booking twice. Lines that cannot be booked
are retried with growing delays and block nothing else.
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
"""The kind of scheduled job that processes inbound files. The worker also polls."""
_WAIT = timedelta(seconds=30)


class AchFileProcessor:
    """Processes the inbound files of banks."""

    async def run(self, bank: Bank, at: ScheduledJob) -> None:
        """Process the inbound files: a scheduled job."""
        del at
        await self.process_all(bank)

    async def process_all(self, bank: Bank) -> int:
        """Process every inbound file, new and incomplete; return how many.

        Skips files that another process is working on and files whose retry is not due.
        """
        done = 0
        for name in await bank.rails.ach.list_inbound():
            done += await self.store_file(bank, name) is None
        for file in await exceptions.list_due(bank.pool, "ACH", wall_now()):
            done += await self._process(bank, file)
        return done

    async def process_file(self, bank: Bank, name: str) -> None:
        """Process one inbound file, or wait for the process that is working on it."""
        file = await self.store_file(bank, name)
        if file is not None:
            await self._process(bank, file, wait=_WAIT)

    async def store_file(self, bank: Bank, name: str) -> RailFile | None:
        """Store a file and return it; archive one whose content was received before."""
        raw = await bank.rails.ach.read(name)
        if raw is None:
            return None
        content = normalize(raw)
        file_id = command_id("ach-arrived", f"{name}:{sha256(content).hexdigest()}")
        try:
            file = await files_store.save_inbound(
                bank.pool, file_id, "ACH", name=name, content=content, now=await bank.now()
            )
        except DuplicateFile as error:
            await _reject(bank, name, [AchFileMistake(0, None, str(error))])
            return None
        if file.done_at is None:
            return file
        if await bank.rails.ach.read(name) is None:  # another process has completed it meanwhile
            return None
        if file.state == "REFUSED":
            report = (file.report or "{}").encode()
            await bank.rails.ach.archive(name, report=report, refused=True)
        else:
            duplicate = str(DuplicateFile(file.name, file.created_at))
            await _reject(bank, name, [AchFileMistake(0, None, duplicate)])
        return None

    async def check_file(self, bank: Bank, content: bytes) -> AchFile:
        """Return the header of a file. Raises InvalidAchFile if anything in it is wrong."""
        own_number = bank.settings.bank_routing_number
        return await asyncio.to_thread(check_file, content, own_number)

    async def _process(self, bank: Bank, file: RailFile, *, wait: timedelta | None = None) -> bool:
        """Validate and book a file; False if another process is working on it."""
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
            except Exception as error:  # noqa: BLE001 - a bug in one file must not block others
                await postpone_file(bank, file, error=error_summary(error))
            return True

    async def _book(self, bank: Bank, file: RailFile) -> None:
        content = await files_store.read_content(bank.pool, file.file_id)
        try:
            head = await self.check_file(bank, content)
        except InvalidAchFile as refused:
            report = await _reject(bank, file.name, refused.mistakes)
            await self._finish(bank, file, "REFUSED", report=report)
            return
        file_report = await AchFileBooking(bank, file, head).book(read_lines(content))
        fields = msgspec.to_builtins(file_report)
        if file_report.stuck:
            partial_report = await postpone_file(bank, file, **fields)
            await self._archive(bank, file, partial_report)
            return
        report = {"file": file.name, "state": "PROCESSED", **fields}
        # Archive first: a completed file that is still in the folder counts as a duplicate.
        await self._archive(bank, file, msgspec.json.encode(report))
        await self._finish(bank, file, "PROCESSED", report=report)

    async def _archive(self, bank: Bank, file: RailFile, report: bytes) -> None:
        """Archive a file, unless a later file of its name has replaced it."""
        if exceptions.retry_state_of(file) is not None:
            current = await bank.rails.ach.read(file.name)
            if current and sha256(normalize(current)).hexdigest() != file.sha256:
                return
        await bank.rails.ach.archive(file.name, report=report)

    async def _finish(self, bank: Bank, file: RailFile, state: str, report: dict[str, Any]) -> None:
        now = await bank.now()
        await files_store.complete_file(bank.pool, file.file_id, state, now=now, report=report)
        log.info("ach_file_processed", name=file.name, state=state)


async def _reject(bank: Bank, name: str, mistakes: Sequence[AchFileMistake]) -> dict[str, Any]:
    """Archive a refused file with the lines and reasons."""
    fields = [{"line": m.line, "columns": m.columns, "reason": m.reason} for m in mistakes]
    report: dict[str, Any] = {"file": name, "state": "REFUSED", "mistakes": fields}
    await bank.rails.ach.archive(name, report=msgspec.json.encode(report), refused=True)
    return report
