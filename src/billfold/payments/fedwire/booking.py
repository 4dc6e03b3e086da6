"""Booking of validated messages. Every command is safe to repeat."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import structlog

from billfold.data_keys.keys import PartyField, PaymentKeys, bank_key
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import Direction, Rail, ScheduledJob
from billfold.payments.deposits.inbound import NO_ACCOUNT, receive_payment
from billfold.payments.deposits.rules import IncomingWire
from billfold.payments.fedwire.validation import REJECTED, SETTLED, NumberedMessages
from billfold.payments.files.types import StuckLine
from billfold.payments.suspense import store as suspense_store
from billfold.payments.suspense.rules import FEE, NOT_RETURNABLE
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments, return_item
from billfold.payments.wires import commands, store
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
from billfold.payments.wires.messages import open_message, payment_details, queue_about, seal_message
from billfold.payments.wires.rules import messages
from billfold.payments.wires.rules.recording import wire_details
from billfold.payments.wires.store import SentMessage, find_wire
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import InvariantError, Refused
from billfold.platform.ids import command_id, derive

log = structlog.get_logger(__name__)

FEDWIRE_CALLER = "wire-room"
"""The caller of commands caused by inbound messages."""
_IS_ANOTHER_RETURN = """
WITH d AS MATERIALIZED (SELECT customer_id, object_id FROM directory WHERE kind = 'wire' AND value = $1::uuid::text)
SELECT EXISTS (SELECT 1 FROM d JOIN wire w ON w.customer_id = d.customer_id AND w.wire_id = d.object_id
                WHERE w.imad <> $2)
    OR EXISTS (SELECT 1 FROM suspense_item WHERE item_id = $1 AND details->'message'->>'message_id' <> $2)
"""
RETURN_REJECTED = "RETURN_REJECTED"
"""The suspense reason of money whose return Fedwire rejected."""
_NOT_RETURNABLE_REASON = (
    "It is the returned money of a customer, and Fedwire accepts no return of a return. "
    "Assign it to a portal of the customer: billfold suspense assign."
)


async def return_unclaimed(bank: Bank, payment: IncomingWire) -> None:
    """Hold a wire to an unknown account in suspense and return it the same day."""
    own = await bank_key(bank)
    item_details = payment_details(own, payment.message, payment.description, payment.omad)
    await _hold_in_suspense(bank, payment.wire_id, payment.amount, reason=NO_ACCOUNT, details=item_details)
    await return_item(bank, payment.wire_id, NO_ACCOUNT, caller=f"{FEDWIRE_CALLER}:suspense")


async def return_ids(bank: Bank, original_wire_id: UUID, imad: str) -> tuple[UUID, UUID]:
    """Return the key and the id for a return of a sent wire, booked or held in suspense, unique per partial return."""
    first = derive(bank.seed, command_id(f"{FEDWIRE_CALLER}:returned", original_wire_id), 0)
    if await bank.pool.fetchval(_IS_ANOTHER_RETURN, first, imad):
        later = derive(bank.seed, command_id(f"{FEDWIRE_CALLER}:returned", f"{original_wire_id}:{imad}"), 0)
        return later, later
    return original_wire_id, first


async def hold_returned(bank: Bank, wire: FedwireMessage, command: commands.ReceiveWireReturn, reason: str) -> None:
    """Hold the return of a sent wire whose Pocket is closed."""
    message = wire.message
    item_details = {
        "description": command.information or command.code,
        "message": seal_message(await bank_key(bank), message),
        "omad": wire.header.business_id,
        "customer_id": str(command.customers[0]),
        "original_wire_id": str(command.original_id),
        NOT_RETURNABLE: _NOT_RETURNABLE_REASON,
    }
    await _hold_in_suspense(bank, command.wire_id, command.amount, reason=reason, details=item_details)


async def hold_rejected(bank: Bank, wire_id: UUID) -> None:
    """Hold the money and fee of a rejected wire whose Pocket was closed in the meantime."""
    wire = await _get_wire(bank, wire_id)
    item_details: dict[str, Any]
    if wire.original_wire_id is None:
        item_details = {
            "description": f"Wire to {wire.counterparty_name} was rejected: {wire.reason}",
            "details": wire_details(wire, commands.WireType.REVERSAL),
            NOT_RETURNABLE: _NOT_RETURNABLE_REASON,
        }
    else:
        item_details = await _details_of(bank, await _get_wire(bank, wire.original_wire_id))
    item_id = derive(bank.seed, command_id(f"{FEDWIRE_CALLER}:rejected", wire_id), 0)
    item_details["wire_id"] = str(wire_id)
    if wire.fee:
        item_details[FEE] = wire.fee
    await _hold_in_suspense(
        bank, item_id, wire.amount + wire.fee, reason=wire.reason or RETURN_REJECTED, details=item_details
    )


async def hold_refused_return(bank: Bank, sent: SentMessage) -> None:
    """Hold the money of a return from suspense that Fedwire rejected."""
    items = await suspense_store.find_items(bank.pool, [sent.wire_id])
    if items:
        item_details = msgspec.json.decode(items[0].details, type=dict[str, Any])
        amount = items[0].amount
    else:
        arrived = await _get_wire(bank, sent.wire_id)
        item_details = await _details_of(bank, arrived)
        amount = arrived.amount
    item_id = derive(bank.seed, command_id(f"{FEDWIRE_CALLER}:return-rejected", sent.message_id), 0)
    await _hold_in_suspense(bank, item_id, amount, reason=RETURN_REJECTED, details=item_details)


async def queue_held_return(bank: Bank, job: ScheduledJob) -> None:
    """Queue the message that returns a held wire: a scheduled job."""
    item = await suspense_store.get_item(bank.pool, job.object_id)
    item_details = msgspec.json.decode(item.details, type=dict[str, Any])
    if "message" not in item_details:
        log.warning("suspense_return_skipped", item_id=str(item.item_id))
        return
    terms = messages.payment_return(
        msgspec.convert(item_details["message"], CreditTransfer),
        bank=bank.settings.bank_routing_number,
        reason=item.return_reason or item.reason,
        information="The account takes no payments",
    )
    async with bank.pool.acquire() as conn, conn.transaction():
        bank_id = bank.own_id
        await queue_about(bank, conn, item.item_id, customer_id=bank_id, kind="pacs.004", terms=terms)


async def _details_of(bank: Bank, arrived: commands.WireRow) -> dict[str, Any]:
    """Return the details for returning a received wire or booking it later."""
    messages.payment_message_of(arrived)  # it exists
    keys = await PaymentKeys.load(bank, (arrived.customer_id,))
    opened = open_message(keys, arrived.customer_id, msgspec.json.decode(arrived.message or "{}"))
    description = arrived.description and keys.open(PartyField.TEXT, arrived.customer_id, arrived.description)
    return payment_details(keys.bank_key, msgspec.convert(opened, CreditTransfer), description, arrived.omad)


async def _hold_in_suspense(bank: Bank, item_id: UUID, amount: int, reason: str, details: dict[str, Any]) -> None:
    """Hold money in suspense."""
    item = UnclaimedPayment(item_id, Direction.CREDIT, amount, reason=reason, details=details)
    await hold_unclaimed_payments(bank, [item], rail=Rail.WIRE, caller=FEDWIRE_CALLER)


async def _get_wire(bank: Bank, wire_id: UUID) -> commands.WireRow:
    wire = await find_wire(bank.pool, wire_id)
    if wire is None:
        raise InvariantError("A message refers to a wire that does not exist.", wire_id=str(wire_id))
    return wire


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
    """Records that the messages of a file refer to: our messages by number, payments by direction and UETR."""

    sent: Mapping[str, store.SentMessage]
    payments: Mapping[tuple[str, str], store.MatchedWire]


_Outcome = tuple[str, UUID | None]


async def book_messages(bank: Bank, lines: NumberedMessages) -> tuple[list[BookedMessage], list[StuckLine]]:
    """Book every message; return the outcome of each, and those that cannot be booked.

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
        await store.find_sent(bank.pool, numbers) if numbers else {},
        await store.find_payments(bank.pool, uetrs) if uetrs else {},
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


def _is_unbooked_return(sent: store.SentMessage) -> bool:
    """Return whether it is a return of money that was never booked to a Pocket."""
    return sent.kind == "pacs.004" and sent.direction != commands.WireDirection.OUTGOING


def _status_command(wire: FedwireMessage, message: PaymentStatus, sent: store.SentMessage) -> Command | None:
    """Return the command for the status of a sent wire; None for an intermediate status."""
    if sent.direction != commands.WireDirection.OUTGOING or not sent.kind.startswith("pacs"):
        return None
    if message.status == SETTLED:
        return commands.CompleteWire(**_command_fields(sent, "settled"), omad=wire.header.business_id)
    if message.status == REJECTED:
        return commands.RejectWire(**_command_fields(sent, "rejected"), code=message.reason)
    return None


def _command_fields(wire: store.SentMessage | store.MatchedWire, occasion: str) -> dict[str, Any]:
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
    booked = await store.find_wire(bank.pool, payment.wire_id)
    if booked is not None:
        return booked.reason or booked.status, payment.wire_id
    outcome = await receive_payment(bank, payment)
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
    original = known.payments[commands.WireDirection.OUTGOING, message.original.uetr]
    if original.status == "PROCESSING":  # a returned wire has settled, even if its status has not arrived
        await bank.engine.submit(commands.CompleteWire(**_command_fields(original, "settled")))
    key, returned_id = await return_ids(bank, original.wire_id, message.message_id)
    data_key = (await PaymentKeys.prepare(bank, (original.customer_id,))).of(original.customer_id)
    command = commands.ReceiveWireReturn(
        **_command_fields(original, "returned") | {"key": key, "wire_id": returned_id},
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
    original = known.payments[commands.WireDirection.INCOMING, message.original.uetr]
    data_key = (await PaymentKeys.prepare(bank, (original.customer_id,))).of(original.customer_id)
    case = store.CaseRow(
        message.case_id,
        commands.WireDirection.INCOMING,
        original.customer_id,
        wire_id=original.wire_id,
        status="OPEN",
        reason=message.reason,
        information=message.information,
        message=msgspec.json.encode(seal_message(data_key, message)).decode(),
        opened_at=await bank.now(),
    )
    await store.open_case(bank.pool, case)
    return "OPEN", original.wire_id


async def _close_case(bank: Bank, wire: FedwireMessage, message: ReturnRequestResponse, known: _Known) -> _Outcome:
    del wire, known
    status = "ACCEPTED" if message.verdict == _ACCEPTED else "REFUSED"
    information, now = message.information or message.reason, await bank.now()
    await store.close_case(
        bank.pool, commands.WireDirection.OUTGOING, message.case_id, status=status, now=now, information=information
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
