"""Outbound Fedwire files: due messages get their IMADs, are written into one file and transmitted.

A file is stored before it is transmitted. After a crash another process continues with the file and
sends nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from billfold.payments.files import store as files_store
from billfold.payments.files.store import RailFile
from billfold.payments.wires.commands import SubmitWire
from billfold.payments.wires.iso20022.envelope import write_messages
from billfold.payments.wires.iso20022.types import FEDWIRE_ROUTING_NUMBER, FedwireMessage, Header, Message
from billfold.payments.wires.outbound_messages import environment_of, fedwire_day, message_of
from billfold.payments.wires.store import message_queue as queue
from billfold.payments.wires.types import WireDirection
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.jobs.types import ScheduledJob
    from billfold.payments.wires.store.message_queue import PendingMessage, SentMessage
    from billfold.platform.database.pool import Connection

log = structlog.get_logger(__name__)

MESSAGES_PER_FILE = 1_000
_CUSTOMER_MESSAGE_KINDS = frozenset({"pacs.008", "pacs.004"})

OnTransmitted = Callable[["Bank", UUID], Awaitable[None]]
"""Called after a file is transmitted; the sandbox schedules its simulated answer."""


class FedwireSender:
    """Sends queued messages."""

    def __init__(self, on_transmitted: OnTransmitted | None = None) -> None:
        self._on_transmitted = on_transmitted
        self._lock = asyncio.Lock()

    async def run(self, bank: Bank, job: ScheduledJob) -> None:
        """Send due messages: a scheduled job. One job sends the messages of all jobs of an instant."""
        del job
        await self.send(bank)

    async def send(self, bank: Bank) -> int:
        """Transmit all due messages; return the number of files."""
        sent = 0
        async with self._lock:
            for file in await files_store.list_unfinished(bank.pool, "WIRE", "OUT"):
                await self._transmit(bank, file)
                sent += 1
            while (new_file := await self._compose(bank)) is not None:
                await self._transmit(bank, new_file)
                sent += 1
        return sent

    async def _compose(self, bank: Bank) -> RailFile | None:
        """Write due messages into a file and store it; None if nothing is due."""
        now = await bank.now()
        async with bank.pool.acquire() as conn, conn.transaction():
            pending = await queue.claim_pending(conn, now, MESSAGES_PER_FILE)
            if not pending:
                return None
            numbered_messages = await _number(conn, bank, pending, now=now)
            content = write_messages([_wire(bank, *each, now) for each in numbered_messages], "outgoing")
            first = numbered_messages[0][1]
            file_id = derive(bank.seed, command_id("wire-file", first), 0)
            await queue.mark_sent(conn, [(each.message_id, imad) for each, imad in numbered_messages], file_id, now=now)
            return await files_store.save_outbound(
                conn, file_id, "WIRE", name=f"fedwire-{first}.xml", content=content, now=now
            )

    async def _transmit(self, bank: Bank, file: RailFile) -> None:
        """Mark the wires of a file as submitted, and transmit the file."""
        messages = await queue.list_of_file(bank.pool, file.file_id)
        for answer in await bank.engine.submit_all([_submit_command(each) for each in _own_wires(messages)]):
            if isinstance(answer, BillfoldError):
                raise answer
        content = await files_store.read_content(bank.pool, file.file_id)
        await bank.rails.wire.transmit(file.name, content)
        if self._on_transmitted is not None:
            await self._on_transmitted(bank, file.file_id)
        report: dict[str, object] = {"messages": len(messages)}
        await files_store.complete_file(bank.pool, file.file_id, "TRANSMITTED", now=await bank.now(), report=report)
        log.info("fedwire_file_transmitted", file=file.name, messages=len(messages))


def _own_wires(messages: Sequence[SentMessage]) -> list[SentMessage]:
    """Return the messages that carry a wire of a customer."""
    return [
        each for each in messages if each.kind in _CUSTOMER_MESSAGE_KINDS and each.direction == WireDirection.OUTGOING
    ]


def _submit_command(sent: SentMessage) -> SubmitWire:
    return SubmitWire(
        caller="wire-room",
        key=sent.message_id,
        customers=(sent.customer_id,),
        references=(sent.wire_id,),
        wire_id=sent.wire_id,
        imad=sent.imad,
    )


async def _number(
    conn: Connection, bank: Bank, pending: Sequence[PendingMessage], now: datetime
) -> list[tuple[PendingMessage, str]]:
    """Assign every message its IMAD: Fedwire business day, our source and the sequence of the day."""
    day = fedwire_day(bank, now)
    source = bank.settings.bank_bic[:8].ljust(8, "0")
    numbers = await queue.allocate_numbers(conn, day, len(pending))
    return [(each, f"{day:%Y%m%d}{source}{number:06}") for each, number in zip(pending, numbers, strict=True)]


def _wire(bank: Bank, pending: PendingMessage, imad: str, now: datetime) -> FedwireMessage:
    message = message_of(bank, pending, imad, at=now)
    return FedwireMessage(header=header_of(bank, message, imad, now=now), message=message)


def header_of(bank: Bank, message: Message, number: str, now: datetime) -> Header:
    """Return the header of an outbound message."""
    return Header(
        sender=bank.settings.bank_routing_number,
        receiver=FEDWIRE_ROUTING_NUMBER,
        business_id=number,
        message_name=str(type(message).__struct_config__.tag),
        environment=environment_of(bank.settings),
        created_at=now,
    )
