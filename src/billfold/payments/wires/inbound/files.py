"""Inbound Fedwire files: each is accepted or refused as a whole, then booked message by message.

A file is stored first. If it is valid, its message numbers are recorded; from then on it is booked
with idempotent commands, and another process continues after a crash. An invalid file is refused
with lines and reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import structlog

from billfold.payments.files import exceptions
from billfold.payments.files import store as files_store
from billfold.payments.files.retries import DATABASE_UNAVAILABLE, error_summary, postpone_file
from billfold.payments.files.store import DuplicateFile, RailFile
from billfold.payments.suspense import store as suspense_store
from billfold.payments.wires.inbound.booking import BookedMessage, book
from billfold.payments.wires.inbound.suspense import return_id
from billfold.payments.wires.inbound.validation import CheckContext, NumberedMessages, mistakes_in, numbers_of
from billfold.payments.wires.iso20022.envelope import read_messages
from billfold.payments.wires.iso20022.types import (
    FedwireMistake,
    InvalidFedwireFile,
    PaymentReturn,
    PaymentStatus,
    ReturnRequest,
    ReturnRequestResponse,
)
from billfold.payments.wires.outbound_messages import environment_of
from billfold.payments.wires.store import arrivals, cases
from billfold.payments.wires.store import message_queue as queue
from billfold.platform.clock import wall_now
from billfold.platform.database.claims import claimed
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

log = structlog.get_logger(__name__)

_CLAIM = "wire files"
"""One process at a time processes files: a message may refer to one in an earlier file."""
_WAIT = timedelta(seconds=30)


class FedwireFileProcessor:
    """Processes inbound Fedwire files."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def __call__(self, bank: Bank) -> int:
        """A task of the worker: process inbound files, unless that is in progress."""
        if self._lock.locked() or not await self._has_work(bank):
            return 0
        return await self.process_all(bank)

    async def process_all(self, bank: Bank) -> int:
        """Process every inbound file, by name; return how many."""
        async with self._lock, claimed(bank.pool, _CLAIM, wait=_WAIT):
            return await self._process_inbound(bank)

    async def _has_work(self, bank: Bank) -> bool:
        if await bank.rails.wire.list_inbound():
            return True
        return bool(await exceptions.list_due(bank.pool, "WIRE", wall_now()))

    async def _process_inbound(self, bank: Bank) -> int:
        processed = 0
        for file in await exceptions.list_due(bank.pool, "WIRE", wall_now()):
            await self._process(bank, file)
            processed += 1
        for name in await bank.rails.wire.list_inbound():
            content = await bank.rails.wire.read(name)
            if content is None:
                continue
            try:
                file = await _save(bank, name, content)
            except DuplicateFile as duplicate:
                await _reject_duplicate(bank, name, str(duplicate))
            else:
                if exceptions.retry_state_of(file) is not None:
                    continue
                await self._process(bank, file)
            processed += 1
        return processed

    async def _process(self, bank: Bank, file: RailFile) -> None:
        """Process a file; if it fails, it is postponed and blocks no other."""
        try:
            await self._process_file(bank, file)
        except DATABASE_UNAVAILABLE:
            raise
        except Exception as error:  # noqa: BLE001 - a bug in one file must not block others
            await postpone_file(bank, file, error=error_summary(error))

    async def _process_file(self, bank: Bank, file: RailFile) -> None:
        content = await files_store.read_content(bank.pool, file.file_id)
        try:
            lines = read_messages(content, "incoming")
            await _check(bank, file, lines)
        except InvalidFedwireFile as invalid:
            await _reject(bank, file, invalid.mistakes)
            return
        booked = await book(bank, lines)
        report = _report(file, booked)
        await bank.rails.wire.archive(file.name, report=_json(report))
        await files_store.complete_file(bank.pool, file.file_id, "PROCESSED", now=await bank.now(), report=report)
        log.info("fedwire_file_processed", file=file.name, messages=len(lines))


async def _save(bank: Bank, name: str, content: bytes) -> RailFile:
    """Store a file under an id of its name and content; a new id after each refusal."""
    command = command_id(f"wire-file-in:{name}", sha256(content).hexdigest())
    attempt = 0
    while True:
        file_id = derive(bank.seed, command, attempt)
        file = await files_store.save_inbound(
            bank.pool, file_id, "WIRE", name=name, content=content, now=await bank.now()
        )
        if file.state == "PROCESSED":
            raise DuplicateFile(file.name, file.created_at)
        if file.state != "REFUSED":
            return file
        attempt += 1


async def _check(bank: Bank, file: RailFile, lines: NumberedMessages) -> None:
    """Raise InvalidFedwireFile for an invalid file; else record the numbers of its messages.

    A file with recorded numbers was valid before: it is not validated against its own effects.
    """
    if not lines:
        raise InvalidFedwireFile([FedwireMistake(1, "file", "contains no messages")])
    numbers = [number for _, wire in lines for number in numbers_of(wire)]
    if await _is_recorded(bank, file.file_id):
        return
    mistakes = mistakes_in(lines, await _load_context(bank, file.file_id, numbers, lines=lines))
    if mistakes:
        raise InvalidFedwireFile(mistakes)
    await arrivals.record_arrived(bank.pool, numbers, file.file_id, now=await bank.now())


async def _is_recorded(bank: Bank, file_id: UUID) -> bool:
    recorded: bool = await bank.pool.fetchval(
        "SELECT EXISTS (SELECT 1 FROM received_wire_message WHERE file_id = $1)", file_id
    )
    return recorded


async def _load_context(bank: Bank, file_id: UUID, numbers: Sequence[str], lines: NumberedMessages) -> CheckContext:
    messages = [wire.message for _, wire in lines]
    statuses = [m.original.message_id for m in messages if isinstance(m, PaymentStatus)]
    original_uetrs = [m.original.uetr for m in messages if isinstance(m, PaymentReturn | ReturnRequest)]
    answers = [m.case_id for m in messages if isinstance(m, ReturnRequestResponse)]
    return CheckContext(
        routing_number=bank.settings.bank_routing_number,
        environment=environment_of(bank.settings),
        calendars=bank.calendars,
        today=et_date(await bank.now()),
        arrived=await arrivals.find_arrived(bank.pool, numbers, file_id),
        sent=await queue.find_sent(bank.pool, statuses),
        payments=await _find_payments(bank, original_uetrs),
        open_cases=await cases.find_open_cases(bank.pool, answers),
    )


async def _find_payments(bank: Bank, uetrs: Sequence[str]) -> dict[tuple[str, str], arrivals.MatchedWire]:
    """Return the payments with these UETRs; one whose return is or was in suspense counts as returned."""
    payments = await arrivals.find_payments(bank.pool, uetrs)
    return_ids = {each: return_id(bank, each.wire_id) for each in payments.values()}
    held_ids = {each.item_id for each in await suspense_store.find_items(bank.pool, list(return_ids.values()))}
    return {
        key: each._replace(returned=each.returned or return_ids[each] in held_ids) for key, each in payments.items()
    }


async def _reject(bank: Bank, file: RailFile, mistakes: Sequence[FedwireMistake]) -> None:
    report: dict[str, object] = {
        "file": file.name,
        "state": "REFUSED",
        "mistakes": [each._asdict() for each in mistakes],
    }
    await bank.rails.wire.archive(file.name, report=_json(report), refused=True)
    await files_store.complete_file(bank.pool, file.file_id, "REFUSED", now=await bank.now(), report=report)
    log.warning("fedwire_file_rejected", file=file.name, first=str(mistakes[0]))


async def _reject_duplicate(bank: Bank, name: str, reason: str) -> None:
    """Archive a duplicate file with its report; it gets no row."""
    mistake = FedwireMistake(0, "file", reason)._asdict()
    report = {"file": name, "state": "REFUSED", "mistakes": [mistake]}
    await bank.rails.wire.archive(name, report=_json(report), refused=True)
    log.warning("fedwire_file_duplicated", file=name, reason=reason)


def _report(file: RailFile, booked: Sequence[BookedMessage]) -> dict[str, object]:
    return {
        "file": file.name,
        "state": "PROCESSED",
        "messages": len(booked),
        "items": [each._asdict() for each in booked],
    }


def _json(report: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=2)
