"""Booking of validated messages. Every command is safe to repeat."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.data_keys.keys import PaymentKeys
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.payments.deposits.inbound import NO_ACCOUNT, receive
from billfold.payments.deposits.types import IncomingWire
from billfold.payments.fedwire.inbound.suspense import (
    FEDWIRE_CALLER,
    hold_refused_return,
    hold_rejected,
    hold_returned,
    return_ids,
    return_unclaimed,
)
from billfold.payments.fedwire.inbound.validation import REJECTED, SETTLED, NumberedMessages
from billfold.payments.files.types import StuckLine
from billfold.payments.wires.commands import CompleteWire, ReceiveWireReturn, RejectWire
from billfold.payments.wires.iso20022.messages import LAYOUTS
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
from billfold.payments.wires.sealed_messages import seal_message
from billfold.payments.wires.store import cases, wires
from billfold.payments.wires.store import message_queue as queue
from billfold.payments.wires.types import WireDirection
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id, derive

_CONCURRENT_MESSAGES = 200
_ACCEPTED = "CNCL"


class BookedMessage(NamedTuple):
    """The outcome of one message, for the report."""

    line: int
    message: str
    number: str
    outcome: str
    wire_id: str | None = None


class _Known(NamedTuple):
    """What the messages of a file refer to: our messages by number, payments by direction and UETR."""

    sent: Mapping[str, queue.SentMessage]
    payments: Mapping[tuple[str, str], wires.MatchedWire]


_Outcome = tuple[str, UUID | None]


async def book(bank: Bank, lines: NumberedMessages) -> tuple[list[BookedMessage], list[StuckLine]]:
    """Book every message; return what became of each, and those that cannot be booked.

    Statuses come first, so that a wire settles before its return.
    """
    booked: list[BookedMessage] = []
    stuck: list[StuckLine] = []
    semaphore = asyncio.Semaphore(_CONCURRENT_MESSAGES)
    for kind, book_one in _STEPS:
        relevant = [(line, wire) for line, wire in lines if isinstance(wire.message, kind)]
        known = await _load_known(bank, [wire.message for _, wire in relevant])

        async def attempt(line: int, wire: FedwireMessage, book_one: _Step = book_one, known: _Known = known) -> None:
            name, number = wire.header.message_name, wire.message.message_id
            try:
                async with semaphore:
                    outcome, wire_id = await book_one(bank, wire, wire.message, known)
            except Exception as error:  # a bug in one message must not block others
                if is_shortage(error):
                    raise
                element = LAYOUTS[type(wire.message)].element
                stuck.append(StuckLine(line, number, f"{element}: {error_summary(error)}"))
            else:
                wire_text = None if wire_id is None else str(wire_id)
                booked.append(BookedMessage(line, name, number, outcome=outcome, wire_id=wire_text))

        await asyncio.gather(*(attempt(*each) for each in relevant))
    return sorted(booked), sorted(stuck, key=lambda each: each.line)


async def _load_known(bank: Bank, messages: Sequence[Message]) -> _Known:
    numbers = [each.original.message_id for each in messages if isinstance(each, PaymentStatus)]
    uetrs = [each.original.uetr for each in messages if isinstance(each, PaymentReturn | ReturnRequest)]
    return _Known(
        await queue.find_sent(bank.pool, numbers) if numbers else {},
        await wires.find_payments(bank.pool, uetrs) if uetrs else {},
    )


# -- statuses of sent messages ----------------------------------------------------------


async def _book_status(bank: Bank, wire: FedwireMessage, message: PaymentStatus, known: _Known) -> _Outcome:
    sent = known.sent[message.original.message_id]
    command = _status_command(wire, message, sent)
    if command is not None:
        answer = await bank.engine.submit(command)
        if answer.outcome.get("no_pocket"):
            await hold_rejected(bank, sent.wire_id)
    if message.status == REJECTED and _is_unbooked_return(sent):
        await hold_refused_return(bank, sent)
    return message.status, sent.wire_id


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


async def _book_payment(bank: Bank, wire: FedwireMessage, message: CreditTransfer, known: _Known) -> _Outcome:
    del known
    payment = _incoming(bank, wire, message)
    booked = await wires.find_wire(bank.pool, payment.wire_id)
    if booked is not None:
        return booked.reason or booked.status, payment.wire_id
    outcome = await receive(bank, payment)
    if outcome.get("reason") == NO_ACCOUNT:
        await return_unclaimed(bank, payment)
    return outcome.get("reason") or outcome["status"], payment.wire_id


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
        description=" ".join((message.remittance or "").splitlines()) or f"Wire from {message.debtor.name}",
        sender_account_number=_number(message.debtor_account),
        sender_routing_number=message.debtor_agent.routing_number or message.debtor_agent.bic,
        omad=wire.header.business_id,
        message=message,
    )


def _number(account: Account | None) -> str | None:
    return None if account is None else account.number or account.iban


# -- returns of sent wires --------------------------------------------------------------


async def _book_return(bank: Bank, wire: FedwireMessage, message: PaymentReturn, known: _Known) -> _Outcome:
    original = known.payments[WireDirection.OUTGOING, message.original.uetr]
    if original.status == "PROCESSING":  # a returned wire has settled, even if its status has not arrived
        await bank.engine.submit(CompleteWire(**_about(original, "settled")))
    key, returned_id = await return_ids(bank, original.wire_id, message.message_id)
    data_key = (await PaymentKeys.prepare(bank, (original.customer_id,))).of(original.customer_id)
    command = ReceiveWireReturn(
        **_about(original, "returned") | {"key": key, "wire_id": returned_id},
        original_id=original.wire_id,
        code=message.reason,
        information=message.information,
        imad=message.message_id,
        omad=wire.header.business_id,
        message=msgspec.json.encode(seal_message(data_key, message)).decode(),
        amount=message.amount,
        charges=message.charges or 0,
    )
    try:
        await bank.engine.submit(command)
    except Refused as refused:
        # The pocket is closed: the operator assigns the money from suspense.
        await hold_returned(bank, wire, command, reason=refused.code)
        return refused.code, returned_id
    return "RETURNED", returned_id


# -- return requests and answers --------------------------------------------------------


async def _open_case(bank: Bank, wire: FedwireMessage, message: ReturnRequest, known: _Known) -> _Outcome:
    del wire
    original = known.payments[WireDirection.INCOMING, message.original.uetr]
    data_key = (await PaymentKeys.prepare(bank, (original.customer_id,))).of(original.customer_id)
    case = cases.CaseRow(
        message.case_id,
        WireDirection.INCOMING,
        original.customer_id,
        wire_id=original.wire_id,
        status="OPEN",
        reason=message.reason,
        information=message.information,
        message=msgspec.json.encode(seal_message(data_key, message)).decode(),
        opened_at=await bank.now(),
    )
    await cases.open_case(bank.pool, case)
    return "OPEN", original.wire_id


async def _close_case(bank: Bank, wire: FedwireMessage, message: ReturnRequestResponse, known: _Known) -> _Outcome:
    del wire, known
    status = "ACCEPTED" if message.verdict == _ACCEPTED else "REFUSED"
    information, now = message.information or message.reason, await bank.now()
    await cases.close_case(
        bank.pool, WireDirection.OUTGOING, message.case_id, status=status, now=now, information=information
    )
    return status, None


_Step = Callable[["Bank", FedwireMessage, Any, _Known], Awaitable[_Outcome]]
_STEPS: tuple[tuple[type[Message], _Step], ...] = (
    (PaymentStatus, _book_status),
    (CreditTransfer, _book_payment),
    (PaymentReturn, _book_return),
    (ReturnRequest, _open_case),
    (ReturnRequestResponse, _close_case),
)
