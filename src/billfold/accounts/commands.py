"""Commands about a customer's account: the customer, its pockets and portals."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from typing_extensions import override

from billfold.accounts.agreements.rules import accept_agreements
from billfold.accounts.agreements.types import Consent
from billfold.accounts.customers.rules import close_customer, enrol_customer, set_customer_state, update_customer
from billfold.accounts.pockets.rules import open_pocket, set_pocket_state, update_pocket
from billfold.accounts.portals.rules import open_portal, update_portal
from billfold.accounts.portals.types import Wallet
from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.directory.types import CustomerStatus
from billfold.ledger.types import PocketStatus


class EnrolCustomer(Command, frozen=True, kw_only=True):
    """Create the customer `customers[0]`; role is customer, partner or house. The profile is sealed, None if empty."""

    rule = enrol_customer
    creates_customer = True
    audit = AuditedAction("customer", "created", fields=("role", "type", "name"))

    partner_id: UUID | None
    role: str
    type: str
    name: str
    profile: str | None
    consent: Consent | None = None


class AcceptAgreements(Command, frozen=True, kw_only=True):
    """Record that the customer accepted the agreements in force."""

    rule = accept_agreements
    audit = AuditedAction("customer", "accepted_agreements")

    consent: Consent

    @override
    def audited_fields(self) -> dict[str, Any]:
        """Return which version was accepted, and by whom."""
        return {"version": self.consent.version, "accepted_by": self.consent.accepted_by}


class UpdateCustomer(Command, frozen=True, kw_only=True):
    """Replace the profile (contact, trusted contact) with one that was merged with it, sealed; None is an empty one.

    `replaces` is the stored one that it was merged with, `references` are the customer.
    """

    rule = update_customer
    reference_kinds = (Reference.CUSTOMER_PROFILE,)
    audit = AuditedAction("customer", "updated")

    profile: str | None
    replaces: str | None = None


class CloseCustomer(Command, frozen=True, kw_only=True):
    """Close the customer's account with all its pockets. References the customer, and with it payments in process.

    `profile` is the profile with the description of the closing, sealed; None where there is none. `replaces` is the
    stored one that it was merged with.
    """

    rule = close_customer
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

    rule = set_customer_state
    reference_kinds = (Reference.SANCTIONS_HIT,)
    needs_identifiers = False
    audit = AuditedAction(
        "customer", lambda c: "frozen" if c.status == CustomerStatus.FROZEN else "unfrozen", fields=("reason",)
    )

    status: CustomerStatus
    reason: str


class OpenPocket(Command, frozen=True, kw_only=True):
    """Open a pocket with its first bank portal. Strategies as weeks; None keeps matured cash."""

    rule = open_pocket
    audit = AuditedAction("pocket", "created", fields=("name", "deposit_weeks", "reinvestment_weeks"))

    partner_id: UUID
    name: str
    deposit_weeks: int
    reinvestment_weeks: int | None
    type: str = "STANDARD"
    pocket_id: UUID | None = None
    real_time_yield: bool = False


class UpdatePocket(Command, frozen=True, kw_only=True):
    """Change what is given; `keep_reinvestment` distinguishes None from not given.

    Closing references the Pocket, and with it the payments in process.
    """

    rule = update_pocket
    reference_kinds = (Reference.OPEN_ACH_ENTRIES, Reference.OPEN_WIRES, Reference.OPEN_WITHDRAWALS)
    audit = AuditedAction(
        "pocket",
        lambda c: "closed" if c.close_for else "updated",
        fields=("name", "deposit_weeks", "reinvestment_weeks", "close_for"),
    )

    pocket_id: UUID
    name: str | None = None
    deposit_weeks: int | None = None
    reinvestment_weeks: int | None = None
    keep_reinvestment: bool = True
    close_for: str | None = None

    @override
    def audited_fields(self) -> dict[str, Any]:
        """Return what is given; reinvestment that ends is shown as None."""
        shown = super().audited_fields()
        if not self.keep_reinvestment:
            shown["reinvestment_weeks"] = self.reinvestment_weeks
        return shown


class SetPocketState(Command, frozen=True, kw_only=True):
    """What only the operator does: freeze, unfreeze, switch `real_time_yield`."""

    rule = set_pocket_state
    audit = AuditedAction("pocket", "updated", fields=("status", "real_time_yield"))

    pocket_id: UUID
    status: PocketStatus | None = None
    real_time_yield: bool | None = None


class OpenPortal(Command, frozen=True, kw_only=True):
    """Open one more portal: with `wallet` a crypto portal; else `payment_rails` None means all of the bank's."""

    rule = open_portal
    audit = AuditedAction("portal", "created", fields=("pocket_id", "name", "payment_rails"))

    pocket_id: UUID
    name: str
    payment_rails: tuple[str, ...] | None = None
    wallet: Wallet | None = None


class UpdatePortal(Command, frozen=True, kw_only=True):
    """Rename a portal, or close it permanently."""

    rule = update_portal
    audit = AuditedAction("portal", lambda c: "closed" if c.close else "updated", fields=("pocket_id", "name"))

    portal_id: UUID
    pocket_id: UUID | None = None
    name: str | None = None
    close: bool = False
