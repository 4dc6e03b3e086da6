"""Messages that were found good become commands; every one may be carried out again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.payments.deposits.inbound import receive
from billfold.payments.deposits.ports import IncomingWire
from billfold.payments.wires.commands import CompleteWire, RejectWire, TakeBackWire
from billfold.payments.wires.inbound.suspense import (
    ROOM,
    Nobody,
    hold_again,
    hold_rejected,
    hold_returned,
    return_id,
)
from billfold.payments.wires.inbound.validation import REJECTED, SETTLED, Lines
from billfold.payments.wires.ports import (
    CreditTransfer,
    PaymentReturn,
    PaymentStatus,
    ReturnAnswer,
    ReturnRequest,
    Wire,
)
from billfold.payments.wires.store import arrivals, cases
from billfold.payments.wires.store import message_queue as queue
from billfold.payments.wires.types import WireDirection
from billfold.platform.errors import BillfoldError, Refused
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command, Outcome

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
    for command, outcome in zip(commands, await _carry_out(bank, commands), strict=True):
        if outcome.get("no_pocket"):
            await hold_rejected(bank, command.references[0])
    for _, wire in about:
        message = _status(wire)
        about_it = sent[message.original.message_id]
        if message.status == REJECTED and _is_unbooked_return(about_it):
            await hold_again(bank, about_it)
    return booked


async def _carry_out(bank: Bank, commands: Sequence[Command]) -> list[Outcome]:
    """Give commands that nothing refuses; return their outcomes."""
    outcomes = []
    for answer in await bank.engine.submit_all(commands):
        if isinstance(answer, BillfoldError):
            raise answer
        outcomes.append(answer.outcome)
    return outcomes


def _completed(wire: arrivals.KnownWire) -> CompleteWire:
    return CompleteWire(
        caller=f"{ROOM}:settled", key=wire.wire_id, customers=(wire.customer_id,),
        references=(wire.wire_id,), wire_id=wire.wire_id,
    )  # fmt: skip


def _is_unbooked_return(sent: queue.Sent) -> bool:
    """Is it a return of what never reached a Pocket?"""
    return sent.kind == "pacs.004" and sent.direction != WireDirection.OUTGOING


def _status(wire: Wire) -> PaymentStatus:
    assert isinstance(wire.message, PaymentStatus)
    return wire.message


def _move(wire: Wire, sent: queue.Sent) -> Command | None:
    """The command for a status of a wire of ours; None for a status that ends nothing."""
    message = _status(wire)
    if sent.direction != WireDirection.OUTGOING or not sent.kind.startswith("pacs"):
        return None
    fields: dict[str, Any] = {
        "customers": (sent.customer_id,),
        "references": (sent.wire_id,),
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


# -- what comes back --------------------------------------------------------------------


async def _returns(bank: Bank, lines: Lines) -> list[Booked]:
    about = [
        (line, wire, wire.message)
        for line, wire in lines
        if isinstance(wire.message, PaymentReturn)
    ]
    payments = await arrivals.find_payments(bank.pool, [m.original.uetr for _, _, m in about])
    originals = [payments[WireDirection.OUTGOING, message.original.uetr] for _, _, message in about]
    # What comes back has settled, though nobody has said so yet.
    await _carry_out(bank, [_completed(each) for each in originals if each.status == "PROCESSING"])
    commands = [
        _take_back(bank, wire, message, original)
        for (_, wire, message), original in zip(about, originals, strict=True)
    ]
    booked = []
    answers = await bank.engine.submit_all(commands)
    for (line, wire, _), command, answer in zip(about, commands, answers, strict=True):
        if isinstance(answer, BillfoldError) and not isinstance(answer, Refused):
            raise answer
        outcome = "RETURNED"
        if isinstance(answer, Refused):
            # Its pocket is closed: the money is there, and the operator finds its owner.
            outcome = answer.code
            await hold_returned(bank, wire, command, answer.code)
        booked.append(_booked(line, wire, outcome, command.wire_id))
    return booked


def _take_back(
    bank: Bank, wire: Wire, message: PaymentReturn, original: arrivals.KnownWire
) -> TakeBackWire:
    return TakeBackWire(
        caller=f"{ROOM}:returned",
        key=original.wire_id,
        customers=(original.customer_id,),
        references=(original.wire_id,),
        wire_id=return_id(bank, original.wire_id),
        original_id=original.wire_id,
        code=message.reason,
        information=message.information,
        imad=message.message_id,
        omad=wire.header.business_id,
        message=msgspec.json.encode(message).decode(),
        amount=message.amount,
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
                bank.pool, WireDirection.OUTGOING, message.case_id,
                "ACCEPTED" if accepted else "REFUSED", now=await bank.now(),
                information=message.information or message.reason,
            )  # fmt: skip
            booked.append(_booked(line, wire, "ACCEPTED" if accepted else "REFUSED"))
    return booked


async def _open(bank: Bank, line: int, wire: Wire, message: ReturnRequest) -> Booked:
    payments = await arrivals.find_payments(bank.pool, [message.original.uetr])
    original = payments[WireDirection.INCOMING, message.original.uetr]
    await cases.open_case(
        bank.pool, case_id=message.case_id, direction=WireDirection.INCOMING,
        customer_id=original.customer_id, wire_id=original.wire_id, reason=message.reason,
        information=message.information, message=msgspec.json.encode(message).decode(),
        now=await bank.now(),
    )  # fmt: skip
    return _booked(line, wire, "OPEN", original.wire_id)


def _booked(line: int, wire: Wire, outcome: str, wire_id: UUID | None = None) -> Booked:
    named = None if wire_id is None else str(wire_id)
    return Booked(line, wire.header.message_name, wire.message.message_id, outcome, named)
