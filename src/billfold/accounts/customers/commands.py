"""Commands about a customer."""

from uuid import UUID

from billfold.accounts.agreements.commands import Consent
from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.customers import CustomerStatus


class EnrolCustomer(Command, frozen=True, kw_only=True):
    """Create the customer `customers[0]`; role is customer, partner or house. The profile is sealed, None if empty."""

    creates_customer = True
    audit = AuditedAction("customer", "created", fields=("role", "type", "name"))

    partner_id: UUID | None
    role: str
    type: str
    name: str
    profile: str | None
    consent: Consent | None = None


class UpdateCustomer(Command, frozen=True, kw_only=True):
    """Replace the profile (contact, trusted contact) with one that was merged with it, sealed; None is an empty one.

    `replaces` is the stored one that it was merged with, `references` are the customer.
    """

    reference_kinds = (Reference.CUSTOMER_PROFILE,)
    audit = AuditedAction("customer", "updated")

    profile: str | None
    replaces: str | None = None


class CloseCustomer(Command, frozen=True, kw_only=True):
    """Close the customer's account with all its pockets. References the customer, and with it payments in process.

    `profile` is the profile with the description of the closing, sealed; None where there is none. `replaces` is the
    stored one that it was merged with.
    """

    reference_kinds = (
        Reference.CUSTOMER_PROFILE,
        Reference.OPEN_ACH_ENTRIES,
        Reference.OPEN_WIRES,
        Reference.OPEN_WITHDRAWALS,
    )
    audit = AuditedAction("customer", "closed", fields=("reason",))

    reason: str
    profile: str | None = None
    replaces: str | None = None


class SetCustomerState(Command, frozen=True, kw_only=True):
    """Freeze the customer (FROZEN) or lift it (OPEN), which only the bank does, and says why.

    `references` is the customer, whose hits of the sanctions screening the rule must see.
    """

    reference_kinds = (Reference.SANCTIONS_HIT,)
    needs_identifiers = False
    audit = AuditedAction(
        "customer", lambda c: "frozen" if c.status == CustomerStatus.FROZEN else "unfrozen", fields=("reason",)
    )

    status: CustomerStatus
    reason: str
