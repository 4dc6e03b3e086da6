"""Wires that cannot be booked to a Pocket: their money is held in suspense and returned if possible."""

from typing import Any
from uuid import UUID

import msgspec
import structlog

from billfold.data_keys.data_key import PartyField
from billfold.data_keys.keys import PaymentKeys, bank_key
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Direction, Rail, ScheduledJob
from billfold.payments.deposits.inbound import NO_ACCOUNT
from billfold.payments.deposits.types import IncomingWire
from billfold.payments.suspense import store as suspense_store
from billfold.payments.suspense.types import FEE, NOT_RETURNABLE
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments, return_item
from billfold.payments.wires.commands import ReceiveWireReturn
from billfold.payments.wires.iso20022.types import CreditTransfer, FedwireMessage
from billfold.payments.wires.queueing import queue_about
from billfold.payments.wires.rules import messages
from billfold.payments.wires.rules.recording import wire_details
from billfold.payments.wires.sealed_messages import open_message, payment_details, seal_message
from billfold.payments.wires.store.message_queue import SentMessage
from billfold.payments.wires.store.wires import find_wire
from billfold.payments.wires.types import WireRow, WireType
from billfold.platform.errors import InvariantError
from billfold.platform.ids import command_id, derive

log = structlog.get_logger(__name__)

FEDWIRE_CALLER = "wire-room"
"""The caller of commands that inbound messages cause."""
_IS_ANOTHER_RETURN = """
SELECT EXISTS (SELECT 1 FROM directory d JOIN wire w ON w.customer_id = d.customer_id AND w.wire_id = d.object_id
                WHERE d.kind = 'wire' AND d.value = $1::uuid::text AND w.imad <> $2)
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
    await _hold(bank, payment.wire_id, payment.amount, reason=NO_ACCOUNT, details=item_details)
    await return_item(bank, payment.wire_id, NO_ACCOUNT, caller=f"{FEDWIRE_CALLER}:suspense")


async def return_ids(bank: Bank, original_wire_id: UUID, imad: str) -> tuple[UUID, UUID]:
    """Return the key and the id of a return of a sent wire, booked or held in suspense: each part has its own."""
    first = derive(bank.seed, command_id(f"{FEDWIRE_CALLER}:returned", original_wire_id), 0)
    if await bank.pool.fetchval(_IS_ANOTHER_RETURN, first, imad):
        later = derive(bank.seed, command_id(f"{FEDWIRE_CALLER}:returned", f"{original_wire_id}:{imad}"), 0)
        return later, later
    return original_wire_id, first


async def hold_returned(bank: Bank, wire: FedwireMessage, command: ReceiveWireReturn, reason: str) -> None:
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
    await _hold(bank, command.wire_id, command.amount, reason=reason, details=item_details)


async def hold_rejected(bank: Bank, wire_id: UUID) -> None:
    """Hold the money and fee of a rejected wire whose Pocket was closed in the meantime."""
    wire = await _get_wire(bank, wire_id)
    item_details: dict[str, Any]
    if wire.original_wire_id is None:
        item_details = {
            "description": f"Wire to {wire.counterparty_name} was rejected: {wire.reason}",
            "details": wire_details(wire, WireType.REVERSAL),
            NOT_RETURNABLE: _NOT_RETURNABLE_REASON,
        }
    else:
        item_details = await _details_of(bank, await _get_wire(bank, wire.original_wire_id))
    item_id = derive(bank.seed, command_id(f"{FEDWIRE_CALLER}:rejected", wire_id), 0)
    item_details["wire_id"] = str(wire_id)
    if wire.fee:
        item_details[FEE] = wire.fee
    await _hold(bank, item_id, wire.amount + wire.fee, reason=wire.reason or RETURN_REJECTED, details=item_details)


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
    await _hold(bank, item_id, amount, reason=RETURN_REJECTED, details=item_details)


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
        bank_id = bank_customer_id(bank.seed)
        await queue_about(bank, conn, item.item_id, customer_id=bank_id, kind="pacs.004", terms=terms)


async def _details_of(bank: Bank, arrived: WireRow) -> dict[str, Any]:
    """Return the details to return a received wire or to book it later."""
    messages.payment_message_of(arrived)  # there is one
    keys = await PaymentKeys.load(bank, (arrived.customer_id,))
    opened = open_message(keys, arrived.customer_id, msgspec.json.decode(arrived.message or "{}"))
    description = arrived.description and keys.open(PartyField.TEXT, arrived.customer_id, arrived.description)
    return payment_details(keys.bank_key, msgspec.convert(opened, CreditTransfer), description, arrived.omad)


async def _hold(bank: Bank, item_id: UUID, amount: int, reason: str, details: dict[str, Any]) -> None:
    """Hold money in suspense."""
    item = UnclaimedPayment(item_id, Direction.CREDIT, amount, reason=reason, details=details)
    await hold_unclaimed_payments(bank, [item], rail=Rail.WIRE, caller=FEDWIRE_CALLER)


async def _get_wire(bank: Bank, wire_id: UUID) -> WireRow:
    wire = await find_wire(bank.pool, wire_id)
    if wire is None:
        raise InvariantError("A message refers to a wire that does not exist.", wire_id=str(wire_id))
    return wire
