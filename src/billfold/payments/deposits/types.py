"""Incoming payments as the rails deliver them. Amounts are cents."""

from uuid import UUID

import msgspec

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
