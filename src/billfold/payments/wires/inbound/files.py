"""Inbound Fedwire files: the numbers of a valid file's messages are recorded, then each message is booked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from typing_extensions import override

from billfold.payments.files import retries
from billfold.payments.files.inbound import WAIT, InboundFiles
from billfold.payments.files.types import InvalidFile
from billfold.payments.wires.inbound.booking import book
from billfold.payments.wires.inbound.validation import CheckContext, NumberedMessages, mistakes_in, numbers_of
from billfold.payments.wires.iso20022.envelope import read_messages
from billfold.payments.wires.iso20022.types import (
    FedwireMistake,
    PaymentReturn,
    PaymentStatus,
    ReturnRequest,
    ReturnRequestResponse,
)
from billfold.payments.wires.outbound import environment_of
from billfold.payments.wires.store import cases, wires
from billfold.payments.wires.store import message_queue as queue
from billfold.platform.clock import wall_now
from billfold.platform.database.claims import claimed
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.files.types import RailFile

_CLAIM = "wire files"
"""One process at a time processes files: a message may refer to one in an earlier file."""


class FedwireFileProcessor(InboundFiles):
    """Processes inbound Fedwire files: valid ones have the numbers of their messages recorded first."""

    rail = "WIRE"
    whole_file = FedwireMistake(0, "file", "")

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def __call__(self, bank: Bank) -> int:
        """A task of the worker: process inbound files, unless that is in progress."""
        if self._lock.locked() or not await self._has_work(bank):
            return 0
        return await self.process_all(bank)

    @override
    async def process_all(self, bank: Bank) -> int:
        async with self._lock, claimed(bank.pool, _CLAIM, wait=WAIT):
            return await super().process_all(bank)

    async def _has_work(self, bank: Bank) -> bool:
        if await bank.rails.wire.list_inbound():
            return True
        return bool(await retries.list_due(bank.pool, self.rail, wall_now()))

    @override
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        return derive(bank.seed, command_id(f"wire-file-in:{name}", digest), attempt)

    @override
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> dict[str, Any]:
        lines = read_messages(content, "incoming")
        await _check(bank, file, lines)
        booked, stuck = await book(bank, lines)
        return {"messages": len(lines), "items": [each._asdict() for each in booked], "stuck": stuck}


async def _check(bank: Bank, file: RailFile, lines: NumberedMessages) -> None:
    """Raise InvalidFile for an invalid file; else record the numbers of its messages.

    A file with recorded numbers was valid before: it is not validated against its own effects.
    """
    if not lines:
        raise InvalidFile([FedwireMistake(1, "file", "contains no messages")])
    numbers = [number for _, wire in lines for number in numbers_of(wire)]
    if await _is_recorded(bank, file.file_id):
        return
    mistakes = mistakes_in(lines, await _load_context(bank, file.file_id, numbers, lines=lines))
    if mistakes:
        raise InvalidFile(mistakes)
    await wires.record_arrived(bank.pool, numbers, file.file_id, now=await bank.now())


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
        arrived=await wires.find_arrived(bank.pool, numbers, file_id),
        sent=await queue.find_sent(bank.pool, statuses),
        payments=await wires.find_payments(bank.pool, original_uetrs),
        open_cases=await cases.find_open_cases(bank.pool, answers),
    )
