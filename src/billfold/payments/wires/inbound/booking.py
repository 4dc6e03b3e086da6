"""Booking of validated messages. Every command is safe to repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.payments.deposits.inbound import NO_ACCOUNT, receive
from billfold.payments.deposits.types import IncomingWire
from billfold.payments.wires.commands import CompleteWire, ReceiveWireReturn, RejectWire
from billfold.payments.wires.inbound.suspense import (
    FEDWIRE_CALLER,
    hold_refused_return,
    hold_rejected,
    hold_returned,
    return_id,
    return_unclaimed,
)
from billfold.payments.wires.inbound.validation import REJECTED, SETTLED, NumberedMessages
from billfold.payments.wires.iso20022.types import (
    CreditTransfer,
    FedwireMessage,
    PaymentReturn,
    PaymentStatus,
    ReturnRequest,
    ReturnRequestResponse,
)
from billfold.payments.wires.store import arrivals, cases
from billfold.payments.wires.store import message_queue as queue
from billfold.payments.wires.types import WireDirection
from billfold.platform.errors import BillfoldError, Refused
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command, Outcome

_CONCURRENT_PAYMENTS = 200
_ACCEPTED = "CNCL"


class BookedMessage(NamedTuple):
    """The outcome of one message, for the report."""

    line: int
    message: str
    number: str
    outcome: str
    wire_id: str | None = None


async def book(bank: Bank, lines: NumberedMessages) -> list[BookedMessage]:
    """Book every message. Statuses come first, so that a wire settles before its return."""
    booked = await _statuses(bank, lines)
    booked += await _payments(bank, lines)
    booked += await _returns(bank, lines)
    booked += await _requests(bank, lines)
    return sorted(booked)


# -- statuses of sent messages ----------------------------------------------------------


async def _statuses(bank: Bank, lines: NumberedMessages) -> list[BookedMessage]:
    relevant = [(line, w) for line, w in lines if isinstance(w.message, PaymentStatus)]
    sent = await queue.find_sent(bank.pool, [_status(w).original.message_id for _, w in relevant])
    commands: list[Command] = []
    booked: list[BookedMessage] = []
    for line, wire in relevant:
        message = _status(wire)
        sent_message = sent[message.original.message_id]
        command = _status_command(wire, sent_message)
        if command is not None:
            commands.append(command)
        booked.append(_booked(line, wire, message.status, wire_id=sent_message.wire_id))
    for command, outcome in zip(commands, await _submit_all(bank, commands), strict=True):
        if outcome.get("no_pocket"):
            await hold_rejected(bank, command.references[0])
    for _, wire in relevant:
        message = _status(wire)
        sent_message = sent[message.original.message_id]
        if message.status == REJECTED and _is_unbooked_return(sent_message):
            await hold_refused_return(bank, sent_message)
    return booked


async def _submit_all(bank: Bank, commands: Sequence[Command]) -> list[Outcome]:
    """Submit commands that no rule refuses; return their outcomes."""
    outcomes = []
    for answer in await bank.engine.submit_all(commands):
        if isinstance(answer, BillfoldError):
            raise answer
        outcomes.append(answer.outcome)
    return outcomes


def _completed(wire: arrivals.MatchedWire) -> CompleteWire:
    return CompleteWire(
        caller=f"{FEDWIRE_CALLER}:settled",
        key=wire.wire_id,
        customers=(wire.customer_id,),
        references=(wire.wire_id,),
        wire_id=wire.wire_id,
    )


def _is_unbooked_return(sent: queue.SentMessage) -> bool:
    """Tell whether it is a return of money that was never booked to a Pocket."""
    return sent.kind == "pacs.004" and sent.direction != WireDirection.OUTGOING


def _status(wire: FedwireMessage) -> PaymentStatus:
    assert isinstance(wire.message, PaymentStatus)
    return wire.message


def _status_command(wire: FedwireMessage, sent: queue.SentMessage) -> Command | None:
    """Return the command for the status of a sent wire; None for an intermediate status."""
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
        return CompleteWire(caller=f"{FEDWIRE_CALLER}:settled", omad=wire.header.business_id, **fields)
    if message.status == REJECTED:
        return RejectWire(caller=f"{FEDWIRE_CALLER}:rejected", code=message.reason, **fields)
    return None


# -- incoming payments ------------------------------------------------------------------


async def _payments(bank: Bank, lines: NumberedMessages) -> list[BookedMessage]:
    relevant = [(line, w) for line, w in lines if isinstance(w.message, CreditTransfer)]
    semaphore = asyncio.Semaphore(_CONCURRENT_PAYMENTS)

    async def book_payment(line: int, wire: FedwireMessage) -> BookedMessage:
        async with semaphore:
            payment = incoming(bank, wire)
            received = await receive(bank, payment)
            if received.reason == NO_ACCOUNT:
                await return_unclaimed(bank, payment)
        outcome = received.status if received.reason is None else received.reason
        return _booked(line, wire, outcome, wire_id=payment.wire_id)

    return list(await asyncio.gather(*(book_payment(line, wire) for line, wire in relevant)))


def incoming(bank: Bank, wire: FedwireMessage) -> IncomingWire:
    """Return the incoming payment of a message."""
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


# -- returns of sent wires --------------------------------------------------------------


async def _returns(bank: Bank, lines: NumberedMessages) -> list[BookedMessage]:
    relevant = [(line, wire, wire.message) for line, wire in lines if isinstance(wire.message, PaymentReturn)]
    payments = await arrivals.find_payments(bank.pool, [m.original.uetr for _, _, m in relevant])
    originals = [payments[WireDirection.OUTGOING, message.original.uetr] for _, _, message in relevant]
    # A returned wire has settled, even if its status has not arrived.
    await _submit_all(bank, [_completed(each) for each in originals if each.status == "PROCESSING"])
    commands = [
        _return_command(bank, wire, message, original=original)
        for (_, wire, message), original in zip(relevant, originals, strict=True)
    ]
    booked = []
    answers = await bank.engine.submit_all(commands)
    for (line, wire, _), command, answer in zip(relevant, commands, answers, strict=True):
        if isinstance(answer, BillfoldError) and not isinstance(answer, Refused):
            raise answer
        outcome = "RETURNED"
        if isinstance(answer, Refused):
            # The pocket is closed: the operator assigns the money from suspense.
            outcome = answer.code
            await hold_returned(bank, wire, command, reason=answer.code)
        booked.append(_booked(line, wire, outcome, wire_id=command.wire_id))
    return booked


def _return_command(
    bank: Bank, wire: FedwireMessage, message: PaymentReturn, original: arrivals.MatchedWire
) -> ReceiveWireReturn:
    return ReceiveWireReturn(
        caller=f"{FEDWIRE_CALLER}:returned",
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


# -- return requests and answers --------------------------------------------------------


async def _requests(bank: Bank, lines: NumberedMessages) -> list[BookedMessage]:
    booked = []
    for line, wire in lines:
        message = wire.message
        if isinstance(message, ReturnRequest):
            booked.append(await _open_case(bank, line, wire, message=message))
        elif isinstance(message, ReturnRequestResponse):
            accepted = message.verdict == _ACCEPTED
            await cases.close_case(
                bank.pool,
                WireDirection.OUTGOING,
                message.case_id,
                status="ACCEPTED" if accepted else "REFUSED",
                now=await bank.now(),
                information=message.information or message.reason,
            )
            booked.append(_booked(line, wire, "ACCEPTED" if accepted else "REFUSED"))
    return booked


async def _open_case(bank: Bank, line: int, wire: FedwireMessage, message: ReturnRequest) -> BookedMessage:
    payments = await arrivals.find_payments(bank.pool, [message.original.uetr])
    original = payments[WireDirection.INCOMING, message.original.uetr]
    await cases.open_case(
        bank.pool,
        case_id=message.case_id,
        direction=WireDirection.INCOMING,
        customer_id=original.customer_id,
        wire_id=original.wire_id,
        reason=message.reason,
        information=message.information,
        message=msgspec.json.encode(message).decode(),
        now=await bank.now(),
    )
    return _booked(line, wire, "OPEN", wire_id=original.wire_id)


def _booked(line: int, wire: FedwireMessage, outcome: str, wire_id: UUID | None = None) -> BookedMessage:
    wire_text = None if wire_id is None else str(wire_id)
    return BookedMessage(line, wire.header.message_name, wire.message.message_id, outcome=outcome, wire_id=wire_text)
