"""Incoming payments: the account number selects the pocket; a payment to no account is returned."""

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
from billfold.payments.deposits.types import IncomingAch, IncomingPayment, IncomingWire
from billfold.payments.wires.rules import incoming

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Outcome

log = structlog.get_logger(__name__)

NO_ACCOUNT = "NO_ACCOUNT"
"""The reason to return a payment to an account number that does not exist here."""

_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"


async def receive(bank: Bank, payment: IncomingPayment) -> Outcome:
    """Credit a payment to the pocket of its account number; the outcome says if it must be returned, and why.

    Safe to repeat. Raises Unavailable if the database is unreachable; deliver the payment again.
    """
    entry = await bank.directory.find("account", f"{payment.routing_number}:{payment.account_number}")
    if entry is None:
        log.warning("payment_account_not_found", amount=payment.amount)
        return {"status": "REJECTED", "reason": NO_ACCOUNT}
    pocket_id = await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id)
    answer = await bank.engine.submit(_command(payment, entry.customer_id, entry.object_id, pocket_id=pocket_id))
    return answer.outcome


def _command(payment: IncomingPayment, customer_id: UUID, portal_id: UUID, pocket_id: UUID) -> ReceiveMoney:
    fields: dict[str, Any] = {
        "caller": "correspondent",
        "request_hash": sha256(msgspec.json.encode(payment)).digest(),
        "customers": (customer_id,),
        "portal_id": portal_id,
        "pocket_id": pocket_id,
        "amount": payment.amount,
    }
    if isinstance(payment, IncomingAch):
        return ReceiveMoney(
            **fields,
            key=payment.ach_id,
            rail=Rail.ACH,
            description=payment.company_entry_description,
            details={
                "company_name": payment.company_name,
                "company_entry_description": payment.company_entry_description,
                "individual_identification_number": payment.individual_identification_number,
                "trace_number": payment.trace_number,
                "ach_id": str(payment.ach_id),
                "ach_direction": "RECEIVING",
            },
        )
    wire = incoming.incoming_wire_of(payment.message, payment.omad)
    return ReceiveMoney(
        **fields,
        key=payment.wire_id,
        rail=Rail.WIRE,
        description=payment.description,
        details=incoming.details_of(wire, payment.wire_id),
        sender=_sender(payment),
        remittance=incoming.remittance_of(payment.message),
        wire=wire,
    )


def _sender(wire: IncomingWire) -> Account | None:
    """Return the account that sent a wire, if the wire names it."""
    bank, number = wire.sender_routing_number, wire.sender_account_number
    return Account(bank.upper(), compact(number)) if bank and number else None
