"""The wire room's way out: messages that may go are numbered, put into one file, handed over.

A file is kept before anything is done with it. Whoever dies on the way is followed by the next,
who goes on with the file and does nothing twice.
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
from billfold.payments.wires.outbound_messages import environment_of, fedwire_day, message_of
from billfold.payments.wires.ports import SYSTEM, FedwireFiles, Header, Message, Wire
from billfold.payments.wires.store import message_queue as queue
from billfold.payments.wires.types import WireDirection
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.jobs.types import Appointment
    from billfold.payments.wires.store.message_queue import Sent, Waiting
    from billfold.platform.database.pool import Connection

log = structlog.get_logger(__name__)

IN_ONE_FILE = 1_000
_TOLD_TO_CUSTOMERS = frozenset({"pacs.008", "pacs.004"})

OnHanded = Callable[["Bank", UUID], Awaitable[None]]
"""What is done once a file is handed over, as the sandbox's world does."""


class WireSender:
    """Keeps the appointments of messages that wait."""

    def __init__(self, files: FedwireFiles, on_handed: OnHanded | None = None) -> None:
        self._files = files
        self._on_handed = on_handed
        self._turn = asyncio.Lock()

    async def keep(self, bank: Bank, appointment: Appointment) -> None:
        """Send what may go. Most appointments of an instant find it done."""
        del appointment
        await self.send(bank)

    async def send(self, bank: Bank) -> int:
        """Hand over every message whose instant has come; return how many files that were."""
        sent = 0
        async with self._turn:
            for file in await files_store.list_unfinished(bank.pool, "WIRE", "OUT"):
                await self._hand_over(bank, file)
                sent += 1
            while (file_made := await self._compose(bank)) is not None:
                await self._hand_over(bank, file_made)
                sent += 1
        return sent

    async def _compose(self, bank: Bank) -> RailFile | None:
        """Put the messages that may go into a file and keep it; None when there are none."""
        now = await bank.now()
        async with bank.pool.acquire() as conn, conn.transaction():
            waiting = await queue.take_waiting(conn, now, IN_ONE_FILE)
            if not waiting:
                return None
            numbered = await _number(conn, bank, waiting, now)
            content = self._files.write([_wire(bank, *each, now) for each in numbered], "outgoing")
            first = numbered[0][1]
            file_id = derive(bank.seed, command_id("wire-file", first), 0)
            await queue.mark_sent(
                conn, [(each.message_id, imad) for each, imad in numbered], file_id, now
            )
            return await files_store.keep_made(
                conn, file_id, "WIRE", f"fedwire-{first}.xml", content, now=now
            )

    async def _hand_over(self, bank: Bank, file: RailFile) -> None:
        """Tell the books that the messages go, and let them go."""
        messages = await queue.list_of_file(bank.pool, file.file_id)
        for answer in await bank.engine.submit_all([_submit(each) for each in _ours(messages)]):
            if isinstance(answer, BillfoldError):
                raise answer
        content = await files_store.read_content(bank.pool, file.file_id)
        await bank.rails.wire.hand_over(file.name, content)
        if self._on_handed is not None:
            await self._on_handed(bank, file.file_id)
        report: dict[str, object] = {"messages": len(messages)}
        await files_store.finish(
            bank.pool, file.file_id, "HANDED", now=await bank.now(), report=report
        )
        log.info("wires_handed_over", file=file.name, messages=len(messages))


def _ours(messages: Sequence[Sent]) -> list[Sent]:
    """Those messages that carry a wire of ours."""
    return [
        each
        for each in messages
        if each.kind in _TOLD_TO_CUSTOMERS and each.direction == WireDirection.OUTGOING
    ]


def _submit(sent: Sent) -> SubmitWire:
    return SubmitWire(
        caller="wire-room",
        key=sent.message_id,
        customers=(sent.customer_id,),
        references=(sent.wire_id,),
        wire_id=sent.wire_id,
        imad=sent.imad,
    )


async def _number(
    conn: Connection, bank: Bank, waiting: Sequence[Waiting], now: datetime
) -> list[tuple[Waiting, str]]:
    """Give every message its IMAD: the day of Fedwire, our source and a number of the day."""
    day = fedwire_day(bank, now)
    source = bank.settings.bank_bic[:8].ljust(8, "0")
    numbers = await queue.draw_numbers(conn, day, len(waiting))
    return [
        (each, f"{day:%Y%m%d}{source}{number:06}")
        for each, number in zip(waiting, numbers, strict=True)
    ]


def _wire(bank: Bank, waiting: Waiting, imad: str, now: datetime) -> Wire:
    message = message_of(bank, waiting, imad, now)
    return Wire(header=header_of(bank, message, imad, now), message=message)


def header_of(bank: Bank, message: Message, number: str, now: datetime) -> Header:
    """Return the header of a message of ours."""
    return Header(
        sender=bank.settings.bank_routing_number,
        receiver=SYSTEM,
        business_id=number,
        message_name=str(type(message).__struct_config__.tag),
        environment=environment_of(bank.settings),
        created_at=now,
    )
