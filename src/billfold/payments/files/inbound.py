"""Inbound files of the rails: each is accepted or refused as a whole.

A file is stored first, then checked, then booked with idempotency keys derived from its content. After a
crash another process continues without booking twice. A file that fails is retried with growing
delays and does not block others.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import msgspec
import structlog

from billfold.data_keys.keys import bank_key
from billfold.dual_control.store import find_confirmed
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.files import retries, store
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.store import is_content_of, read_content, seal_content
from billfold.payments.files.types import RETRY_FIELDS, DuplicateFile, InvalidFile, OversizedFile, RailFile
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import claimed, read_put_aside
from billfold.platform.database.distribution import await_prepared
from billfold.platform.database.shortage import error_summary, is_shortage

log = structlog.get_logger(__name__)

WAIT = timedelta(seconds=30)


class InboundFiles(ABC):
    """Processes the inbound files of one rail. A rail assigns a file's id, and checks and books it."""

    rail: ClassVar[str]
    whole_file: ClassVar[NamedTuple]
    """An error of the whole file, without its reason."""

    @abstractmethod
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        """Return the id of a file; `attempt` counts refused files of the same name and content."""

    @abstractmethod
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> Mapping[str, Any]:
        """Check and book a file; return its report, with the `stuck` lines. Raises InvalidFile."""

    def normalize(self, raw: bytes) -> bytes:
        """Return the content to store: equal contents have equal bytes."""
        return raw

    async def process_all(self, bank: Bank) -> int:
        """Process every inbound file, new and incomplete; return how many.

        Skips files that another process is working on and files whose retry is not due.
        """
        done, now = 0, wall_now()
        failed: dict[str, Exception] = {}
        aside = await read_put_aside(bank.pool, f"{self.rail.lower()} file to store", now)
        for name in await bank.ports[RailExchanges].of(self.rail).list_inbound():
            if name not in aside.waiting:
                try:
                    done += await self.store_file(bank, name) is None
                except Exception as error:  # noqa: BLE001 - a file that cannot be read must not block others
                    failed[name] = error
        await aside.record(bank.pool, failed, now)
        for file in await retries.list_due(bank.pool, self.rail, wall_now()):
            done += await self.process(bank, file)
        return done

    async def process_file(self, bank: Bank, name: str) -> None:
        """Process one inbound file, or wait for the process that is working on it."""
        file = await self.store_file(bank, name)
        if file is not None:
            await self.process(bank, file, wait=WAIT)

    async def store_file(self, bank: Bank, name: str) -> RailFile | None:
        """Store a file and return it; archive one whose content was received before."""
        raw = await self._read(bank, name)
        if raw is None:
            return None
        try:
            return await self.store_content(bank, name, raw)
        except DuplicateFile as duplicate:
            if (
                await bank.ports[RailExchanges].of(self.rail).read(name) is not None
            ):  # no other process has completed it
                await self._refuse(bank, name, [self.whole_file._replace(reason=str(duplicate))])
            return None

    async def store_content(self, bank: Bank, name: str, raw: bytes, *, is_in_folder: bool = False) -> RailFile:
        """Store the content of a file and return it.

        Raises DuplicateFile if it was received and not refused before, or another process has taken it from the folder.
        """
        plain, data_key = self.normalize(raw), await bank_key(bank)
        digest, attempt = data_key.digest(plain).hex(), 0
        while True:
            file_id = self.file_id(bank, name, digest, attempt=attempt)
            content = await asyncio.to_thread(seal_content, data_key, file_id, plain)
            file = await store.save_inbound(
                bank.pool, file_id, self.rail, name=name, content=content, now=await bank.now()
            )
            if file.done_at is None:
                return file
            if file.state != "REFUSED" or (is_in_folder and not await self._is_in_folder(bank, name)):
                raise DuplicateFile(file.name, file.created_at)
            attempt += 1  # a refused file is checked again: what it needs may have arrived

    async def _is_in_folder(self, bank: Bank, name: str) -> bool:
        return await bank.ports[RailExchanges].of(self.rail).read(name) is not None

    async def _read(self, bank: Bank, name: str) -> bytes | None:
        """Return the content of a file; archive one that is too large to be read."""
        try:
            return await bank.ports[RailExchanges].of(self.rail).read(name)
        except OversizedFile as oversized:
            await self._refuse(bank, name, [self.whole_file._replace(reason=str(oversized))])
            return None

    async def process(self, bank: Bank, file: RailFile, *, wait: timedelta | None = None) -> bool:
        """Check and book a file; False if another process is working on it. One that fails is postponed."""
        async with claimed(bank.pool, _claim_of(self.rail, file.file_id), wait=wait) as acquired:
            if not acquired:
                return False
            file = await store.find_file(bank.pool, file.file_id)
            if file.done_at is None:
                try:
                    await self._process(bank, file)
                except Exception as error:  # a bug in one file must not block others
                    if is_shortage(error):
                        raise
                    await retries.postpone_file(bank, file, error=error_summary(error))
            return True

    async def close(self, bank: Bank, at: ScheduledJob) -> None:
        """Complete a waiting file, as two operators have decided: a scheduled job. Booked lines stay booked."""
        async with claimed(bank.pool, _claim_of(self.rail, at.object_id), wait=WAIT):
            file = await store.find_file(bank.pool, at.object_id)
            decision = await find_confirmed(bank.pool, file.file_id)
            if retries.retry_state_of(file) is None or decision is None:
                return  # all of it has been booked in the meantime
            told: dict[str, Any] = msgspec.json.decode(file.report or "{}")
            names = ("reason", "proposed_by", "decided_by", "decided_at")
            closed = {name: getattr(decision, name) for name in names}
            report = {name: value for name, value in told.items() if name not in RETRY_FIELDS}
            report |= {"state": "PROCESSED", "closed": closed}
            await self.complete_closed(bank, file, report)
            log.warning("rail_file_closed", rail=self.rail, name=file.name)

    async def complete_closed(self, bank: Bank, file: RailFile, report: dict[str, Any]) -> None:
        """Archive and complete a file that is closed."""
        await self._archive(bank, file, _json(report))
        await store.complete_file(bank.pool, file.file_id, "PROCESSED", now=await bank.now(), report=report)

    async def _process(self, bank: Bank, file: RailFile) -> None:
        content = await read_content(bank, file.file_id)
        await await_prepared(bank.pool)  # or a payment to an account that was just opened would be returned
        try:
            fields = await self.book(bank, file, content)
        except InvalidFile as invalid:
            report = await self._refuse(bank, file.name, invalid.mistakes)
        else:
            if fields.get("stuck"):
                await self._archive(bank, file, await retries.postpone_file(bank, file, **fields))
                return
            report = {"file": file.name, "state": "PROCESSED", **fields}
            # Archive first: a completed file that is still in the folder counts as a duplicate.
            await self._archive(bank, file, _json(report))
        state = report["state"]
        await store.complete_file(bank.pool, file.file_id, state, now=await bank.now(), report=report)
        log.info("rail_file_processed", rail=self.rail, name=file.name, state=state)

    async def _archive(self, bank: Bank, file: RailFile, report: bytes) -> None:
        """Archive a file, unless a later file of its name has replaced it."""
        exchange = bank.ports[RailExchanges].of(self.rail)
        if retries.retry_state_of(file) is not None:
            current = await exchange.read(file.name)
            if current and not is_content_of(await bank_key(bank), file, self.normalize(current)):
                return
        await exchange.archive(file.name, report=report)

    async def _refuse(self, bank: Bank, name: str, mistakes: Sequence[Any]) -> dict[str, Any]:
        """Archive a refused file with the lines and reasons; return its report."""
        report = {"file": name, "state": "REFUSED", "mistakes": [each._asdict() for each in mistakes]}
        await bank.ports[RailExchanges].of(self.rail).archive(name, report=_json(report), refused=True)
        log.warning("rail_file_refused", rail=self.rail, name=name, first=str(mistakes[0]))
        return report


def _claim_of(rail: str, file_id: UUID) -> str:
    return f"{rail.lower()} file {file_id}"


def _json(report: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=2)
