"""Payments from outside: who they are for is looked up, and what reaches nobody goes back."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import structlog

from billfold.accounts.counterparties.rules.identifiers import compact
from billfold.accounts.counterparties.rules.verification_kinds import Account
from billfold.ledger.types import Rail
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.deposits.ports import CorrespondentBank, IncomingAch, IncomingPayment, IncomingWire
from billfold.payments.wires.rules import incoming_details
from billfold.payments.wires.types import IncomingWireFields

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

log = structlog.get_logger(__name__)

NO_ACCOUNT = "NO_ACCOUNT"
"""Why a payment to an account number that was never ours goes back."""

_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"


class ReceiptResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a payment. `reason` says why it was sent back."""

    status: str  # COMPLETED or RETURNED
    reason: str | None = None
    customer_id: UUID | None = None
    pocket_id: UUID | None = None
    transaction_id: UUID | None = None


async def receive(bank: Bank, correspondent: CorrespondentBank, payment: IncomingPayment) -> ReceiptResult:
    """Book a payment where its account number leads, or send it back. Safe to repeat.

    Raises Unavailable when the database stays away; the payment may then be delivered again.
    """
    account = f"{payment.routing_number}:{payment.account_number}"
    entry = await bank.directory.find("account", account)
    if entry is None:
        log.warning("payment_account_not_found", rail=_rail(payment), amount=payment.amount)
        await correspondent.return_payment(payment, NO_ACCOUNT)
        return ReceiptResult(status="RETURNED", reason=NO_ACCOUNT)
    pocket_id = await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id)
    answer = await bank.engine.submit(_command(payment, entry.customer_id, entry.object_id, pocket_id))
    outcome = answer.outcome
    if outcome["status"] != "COMPLETED":
        await correspondent.return_payment(payment, outcome["reason"])
        return ReceiptResult(
            status="RETURNED", reason=outcome["reason"], customer_id=entry.customer_id, pocket_id=pocket_id
        )
    return ReceiptResult(
        status="COMPLETED",
        customer_id=entry.customer_id,
        pocket_id=pocket_id,
        transaction_id=UUID(outcome["transaction_id"]),
    )


def _command(payment: IncomingPayment, customer_id: UUID, portal_id: UUID, pocket_id: UUID) -> ReceiveMoney:
    if isinstance(payment, IncomingWire):
        key, description, details = payment.wire_id, payment.description, _wire_details(payment)
    else:
        key, description = payment.ach_id, payment.company_entry_description
        details = _ach_details(payment)
    return ReceiveMoney(
        caller="correspondent",
        key=key,
        request_hash=sha256(msgspec.json.encode(payment)).digest(),
        customers=(customer_id,),
        rail=_rail(payment),
        portal_id=portal_id,
        pocket_id=pocket_id,
        amount=payment.amount,
        description=description,
        details=details,
        sender=_sender(payment) if isinstance(payment, IncomingWire) else None,
        remittance=_remittance(payment),
        wire=_incoming_message(payment),
    )


def _remittance(payment: IncomingPayment) -> dict[str, Any] | None:
    if not isinstance(payment, IncomingWire) or payment.message is None:
        return None
    return incoming_details.remittance_of(payment.message)


def _incoming_message(payment: IncomingPayment) -> IncomingWireFields | None:
    if not isinstance(payment, IncomingWire) or payment.message is None:
        return None
    return incoming_details.incoming_wire_of(payment.message, payment.omad)


def _sender(wire: IncomingWire) -> Account | None:
    """Return the account a wire came from, as far as it tells."""
    bank, number = wire.sender_routing_number, wire.sender_account_number
    return Account(bank.upper(), compact(number)) if bank and number else None


def _rail(payment: IncomingPayment) -> Rail:
    return Rail.WIRE if isinstance(payment, IncomingWire) else Rail.ACH


def _wire_details(wire: IncomingWire) -> dict[str, Any]:
    return {
        "wire_type": "PAYMENT",
        "wire_id": str(wire.wire_id),
        "original_wire_id": None,
        "reference_number": wire.reference_number,
        "counterparty_name": wire.sender_name,
        "counterparty_id": None,
    }


def _ach_details(ach: IncomingAch) -> dict[str, Any]:
    return {
        "company_name": ach.company_name,
        "company_entry_description": ach.company_entry_description,
        "individual_identification_number": ach.individual_identification_number,
        "trace_number": ach.trace_number,
        "ach_id": str(ach.ach_id),
        "ach_direction": "RECEIVING",
    }
