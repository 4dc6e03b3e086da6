"""Commands about a customer."""

from uuid import UUID

from billfold.accounts.agreements.rules import Consent
from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.customers import CustomerStatus


class EnrolCustomer(Command, frozen=True, kw_only=True):
    """Create the customer `customers[0]`; role is customer, partner or house. The profile is sealed, None if empty."""

    needs_identifiers = True
    creates_customer = True
    audit = AuditedAction("customer", "created", fields=("role", "type", "name"))

    partner_id: UUID | None
    role: str
    type: str
    name: str
    profile: str | None
    consent: Consent | None = None


class UpdateCustomer(Command, frozen=True, kw_only=True):
    """Replace the profile (contact, trusted contact) with a merged one, sealed; None if it is empty.

    `replaces` is the stored profile that it was merged with, `references` is the customer.
    """

    needs_identifiers = True
    reference_kinds = (Reference.CUSTOMER_PROFILE,)
    audit = AuditedAction("customer", "updated")

    profile: str | None
    replaces: str | None = None


class CloseCustomer(Command, frozen=True, kw_only=True):
    """Close the customer's account with all its pockets. References the customer, including payments in process.

    `profile` is the profile with the description of the closing, sealed; None if there is none. `replaces` is the
    stored profile that it was merged with.
    """

    needs_identifiers = True
    reference_kinds = (
        Reference.CUSTOMER_PROFILE,
        Reference.OPEN_ACH_ENTRIES,
        Reference.OPEN_DISPUTES,
        Reference.OPEN_WIRES,
        Reference.OPEN_WITHDRAWALS,
    )
    audit = AuditedAction("customer", "closed", fields=("reason",))

    reason: str
    profile: str | None = None
    replaces: str | None = None


class SetCustomerState(Command, frozen=True, kw_only=True):
    """Freeze (FROZEN) or unfreeze (OPEN) the customer, with a reason; only the bank does this.

    `references` is the customer, so that the rule sees its hits of the sanctions screening.
    """

    reference_kinds = (Reference.SANCTIONS_HIT,)
    audit = AuditedAction(
        "customer", lambda c: "frozen" if c.status == CustomerStatus.FROZEN else "unfrozen", fields=("reason",)
    )

    status: CustomerStatus
    reason: str
