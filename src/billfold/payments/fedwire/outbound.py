"""Outbound wire messages: queued, built from their terms, and sent in Fedwire files.

Due messages get their IMADs, are written into one file, stored and transmitted. After a crash
another process continues with the file and sends nothing twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from uuid import UUID

import structlog

from billfold.data_keys.keys import DataKeys, KeyRing, bank_key
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.fedwire.booking import hold_rejected
from billfold.payments.files import store as file_store
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.inbound import WAIT
from billfold.payments.files.store import read_content, seal_content
from billfold.payments.files.types import RailFile
from billfold.payments.liquidity.worker import admit_due
from billfold.payments.wires import store
from billfold.payments.wires.commands import RejectWire, SubmitWire, WireDirection
from billfold.payments.wires.iso20022.envelope import write_messages
from billfold.payments.wires.iso20022.types import FEDWIRE_ROUTING_NUMBER, FedwireMessage, Header
from billfold.payments.wires.messages import environment_of, fedwire_day, message_to_send
from billfold.payments.wires.rules import cut_offs
from billfold.payments.wires.store import PendingMessage, SentMessage
from billfold.platform.database.background_work import claimed
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive

log = structlog.get_logger(__name__)

MESSAGES_PER_FILE = 100
"""Few, as the customers whose wires a file takes wait while it is written."""
_BLOCKED, _SANCTIONS = "AC06", "SANC"
"""The codes with which the bank itself stops a wire."""
_CLAIM = "wire sending"
_CUSTOMER_MESSAGE_KINDS = frozenset({"pacs.008", "pacs.004"})

OnTransmitted = Callable[["Bank", UUID], Awaitable[None]]
"""Called after a file is transmitted; the sandbox schedules its simulated answer."""


class FedwireSender:
    """Sends queued messages."""

    def __init__(self, on_transmitted: OnTransmitted | None = None) -> None:
        self._on_transmitted = on_transmitted
        self._lock = asyncio.Lock()
        self._begun = self._ended = 0

    async def run(self, bank: Bank, job: ScheduledJob) -> None:
        """Send due messages: a scheduled job. One job sends the messages of all jobs of an instant."""
        now = await bank.now()
        if bank.calendars.is_fed_day(et_date(now)):
            await self.send(bank)
        else:  # the day has been declared closed
            at = cut_offs.send_time(now, bank.calendars, bank.terms.wire_hours, international=False)
            await scheduler.schedule(bank.pool, [job._replace(at=at)])

    async def send(self, bank: Bank) -> int:
        """Transmit all due messages; return the number of files.

        Waits for another process that is sending: when this returns, everything due has been sent.
        """
        asked = self._begun
        async with self._lock:
            if self._ended > asked:  # for another job of this instant, and begun after this one asked
                return 0
            self._begun += 1
            sent = await self._send_due(bank)
            self._ended = self._begun
        return sent

    async def _send_due(self, bank: Bank) -> int:
        sent = 0
        async with claimed(bank.pool, _CLAIM, wait=WAIT):
            for file in await file_store.list_unfinished(bank.pool, "WIRE", "OUT"):
                await self._transmit(bank, file)
                sent += 1
            await _reject_stopped(bank)
            admitted = await admit_due(bank)
            while (new_file := await self._compose(bank, admitted)) is not None:
                await self._transmit(bank, new_file)
                sent += 1
        return sent

    async def _compose(self, bank: Bank, admitted: Sequence[UUID] | None) -> RailFile | None:
        """Write due messages into a file and store it; None if nothing is due that may leave."""
        now, data_key = await bank.now(), await bank_key(bank)
        await bank.ports[DataKeys].load(
            bank.pool, await store.list_pending_customers(bank.pool, now, MESSAGES_PER_FILE, admitted=admitted)
        )
        async with bank.pool.acquire() as conn, conn.transaction():
            pending = await store.claim_pending(conn, now, MESSAGES_PER_FILE, admitted=admitted)
            if not pending:
                return None
            numbered_messages = await _assign_imads(conn, bank, pending, now=now)
            ring = await bank.ports[DataKeys].load(conn, {each.customer_id for each in pending})
            content = write_messages([_wire(bank, ring, *each, now) for each in numbered_messages], "outgoing")
            first = numbered_messages[0][1]
            file_id = derive(bank.seed, command_id("wire-file", first), 0)
            await store.mark_sent(conn, [(each.message_id, imad) for each, imad in numbered_messages], file_id, now=now)
            sealed = seal_content(data_key, file_id, content)
            return await file_store.save_outbound(
                conn, file_id, "WIRE", name=f"fedwire-{first}.xml", content=sealed, now=now
            )

    async def _transmit(self, bank: Bank, file: RailFile) -> None:
        """Mark the wires of a file as submitted, and transmit the file."""
        messages = await store.list_of_file(bank.pool, file.file_id)
        for answer in await bank.engine.submit_all([_submit_command(each) for each in _own_wires(messages)]):
            if isinstance(answer, BillfoldError):
                raise answer
        content = await read_content(bank, file.file_id)
        await bank.ports[RailExchanges].wire.transmit(file.name, content)
        if self._on_transmitted is not None:
            await self._on_transmitted(bank, file.file_id)
        report: dict[str, object] = {"messages": len(messages)}
        await file_store.complete_file(bank.pool, file.file_id, "TRANSMITTED", now=await bank.now(), report=report)
        log.info("fedwire_file_transmitted", file=file.name, messages=len(messages))


async def _reject_stopped(bank: Bank) -> None:
    """Reject wires whose customer was frozen, or counterparty stopped by sanctions screening, in the meantime."""
    for customer_id, wire_id, is_frozen in await store.list_stopped(bank.pool, await bank.now()):
        answer = await bank.engine.submit(
            RejectWire(
                caller="wire-room:stopped",
                key=wire_id,
                customers=(customer_id,),
                references=(wire_id,),
                wire_id=wire_id,
                code=_BLOCKED if is_frozen else _SANCTIONS,
            )
        )
        if answer.outcome.get("no_pocket"):
            await hold_rejected(bank, wire_id)


def _own_wires(messages: Sequence[SentMessage]) -> list[SentMessage]:
    """Return the messages that carry a customer's wire."""
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


async def _assign_imads(
    conn: Connection, bank: Bank, pending: Sequence[PendingMessage], now: datetime
) -> list[tuple[PendingMessage, str]]:
    """Assign every message its IMAD: Fedwire business day, our source and the day's sequence number."""
    day = fedwire_day(bank, now)
    source = bank.settings.bank_bic[:8].ljust(8, "0")
    numbers = await store.allocate_numbers(conn, day, len(pending))
    return [(each, f"{day:%Y%m%d}{source}{number:06}") for each, number in zip(pending, numbers, strict=True)]


def _wire(bank: Bank, ring: KeyRing, pending: PendingMessage, imad: str, now: datetime) -> FedwireMessage:
    message = message_to_send(bank, ring, pending, imad, at=now)
    header = Header(
        sender=bank.settings.bank_routing_number,
        receiver=FEDWIRE_ROUTING_NUMBER,
        business_id=imad,
        message_name=str(type(message).__struct_config__.tag),
        environment=environment_of(bank.settings),
        created_at=now,
    )
    return FedwireMessage(header=header, message=message)
