"""Incoming payments: the account number selects the pocket; a payment to no account is returned."""

from typing import Any
from uuid import UUID

import msgspec
import structlog

from billfold.accounts.counterparties.rules.identifiers import compact
from billfold.accounts.counterparties.rules.verification_kinds import Account
from billfold.data_keys.keys import DataKey, PartyField, PaymentKeys
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Outcome
from billfold.ledger.types import Rail
from billfold.payments.deposits.rules import IncomingAch, IncomingPayment, IncomingWire, ReceiveMoney
from billfold.payments.wires.messages import seal_payment, seal_remittance, seal_text
from billfold.payments.wires.rules import recording

log = structlog.get_logger(__name__)

NO_ACCOUNT = "NO_ACCOUNT"
"""The reason to return a payment to an account number that does not exist here."""

_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"


async def receive_payment(bank: Bank, payment: IncomingPayment) -> Outcome:
    """Credit a payment to the pocket of its account number; the outcome states if and why it must be returned.

    Safe to repeat. Raises Unavailable if the database is unreachable; deliver the payment again.
    """
    entry = await bank.directory.find("account", f"{payment.routing_number}:{payment.account_number}")
    if entry is None:
        log.warning("payment_account_not_found", amount=payment.amount)
        return {"status": "REJECTED", "reason": NO_ACCOUNT}
    pocket_id = await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id)
    owner = entry.customer_id
    data_key = (await PaymentKeys.prepare(bank, (owner,))).of(owner)
    command = _command(payment, owner, entry.object_id, pocket_id=pocket_id, data_key=data_key)
    return (await bank.engine.submit(command)).outcome


def _command(
    payment: IncomingPayment, customer_id: UUID, portal_id: UUID, *, pocket_id: UUID, data_key: DataKey
) -> ReceiveMoney:
    fields: dict[str, Any] = {
        "caller": "correspondent",
        "request_hash": data_key.digest(msgspec.json.encode(payment)),
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
                "individual_identification_number": seal_text(data_key, payment.individual_identification_number),
                "trace_number": payment.trace_number,
                "ach_id": str(payment.ach_id),
                "ach_direction": "RECEIVING",
            },
        )
    wire = seal_payment(data_key, payment.message, payment.omad)
    return ReceiveMoney(
        **fields,
        key=payment.wire_id,
        rail=Rail.WIRE,
        description=seal_text(data_key, payment.description) or "",
        details=recording.details_of(wire, payment.wire_id),
        sender=_sender(payment, data_key),
        remittance=recording.remittance_of(payment.message, *seal_remittance(data_key, payment.message)),
        wire=wire,
    )


def _sender(wire: IncomingWire, data_key: DataKey) -> Account | None:
    """Return the account that sent a wire in the form of counterparties, if the wire names it."""
    bank, number = wire.sender_routing_number, wire.sender_account_number
    if not bank or not number:
        return None
    return Account(bank.upper(), PartyField.ACCOUNT.seal(data_key, compact(number)))
