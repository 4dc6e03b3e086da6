"""Commands about agreements."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.ledger.commands import AuditedAction, Command
from billfold.platform.database.rows import Row


class AcceptedBy(StrEnum):
    """The party that accepted: a user, a partner for its customer, an invited person, or an operator."""

    USER = "USER"
    PARTNER = "PARTNER"
    INVITED = "INVITED"
    OPERATOR = "OPERATOR"


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted version. `accepted_by_id` is the id of the user, the partner or the invite."""

    version: str
    accepted_at: datetime
    accepted_by: AcceptedBy
    accepted_by_id: UUID | None = None
    ip_address: str | None = None
    user_agent: str | None = None
    application_id: UUID | None = None


class AcceptanceRow(Row, frozen=True, kw_only=True):
    """An acceptance as stored. `accepted_at` is the time as reported, `recorded_at` business time."""

    table = "agreement_acceptance"
    key_column = "acceptance_id"
    fingerprinted = True
    # Earlier releases recorded no audit entry.
    proof_needed = "t.accepted_by IS NOT NULL"

    customer_id: UUID
    acceptance_id: UUID
    version: str
    accepted_at: datetime
    recorded_at: datetime
    accepted_by: AcceptedBy
    accepted_by_id: UUID | None
    ip_address: str | None
    user_agent: str | None
    application_id: UUID | None


class AcceptAgreements(Command, frozen=True, kw_only=True):
    """Record that the customer accepted the agreements in force."""

    audit = AuditedAction("customer", "accepted_agreements")

    consent: Consent

    @override
    def audited_fields(self) -> dict[str, Any]:
        """Return the accepted version, and by whom it was accepted."""
        return {"version": self.consent.version, "accepted_by": self.consent.accepted_by}
