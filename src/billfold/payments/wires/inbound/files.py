"""The wire room's way in: a file of messages is taken whole or not at all, and then booked.

A file is kept first. When everything in it holds, its messages' numbers are noted: from then on
it is booked, message by message, by commands that do nothing twice; whoever dies on the way is
followed by the next. A file that does not hold is refused with lines and reasons.
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
    from billfold.payments.files.ports import InboundFile

log = structlog.get_logger(__name__)

_CLAIM = "wire files"
"""One process takes files at a time: a message may be about one in the file before it."""
_WAIT = timedelta(seconds=30)


class FedwireFileProcessor:
    """Takes the files that have arrived from Fedwire."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def __call__(self, bank: Bank) -> int:
        """An errand of the worker: take what has arrived, unless somebody is at it."""
        if self._lock.locked() or not await self._has_work(bank):
            return 0
        return await self.take(bank)

    async def take(self, bank: Bank) -> int:
        """Take every file that has arrived, by name; return how many were looked at."""
        async with self._lock, claimed(bank.pool, _CLAIM, wait=_WAIT):
            return await self._process_all(bank)

    async def _has_work(self, bank: Bank) -> bool:
        if await bank.rails.wire.arrived():
            return True
        return bool(await exceptions.list_due(bank.pool, "WIRE", wall_now()))

    async def _process_all(self, bank: Bank) -> int:
        processed = 0
        for file in await exceptions.list_due(bank.pool, "WIRE", wall_now()):
            await self._process(bank, file)
            processed += 1
        for arrived in await bank.rails.wire.arrived():
            try:
                file = await _save(bank, arrived)
            except DuplicateFile as duplicate:
                await _reject_duplicate(bank, arrived.name, str(duplicate))
            else:
                if exceptions.retry_state_of(file) is not None:
                    continue
                await self._process(bank, file)
            processed += 1
        return processed

    async def _process(self, bank: Bank, file: RailFile) -> None:
        """Take a file; one with which something goes wrong waits where it is, and no other does."""
        try:
            await self._process_file(bank, file)
        except DATABASE_UNAVAILABLE:
            raise
        except Exception as error:  # noqa: BLE001 - a bug in one file must not hold up others
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
        await bank.rails.wire.put_away(file.name, report=_json(report))
        await files_store.complete_file(bank.pool, file.file_id, "TAKEN", now=await bank.now(), report=report)
        log.info("fedwire_file_processed", file=file.name, messages=len(lines))


async def _save(bank: Bank, arrived: InboundFile) -> RailFile:
    """Keep a file under an id of its name and content, another one for each time it is refused."""
    digest = sha256(arrived.content).hexdigest()
    command = command_id(f"wire-file-in:{arrived.name}", digest)
    attempt = 0
    while True:
        file_id = derive(bank.seed, command, attempt)
        file = await files_store.save_inbound(
            bank.pool, file_id, "WIRE", arrived.name, arrived.content, now=await bank.now()
        )
        if file.state == "TAKEN":
            raise DuplicateFile(file.name, file.created_at)
        if file.state != "REFUSED":
            return file
        attempt += 1


async def _check(bank: Bank, file: RailFile, lines: NumberedMessages) -> None:
    """Raise FedwireRefused for what does not hold; else note that these messages are taken.

    A file whose numbers are noted has been found good: what it did since is no reason against it.
    """
    if not lines:
        raise InvalidFedwireFile([FedwireMistake(1, "file", "holds no messages")])
    numbers = [number for _, wire in lines for number in numbers_of(wire)]
    if await _is_recorded(bank, file.file_id):
        return
    mistakes = mistakes_in(lines, await _load_context(bank, file.file_id, numbers, lines))
    if mistakes:
        raise InvalidFedwireFile(mistakes)
    await arrivals.record_arrived(bank.pool, numbers, file.file_id, await bank.now())


async def _is_recorded(bank: Bank, file_id: UUID) -> bool:
    recorded: bool = await bank.pool.fetchval("SELECT EXISTS (SELECT 1 FROM wire_arrival WHERE file_id = $1)", file_id)
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
    """The payments of these numbers; one whose return is held, or was, has come back too."""
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
    await bank.rails.wire.put_away(file.name, report=_json(report), refused=True)
    await files_store.complete_file(bank.pool, file.file_id, "REFUSED", now=await bank.now(), report=report)
    log.warning("fedwire_file_rejected", file=file.name, first=str(mistakes[0]))


async def _reject_duplicate(bank: Bank, name: str, reason: str) -> None:
    """A file that has come before is put away with its report, and leaves no row of its own."""
    mistake = FedwireMistake(0, "file", reason)._asdict()
    report = {"file": name, "state": "REFUSED", "mistakes": [mistake]}
    await bank.rails.wire.put_away(name, report=_json(report), refused=True)
    log.warning("fedwire_file_duplicated", file=name, reason=reason)


def _report(file: RailFile, booked: Sequence[BookedMessage]) -> dict[str, object]:
    return {"file": file.name, "state": "TAKEN", "messages": len(booked), "items": [each._asdict() for each in booked]}


def _json(report: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=2)
