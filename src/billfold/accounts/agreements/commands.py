"""Commands about agreements."""

from typing import Any

from typing_extensions import override

from billfold.accounts.agreements.types import Consent
from billfold.ledger.commands import AuditedAction, Command


class AcceptAgreements(Command, frozen=True, kw_only=True):
    """Record that the customer accepted the agreements in force."""

    audit = AuditedAction("customer", "accepted_agreements")

    consent: Consent

    @override
    def audited_fields(self) -> dict[str, Any]:
        """Return which version was accepted, and by whom."""
        return {"version": self.consent.version, "accepted_by": self.consent.accepted_by}
