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
from billfold.payments.files.retries import AWAY, let_wait, said
from billfold.payments.files.store import AlreadyArrived, RailFile
from billfold.payments.suspense import store as suspense_store
from billfold.payments.wires.inbound.booking import Booked, book
from billfold.payments.wires.inbound.suspense import return_id
from billfold.payments.wires.inbound.validation import Known, Lines, mistakes_in, numbers_of
from billfold.payments.wires.outbound_messages import environment_of
from billfold.payments.wires.ports import (
    FedwireFiles,
    FedwireRefused,
    Mistake,
    PaymentReturn,
    PaymentStatus,
    ReturnAnswer,
    ReturnRequest,
)
from billfold.payments.wires.store import arrivals, cases
from billfold.payments.wires.store import message_queue as queue
from billfold.platform.clock import wall_now
from billfold.platform.database.claims import claimed
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.files.ports import Arrived

log = structlog.get_logger(__name__)

_CLAIM = "wire files"
"""One process takes files at a time: a message may be about one in the file before it."""
_WAIT = timedelta(seconds=30)


class WireGate:
    """Takes the files that have arrived from Fedwire."""

    def __init__(self, files: FedwireFiles) -> None:
        self._files = files
        self._turn = asyncio.Lock()

    async def __call__(self, bank: Bank) -> int:
        """An errand of the worker: take what has arrived, unless somebody is at it."""
        if self._turn.locked() or not await self._is_waiting(bank):
            return 0
        return await self.take(bank)

    async def take(self, bank: Bank) -> int:
        """Take every file that has arrived, by name; return how many were looked at."""
        async with self._turn, claimed(bank.pool, _CLAIM, wait=_WAIT):
            return await self._take_all(bank)

    async def _is_waiting(self, bank: Bank) -> bool:
        if await bank.rails.wire.arrived():
            return True
        return bool(await exceptions.list_to_take(bank.pool, "WIRE", wall_now()))

    async def _take_all(self, bank: Bank) -> int:
        looked_at = 0
        for file in await exceptions.list_to_take(bank.pool, "WIRE", wall_now()):
            await self._work_on(bank, file)
            looked_at += 1
        for arrived in await bank.rails.wire.arrived():
            try:
                file = await _keep(bank, arrived)
            except AlreadyArrived as again:
                await _refuse_again(bank, arrived.name, str(again))
            else:
                if exceptions.trouble_of(file) is not None:
                    continue
                await self._work_on(bank, file)
            looked_at += 1
        return looked_at

    async def _work_on(self, bank: Bank, file: RailFile) -> None:
        """Take a file; one with which something goes wrong waits where it is, and no other does."""
        try:
            await self._take(bank, file)
        except AWAY:
            raise
        except Exception as error:  # noqa: BLE001 - a bug in one file must not hold up others
            await let_wait(bank, file, error=said(error))

    async def _take(self, bank: Bank, file: RailFile) -> None:
        content = await files_store.read_content(bank.pool, file.file_id)
        try:
            lines = self._files.read(content, "incoming")
            await _check(bank, file, lines)
        except FedwireRefused as refused:
            await _refuse(bank, file, refused.mistakes)
            return
        booked = await book(bank, lines)
        report = _report(file, booked)
        await bank.rails.wire.put_away(file.name, report=_json(report))
        await files_store.finish(
            bank.pool, file.file_id, "TAKEN", now=await bank.now(), report=report
        )
        log.info("wires_taken", file=file.name, messages=len(lines))


async def _keep(bank: Bank, arrived: Arrived) -> RailFile:
    """Keep a file under an id of its name and content, another one for each time it is refused."""
    proof = sha256(arrived.content).hexdigest()
    named = command_id(f"wire-file-in:{arrived.name}", proof)
    nth = 0
    while True:
        file_id = derive(bank.seed, named, nth)
        file = await files_store.keep_arrived(
            bank.pool, file_id, "WIRE", arrived.name, arrived.content, now=await bank.now()
        )
        if file.state == "TAKEN":
            raise AlreadyArrived(file.name, file.created_at)
        if file.state != "REFUSED":
            return file
        nth += 1


async def _check(bank: Bank, file: RailFile, lines: Lines) -> None:
    """Raise FedwireRefused for what does not hold; else note that these messages are taken.

    A file whose numbers are noted has been found good: what it did since is no reason against it.
    """
    if not lines:
        raise FedwireRefused([Mistake(1, "file", "holds no messages")])
    numbers = [number for _, wire in lines for number in numbers_of(wire)]
    if await _is_noted(bank, file.file_id):
        return
    mistakes = mistakes_in(lines, await _known(bank, file.file_id, numbers, lines))
    if mistakes:
        raise FedwireRefused(mistakes)
    await arrivals.note_arrived(bank.pool, numbers, file.file_id, await bank.now())


async def _is_noted(bank: Bank, file_id: UUID) -> bool:
    noted: bool = await bank.pool.fetchval(
        "SELECT EXISTS (SELECT 1 FROM wire_arrival WHERE file_id = $1)", file_id
    )
    return noted


async def _known(bank: Bank, file_id: UUID, numbers: Sequence[str], lines: Lines) -> Known:
    messages = [wire.message for _, wire in lines]
    statuses = [m.original.message_id for m in messages if isinstance(m, PaymentStatus)]
    about = [m.original.uetr for m in messages if isinstance(m, PaymentReturn | ReturnRequest)]
    answers = [m.case_id for m in messages if isinstance(m, ReturnAnswer)]
    return Known(
        routing_number=bank.settings.bank_routing_number,
        environment=environment_of(bank.settings),
        calendars=bank.calendars,
        today=et_date(await bank.now()),
        arrived=await arrivals.find_arrived(bank.pool, numbers, file_id),
        sent=await queue.find_sent(bank.pool, statuses),
        payments=await _find_payments(bank, about),
        open_cases=await cases.find_open(bank.pool, answers),
    )


async def _find_payments(
    bank: Bank, uetrs: Sequence[str]
) -> dict[tuple[str, str], arrivals.KnownWire]:
    """The payments of these numbers; one whose return is held, or was, has come back too."""
    payments = await arrivals.find_payments(bank.pool, uetrs)
    held_as = {each: return_id(bank, each.wire_id) for each in payments.values()}
    held = {
        each.item_id for each in await suspense_store.find_items(bank.pool, list(held_as.values()))
    }
    return {
        key: each._replace(returned=each.returned or held_as[each] in held)
        for key, each in payments.items()
    }


async def _refuse(bank: Bank, file: RailFile, mistakes: Sequence[Mistake]) -> None:
    report: dict[str, object] = {
        "file": file.name,
        "state": "REFUSED",
        "mistakes": [each._asdict() for each in mistakes],
    }
    await bank.rails.wire.put_away(file.name, report=_json(report), refused=True)
    await files_store.finish(
        bank.pool, file.file_id, "REFUSED", now=await bank.now(), report=report
    )
    log.warning("wire_file_refused", file=file.name, first=str(mistakes[0]))


async def _refuse_again(bank: Bank, name: str, reason: str) -> None:
    """A file that has come before is put away with its report, and leaves no row of its own."""
    mistake = Mistake(0, "file", reason)._asdict()
    report = {"file": name, "state": "REFUSED", "mistakes": [mistake]}
    await bank.rails.wire.put_away(name, report=_json(report), refused=True)
    log.warning("wire_file_came_again", file=name, reason=reason)


def _report(file: RailFile, booked: Sequence[Booked]) -> dict[str, object]:
    return {
        "file": file.name,
        "state": "TAKEN",
        "messages": len(booked),
        "items": [each._asdict() for each in booked],
    }


def _json(report: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=2)
