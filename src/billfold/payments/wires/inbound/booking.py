"""Booking of validated messages. Every command is safe to repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
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
    Account,
    CreditTransfer,
    FedwireMessage,
    Message,
    PaymentReturn,
    PaymentStatus,
    ReturnRequest,
    ReturnRequestResponse,
)
from billfold.payments.wires.store import cases, wires
from billfold.payments.wires.store import message_queue as queue
from billfold.payments.wires.types import WireDirection
from billfold.platform.errors import BillfoldError, Refused
from billfold.platform.ids import command_id, derive

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command, Outcome

_CONCURRENT_PAYMENTS = 200
_ACCEPTED = "CNCL"
MessageT = TypeVar("MessageT", bound=Message)


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


def _of_type(lines: NumberedMessages, kind: type[MessageT]) -> list[tuple[int, FedwireMessage, MessageT]]:
    return [(line, wire, wire.message) for line, wire in lines if isinstance(wire.message, kind)]


# -- statuses of sent messages ----------------------------------------------------------


async def _statuses(bank: Bank, lines: NumberedMessages) -> list[BookedMessage]:
    relevant = _of_type(lines, PaymentStatus)
    sent = await queue.find_sent(bank.pool, [message.original.message_id for _, _, message in relevant])
    commands: list[Command] = []
    booked: list[BookedMessage] = []
    for line, wire, message in relevant:
        sent_message = sent[message.original.message_id]
        command = _status_command(wire, message, sent_message)
        if command is not None:
            commands.append(command)
        booked.append(_booked(line, wire, message.status, wire_id=sent_message.wire_id))
    for command, outcome in zip(commands, await _submit_all(bank, commands), strict=True):
        if outcome.get("no_pocket"):
            await hold_rejected(bank, command.references[0])
    for _, _, message in relevant:
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


def _is_unbooked_return(sent: queue.SentMessage) -> bool:
    """Tell whether it is a return of money that was never booked to a Pocket."""
    return sent.kind == "pacs.004" and sent.direction != WireDirection.OUTGOING


def _status_command(wire: FedwireMessage, message: PaymentStatus, sent: queue.SentMessage) -> Command | None:
    """Return the command for the status of a sent wire; None for an intermediate status."""
    if sent.direction != WireDirection.OUTGOING or not sent.kind.startswith("pacs"):
        return None
    if message.status == SETTLED:
        return CompleteWire(**_about(sent, "settled"), omad=wire.header.business_id)
    if message.status == REJECTED:
        return RejectWire(**_about(sent, "rejected"), code=message.reason)
    return None


def _about(wire: queue.SentMessage | wires.MatchedWire, occasion: str) -> dict[str, Any]:
    """Return the fields of a command on a wire."""
    return {
        "caller": f"{FEDWIRE_CALLER}:{occasion}",
        "key": wire.wire_id,
        "customers": (wire.customer_id,),
        "references": (wire.wire_id,),
        "wire_id": wire.wire_id,
    }


# -- incoming payments ------------------------------------------------------------------


async def _payments(bank: Bank, lines: NumberedMessages) -> list[BookedMessage]:
    semaphore = asyncio.Semaphore(_CONCURRENT_PAYMENTS)

    async def book_payment(line: int, wire: FedwireMessage, message: CreditTransfer) -> BookedMessage:
        async with semaphore:
            payment = _incoming(bank, wire, message)
            outcome = await receive(bank, payment)
            if outcome.get("reason") == NO_ACCOUNT:
                await return_unclaimed(bank, payment)
        return _booked(line, wire, outcome.get("reason") or outcome["status"], wire_id=payment.wire_id)

    return list(await asyncio.gather(*(book_payment(*each) for each in _of_type(lines, CreditTransfer))))


def payment_id(bank: Bank, wire: FedwireMessage) -> UUID:
    """Return the id of the incoming wire of a payment message."""
    assert isinstance(wire.message, CreditTransfer)
    return derive(bank.seed, command_id("fedwire", wire.message.uetr), 0)


def _incoming(bank: Bank, wire: FedwireMessage, message: CreditTransfer) -> IncomingWire:
    return IncomingWire(
        wire_id=payment_id(bank, wire),
        routing_number=message.receiver,
        account_number=_number(message.creditor_account) or "",
        amount=message.amount,
        sender_name=message.debtor.name,
        reference_number=message.instruction_id or message.message_id,
        description=message.remittance or f"Wire from {message.debtor.name}",
        sender_account_number=_number(message.debtor_account),
        sender_routing_number=message.debtor_agent.routing_number or message.debtor_agent.bic,
        omad=wire.header.business_id,
        message=message,
    )


def _number(account: Account | None) -> str | None:
    return None if account is None else account.number or account.iban


# -- returns of sent wires --------------------------------------------------------------


async def _returns(bank: Bank, lines: NumberedMessages) -> list[BookedMessage]:
    relevant = _of_type(lines, PaymentReturn)
    payments = await wires.find_payments(bank.pool, [m.original.uetr for _, _, m in relevant])
    originals = [payments[WireDirection.OUTGOING, message.original.uetr] for _, _, message in relevant]
    # A returned wire has settled, even if its status has not arrived.
    unsettled = [each for each in originals if each.status == "PROCESSING"]
    await _submit_all(bank, [CompleteWire(**_about(each, "settled")) for each in unsettled])
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
    bank: Bank, wire: FedwireMessage, message: PaymentReturn, original: wires.MatchedWire
) -> ReceiveWireReturn:
    return ReceiveWireReturn(
        **_about(original, "returned") | {"wire_id": return_id(bank, original.wire_id)},
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
    booked = [
        await _open_case(bank, line, wire, message=message) for line, wire, message in _of_type(lines, ReturnRequest)
    ]
    for line, wire, message in _of_type(lines, ReturnRequestResponse):
        status = "ACCEPTED" if message.verdict == _ACCEPTED else "REFUSED"
        information, now = message.information or message.reason, await bank.now()
        case_id, direction = message.case_id, WireDirection.OUTGOING
        await cases.close_case(bank.pool, direction, case_id, status=status, now=now, information=information)
        booked.append(_booked(line, wire, status))
    return booked


async def _open_case(bank: Bank, line: int, wire: FedwireMessage, message: ReturnRequest) -> BookedMessage:
    payments = await wires.find_payments(bank.pool, [message.original.uetr])
    original = payments[WireDirection.INCOMING, message.original.uetr]
    case = cases.CaseRow(
        message.case_id,
        WireDirection.INCOMING,
        original.customer_id,
        wire_id=original.wire_id,
        status="OPEN",
        reason=message.reason,
        information=message.information,
        message=msgspec.json.encode(message).decode(),
        opened_at=await bank.now(),
    )
    await cases.open_case(bank.pool, case)
    return _booked(line, wire, "OPEN", wire_id=original.wire_id)


def _booked(line: int, wire: FedwireMessage, outcome: str, wire_id: UUID | None = None) -> BookedMessage:
    wire_text = None if wire_id is None else str(wire_id)
    return BookedMessage(line, wire.header.message_name, wire.message.message_id, outcome=outcome, wire_id=wire_text)
