"""The command that credits an incoming payment."""

from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.rules.verification_kinds import Account
from billfold.ledger.commands import Command
from billfold.ledger.types import Rail
from billfold.payments.wires.commands import IncomingWireFields
from billfold.payments.wires.iso20022.types import CreditTransfer


class IncomingWire(msgspec.Struct, frozen=True, kw_only=True):
    """A wire to this bank, with its message. `routing_number` is that of the receiving bank."""

    wire_id: UUID
    routing_number: str
    account_number: str
    amount: int
    sender_name: str
    reference_number: str
    description: str = ""
    sender_account_number: str | None = None
    sender_routing_number: str | None = None
    omad: str | None = None
    message: CreditTransfer


class IncomingAch(msgspec.Struct, frozen=True, kw_only=True):
    """One credit entry of an incoming ACH file. Field names and lengths are those of NACHA."""

    ach_id: UUID
    routing_number: str
    account_number: str
    amount: int
    company_name: str
    company_entry_description: str
    individual_identification_number: str
    trace_number: str


IncomingPayment = IncomingWire | IncomingAch


class ReceiveMoney(Command, frozen=True, kw_only=True):
    """Credit a payment that a rail delivered to a portal. `amount` in cents; `details` per rail.

    `wire` is set for a wire that came in a Fedwire message; the key is then the wire's id.
    """

    rail: Rail
    portal_id: UUID
    pocket_id: UUID
    amount: int
    description: str
    details: dict[str, Any]
    remittance: dict[str, Any] | None = None
    wire: IncomingWireFields | None = None
    sender: Account | None = None
    """The account that sent the wire, if the sending bank names it."""
