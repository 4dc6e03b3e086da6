"""Messages that were found good become commands; every one may be carried out again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec
import structlog

from billfold.domain import suspense, wires
from billfold.domain.wires import arrivals, cases, queue
from billfold.engine.due_work import house_id
from billfold.engine.wire_messages import queue_about
from billfold.flows.suspense import HoldInSuspense, ReturnFromSuspense
from billfold.flows.take_back_wire import TakeBackWire
from billfold.flows.wire_moves import CompleteWire, RejectWire
from billfold.interfaces.inbound.receive import NO_ACCOUNT, receive
from billfold.interfaces.inbound.wire_checks import REJECTED, SETTLED, Lines
from billfold.kit.errors import BillfoldError, Refused
from billfold.kit.ids import command_id, derive
from billfold.ports.bank import IncomingPayment, IncomingWire
from billfold.ports.fedwire import (
    CreditTransfer,
    PaymentReturn,
    PaymentStatus,
    ReturnAnswer,
    ReturnRequest,
    Wire,
)

if TYPE_CHECKING:
    from billfold.domain.agenda import Appointment
    from billfold.engine.bank import Bank
    from billfold.flows.command import Command

log = structlog.get_logger(__name__)

ROOM = "wire-room"
"""Who gives the commands that messages ask for."""
_SIDE_BY_SIDE = 200
_ACCEPTED = "CNCL"


class Booked(NamedTuple):
    """What became of one message, for the report."""

    line: int
    message: str
    number: str
    outcome: str
    wire_id: str | None = None


async def book(bank: Bank, lines: Lines) -> list[Booked]:
    """Book every message: statuses first, so that what comes back has settled before."""
    booked = await _statuses(bank, lines)
    booked += await _payments(bank, lines)
    booked += await _returns(bank, lines)
    booked += await _requests(bank, lines)
    return sorted(booked)


# -- what became of ours ----------------------------------------------------------------


async def _statuses(bank: Bank, lines: Lines) -> list[Booked]:
    about = [(line, w) for line, w in lines if isinstance(w.message, PaymentStatus)]
    sent = await queue.find_sent(bank.pool, [_status(w).original.message_id for _, w in about])
    commands: list[Command] = []
    booked: list[Booked] = []
    for line, wire in about:
        message = _status(wire)
        about_it = sent[message.original.message_id]
        command = _move(wire, about_it)
        if command is not None:
            commands.append(command)
        booked.append(_booked(line, wire, message.status, about_it.wire_id))
    for answer in await bank.engine.submit_all(commands):
        if isinstance(answer, BillfoldError):
            raise answer
    return booked


def _status(wire: Wire) -> PaymentStatus:
    assert isinstance(wire.message, PaymentStatus)
    return wire.message


def _move(wire: Wire, sent: queue.Sent) -> Command | None:
    """The command for a status of a wire of ours; None for a status that ends nothing."""
    message = _status(wire)
    if sent.direction != wires.OUTGOING or not sent.kind.startswith("pacs"):
        return None
    fields: dict[str, Any] = {
        "customers": (sent.customer_id,),
        "looks_at": (sent.wire_id,),
        "key": sent.wire_id,
        "wire_id": sent.wire_id,
    }
    if message.status == SETTLED:
        return CompleteWire(caller=f"{ROOM}:settled", omad=wire.header.business_id, **fields)
    if message.status == REJECTED:
        return RejectWire(caller=f"{ROOM}:rejected", code=message.reason, **fields)
    return None


# -- payments to us ---------------------------------------------------------------------


async def _payments(bank: Bank, lines: Lines) -> list[Booked]:
    about = [(line, w) for line, w in lines if isinstance(w.message, CreditTransfer)]
    gate = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def take(line: int, wire: Wire) -> Booked:
        async with gate:
            payment = incoming(bank, wire)
            received = await receive(bank, Nobody(bank), payment)
        outcome = received.status if received.reason is None else received.reason
        return _booked(line, wire, outcome, payment.wire_id)

    return list(await asyncio.gather(*(take(line, wire) for line, wire in about)))


def incoming(bank: Bank, wire: Wire) -> IncomingWire:
    """Return the payment that a message brings."""
    message = wire.message
    assert isinstance(message, CreditTransfer)
    wire_id = derive(bank.seed, command_id("fedwire", message.uetr), 0)
    return IncomingWire(
        wire_id=wire_id,
        routing_number=message.receiver,
        account_number=_number(message) or "",
        amount=message.amount,
        sender_name=message.debtor.name,
        reference_number=message.instruction_id or message.message_id,
        description=message.remittance or f"Wire from {message.debtor.name}",
        sender_account_number=_sender_account(message),
        sender_routing_number=message.debtor_agent.routing_number or message.debtor_agent.bic,
        omad=wire.header.business_id,
        message=message,
    )


def _number(message: CreditTransfer) -> str | None:
    account = message.creditor_account
    return None if account is None else account.number or account.iban


def _sender_account(message: CreditTransfer) -> str | None:
    account = message.debtor_account
    return None if account is None else account.number or account.iban


class Nobody:
    """Takes what reached nobody: the house holds it and gives it back the same day."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    async def send_back(self, payment: IncomingPayment, reason: str) -> None:
        """Hold a wire for no account and return it; a rejected one has queued its own return."""
        if isinstance(payment, IncomingWire) and payment.message and reason == NO_ACCOUNT:
            details = {
                "description": payment.description,
                "wire_id": str(payment.wire_id),
                "message": msgspec.to_builtins(payment.message),
            }
            await hold(self._bank, payment.wire_id, payment.amount, reason, details)
            await give_back(self._bank, payment.wire_id, reason)


async def hold(
    bank: Bank, item_id: UUID, amount: int, reason: str, details: dict[str, Any]
) -> None:
    """Let the house hold what has no owner, or one who takes nothing."""
    await bank.engine.submit(
        HoldInSuspense(
            caller=ROOM, key=item_id, customers=(house_id(bank.seed),), item_id=item_id,
            rail="WIRE", direction="CREDIT", amount=amount, reason=reason, details=details,
        )
    )  # fmt: skip


async def give_back(bank: Bank, item_id: UUID, reason: str) -> None:
    """Let the house return what it holds."""
    await bank.engine.submit(
        ReturnFromSuspense(
            caller=f"{ROOM}:suspense", key=item_id, customers=(house_id(bank.seed),),
            item_id=item_id, reason=reason, looks_at=(item_id,),
        )
    )  # fmt: skip


async def send_back_held(bank: Bank, appointment: Appointment) -> None:
    """Keep the appointment of a held wire that is returned: its message goes as wires do."""
    item = await suspense.get_item(bank.pool, appointment.object_id)
    told = msgspec.json.decode(item.details, type=dict[str, Any])
    if "message" not in told:
        log.warning("nothing_to_send_back", item_id=str(item.item_id))
        return
    terms = wires.payment_return(
        msgspec.convert(told["message"], CreditTransfer),
        bank=bank.settings.bank_routing_number,
        reason=item.return_reason or item.reason,
        information="The account takes no payments",
    )
    async with bank.pool.acquire() as conn, conn.transaction():
        house = house_id(bank.seed)
        await queue_about(bank, conn, item.item_id, house, "pacs.004", terms)


# -- what comes back --------------------------------------------------------------------


async def _returns(bank: Bank, lines: Lines) -> list[Booked]:
    about = [
        (line, wire, wire.message)
        for line, wire in lines
        if isinstance(wire.message, PaymentReturn)
    ]
    payments = await arrivals.find_payments(bank.pool, [m.original.uetr for _, _, m in about])
    originals = [payments[wires.OUTGOING, message.original.uetr] for _, _, message in about]
    commands = [
        _take_back(bank, wire, message, original)
        for (_, wire, message), original in zip(about, originals, strict=True)
    ]
    booked = []
    answers = await bank.engine.submit_all(commands)
    for (line, wire, message), command, answer in zip(about, commands, answers, strict=True):
        if isinstance(answer, BillfoldError) and not isinstance(answer, Refused):
            raise answer
        outcome = "RETURNED"
        if isinstance(answer, Refused):
            # Its pocket is closed: the money is there, and the operator finds its owner.
            outcome = answer.code
            told = {"description": message.information or message.reason}
            await hold(bank, command.wire_id, message.amount, answer.code, told)
        booked.append(_booked(line, wire, outcome, command.wire_id))
    return booked


def _take_back(
    bank: Bank, wire: Wire, message: PaymentReturn, original: arrivals.KnownWire
) -> TakeBackWire:
    return TakeBackWire(
        caller=f"{ROOM}:returned",
        key=original.wire_id,
        customers=(original.customer_id,),
        looks_at=(original.wire_id,),
        wire_id=derive(bank.seed, command_id(f"{ROOM}:returned", original.wire_id), 0),
        original_id=original.wire_id,
        code=message.reason,
        information=message.information,
        imad=message.message_id,
        omad=wire.header.business_id,
        message=msgspec.json.encode(message).decode(),
    )


# -- what is asked for ------------------------------------------------------------------


async def _requests(bank: Bank, lines: Lines) -> list[Booked]:
    booked = []
    for line, wire in lines:
        message = wire.message
        if isinstance(message, ReturnRequest):
            booked.append(await _open(bank, line, wire, message))
        elif isinstance(message, ReturnAnswer):
            accepted = message.verdict == _ACCEPTED
            await cases.close_case(
                bank.pool, wires.OUTGOING, message.case_id,
                "ACCEPTED" if accepted else "REFUSED", now=await bank.now(),
                information=message.information or message.reason,
            )  # fmt: skip
            booked.append(_booked(line, wire, "ACCEPTED" if accepted else "REFUSED"))
    return booked


async def _open(bank: Bank, line: int, wire: Wire, message: ReturnRequest) -> Booked:
    payments = await arrivals.find_payments(bank.pool, [message.original.uetr])
    original = payments[wires.INCOMING, message.original.uetr]
    await cases.open_case(
        bank.pool, case_id=message.case_id, direction=wires.INCOMING,
        customer_id=original.customer_id, wire_id=original.wire_id, reason=message.reason,
        information=message.information, message=msgspec.json.encode(message).decode(),
        now=await bank.now(),
    )  # fmt: skip
    return _booked(line, wire, "OPEN", original.wire_id)


def _booked(line: int, wire: Wire, outcome: str, wire_id: UUID | None = None) -> Booked:
    named = None if wire_id is None else str(wire_id)
    return Booked(line, wire.header.message_name, wire.message.message_id, outcome, named)
