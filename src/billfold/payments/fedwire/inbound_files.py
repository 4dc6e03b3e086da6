"""Inbound Fedwire files: the numbers of a valid file's messages are recorded, then each message is booked."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any
from uuid import UUID

from typing_extensions import override

from billfold.ledger.bank import Bank
from billfold.payments.fedwire import validation
from billfold.payments.fedwire.booking import BookedMessage, book_messages
from billfold.payments.files import retries
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.inbound import WAIT, InboundFiles
from billfold.payments.files.store import read_content
from billfold.payments.files.types import InvalidFile, RailFile, StuckLine
from billfold.payments.wires import store
from billfold.payments.wires.iso20022 import types
from billfold.payments.wires.iso20022.envelope import read_file
from billfold.payments.wires.messages import environment_of
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import claimed
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id, derive

_CLAIM = "wire files"
"""One process at a time processes files: a message may refer to one in an earlier file."""


class FedwireFileProcessor(InboundFiles):
    """Processes inbound Fedwire files: for a valid file, the numbers of its messages are recorded first."""

    rail = "WIRE"
    whole_file = types.FedwireMistake(0, "file", "")

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
        if await bank.ports[RailExchanges].wire.list_inbound():
            return True
        return bool(await retries.list_due(bank.pool, self.rail, wall_now()))

    @override
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        return derive(bank.seed, command_id(f"wire-file-in:{name}", digest), attempt)

    @override
    async def complete_closed(self, bank: Bank, file: RailFile, report: dict[str, Any]) -> None:
        # A payment returned by an operator is not booked when it comes again in another file.
        with suppress(Exception):  # even an unreadable file is closed
            lines, _ = read_file(await read_content(bank, file.file_id), "incoming")
            numbers = [number for _, wire in lines for number in validation.numbers_of(wire)]
            await store.record_arrived(bank.pool, numbers, file.file_id, now=await bank.now())
        await super().complete_closed(bank, file, report)

    @override
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> dict[str, Any]:
        lines, unread = read_file(content, "incoming")
        if not lines and not unread:
            raise InvalidFile([types.FedwireMistake(1, "file", "contains no messages")])
        valid, refused = await _check_messages(bank, file, lines)
        found = [each.mistakes for each in refused] + [each.mistakes for each in unread]
        mistakes = list(chain.from_iterable(found))
        if not valid and mistakes and all(each.mistakes for each in unread):
            raise InvalidFile(mistakes)
        booked, stuck = await book_messages(bank, valid)
        listed, held = _set_aside(refused, unread)
        items = sorted((*booked, *listed), key=lambda each: each.line)
        return {"messages": len(valid), "items": [each._asdict() for each in items], "stuck": [*stuck, *held]}


async def _check_messages(
    bank: Bank, file: RailFile, lines: validation.NumberedMessages
) -> tuple[validation.NumberedMessages, Sequence[validation.RefusedMessage]]:
    """Return the messages to book, with their numbers recorded, and those with errors.

    A message with recorded numbers was valid before: it is not validated against its own effects.
    """
    recorded = await _list_recorded(bank, file.file_id)
    new = [(line, wire) for line, wire in lines if not recorded.issuperset(validation.numbers_of(wire))]
    numbers = [number for _, wire in new for number in validation.numbers_of(wire)]
    context = await _load_context(bank, file.file_id, numbers, lines=new)
    valid, refused = [], []
    for (line, wire), contradictions in zip(lines, validation.contradictions_in(lines), strict=True):
        is_new = not recorded.issuperset(validation.numbers_of(wire))
        mistakes = (*contradictions, *(validation.mistakes_of(line, wire, context) if is_new else ()))
        if mistakes:
            refused.append(validation.RefusedMessage(line, wire, mistakes))
        else:
            valid.append((line, wire))
    own = [number for _, wire in valid for number in validation.numbers_of(wire)]
    await store.record_arrived(bank.pool, own, file.file_id, now=await bank.now())
    return valid, refused


def _set_aside(
    refused: Sequence[validation.RefusedMessage], unread: Sequence[types.UnreadMessage]
) -> tuple[list[BookedMessage], list[StuckLine]]:
    """Return the messages that are only listed, and those with money, which wait for an operator."""
    listed = [
        BookedMessage(each.line, each.name, each.number, f"REFUSED: {each.reason}" if each.mistakes else "NOT_READ")
        for each in unread
        if not each.carries_money
    ]
    held = [StuckLine(each.line, each.number, each.reason) for each in unread if each.carries_money]
    for each in refused:
        message = each.wire.message
        reason = "; ".join(f"{mistake.element}: {mistake.reason}" for mistake in each.mistakes)
        if isinstance(message, types.CreditTransfer | types.PaymentReturn) and not each.is_repeat:
            held.append(StuckLine(each.line, message.message_id, reason))
        else:
            name = each.wire.header.message_name
            listed.append(BookedMessage(each.line, name, message.message_id, f"REFUSED: {reason}"))
    return listed, sorted(held, key=lambda each: each.line)


async def _list_recorded(bank: Bank, file_id: UUID) -> set[str]:
    """Return the numbers of the messages of this file that were valid before."""
    rows = await bank.pool.fetch("SELECT number FROM received_wire_message WHERE file_id = $1", file_id)
    return {row["number"] for row in rows}


async def _load_context(
    bank: Bank, file_id: UUID, numbers: Sequence[str], lines: validation.NumberedMessages
) -> validation.CheckContext:
    messages = [wire.message for _, wire in lines]
    statuses = [m.original.message_id for m in messages if isinstance(m, types.PaymentStatus)]
    original_uetrs = [m.original.uetr for m in messages if isinstance(m, types.PaymentReturn | types.ReturnRequest)]
    answers = [m.case_id for m in messages if isinstance(m, types.ReturnRequestResponse)]
    return validation.CheckContext(
        routing_number=bank.settings.bank_routing_number,
        environment=environment_of(bank.settings),
        calendars=bank.calendars,
        today=et_date(await bank.now()),
        arrived=await store.find_arrived(bank.pool, numbers, file_id),
        sent=await store.find_sent(bank.pool, statuses),
        payments=await store.find_payments(bank.pool, original_uetrs),
        open_cases=await store.find_open_cases(bank.pool, answers),
    )
