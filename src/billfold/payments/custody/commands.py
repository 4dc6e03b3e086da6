"""Commands of security transfers from and to other custodians."""

from datetime import date
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference


class ReceiveBills(Command, frozen=True, kw_only=True):
    """Receive one lot. `cost_cents` is its tax basis; None: its value on arrival."""

    audit = AuditedAction("pocket", "received", fields=("cusip", "units", "counterparty_name"))
    needs_identifiers = False

    transfer_id: UUID
    pocket_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str
    acquired_on: date | None = None
    cost_cents: int | None = None


class DeliverBills(Command, frozen=True, kw_only=True):
    """Deliver `units` of a bill, oldest lots first."""

    audit = AuditedAction("pocket", "delivered", fields=("cusip", "units", "counterparty_name"))
    needs_identifiers = False

    transfer_id: UUID
    pocket_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str


class EndDelivery(Command, frozen=True, kw_only=True):
    """Record the result from the custodian: delivered, or rejected for a `reason`."""

    reference_kinds = (Reference.SECURITY_TRANSFER,)
    needs_identifiers = False

    transfer_id: UUID
    reason: str | None = None
