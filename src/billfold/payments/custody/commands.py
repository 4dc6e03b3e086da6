"""What may be asked of bills that come from and go to a custodian elsewhere."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.payments.custody.rules import complete_delivery, deliver_bills, receive_bills


class ReceiveBills(Command, frozen=True, kw_only=True):
    """One lot arrives. `cost_cents` is its tax basis; without it what it is worth on arrival."""

    rule = receive_bills
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
    """So many bills leave, the oldest lots first."""

    rule = deliver_bills
    audit = AuditedAction("pocket", "delivered", fields=("cusip", "units", "counterparty_name"))
    needs_identifiers = False

    transfer_id: UUID
    pocket_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str


class EndDelivery(Command, frozen=True, kw_only=True):
    """The custodian has answered: without a `reason` they were delivered. Looks at the transfer."""

    rule = complete_delivery
    reference_kinds = (Reference.SECURITY_TRANSFER,)
    needs_identifiers = False

    transfer_id: UUID
    reason: str | None = None
