"""Acceptance of agreements: its command, and the rule that payments require the agreements in force."""

from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.ledger.book.book import Book
from billfold.ledger.commands import AuditedAction, Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import CustomerRow, CustomerStatus
from billfold.ledger.types import Agreements
from billfold.platform.database.rows import Row
from billfold.platform.errors import Refused


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

    needs_identifiers = True
    audit = AuditedAction("customer", "accepted_agreements")

    consent: Consent

    @override
    def audited_fields(self) -> dict[str, Any]:
        """Return the accepted version, and by whom it was accepted."""
        return {"version": self.consent.version, "accepted_by": self.consent.accepted_by}


@decides(AcceptAgreements)
def accept_agreements(books: Books, cmd: AcceptAgreements, ctx: Context) -> Outcome:
    """Record an acceptance; another one of the same version has no effect.

    Refuses: customer-not-open, agreement-not-in-force.
    """
    book = book_of(books, cmd.customers[0])
    if book.account_status == CustomerStatus.CLOSED:
        raise Refused("customer-not-open", "The customer is CLOSED.")
    current = ctx.terms.agreements.in_force(ctx.today)
    if cmd.consent.version != current:
        raise Refused("agreement-not-in-force", f"The agreements in force are those of {current}.", version=current)
    if record_consent(book, cmd.consent, ctx):
        book.change(CustomerRow, book.customer_id, agreement_version=book.agreement_version)
    return {"customer_id": str(book.customer_id), "version": current}


def record_consent(book: Book, consent: Consent, ctx: Context) -> bool:
    """Record the accepted version, unless one as new was recorded before; return whether it was recorded."""
    if (book.agreement_version or "") >= consent.version:
        return False
    given = {name: getattr(consent, name) for name in consent.__struct_fields__}
    row = AcceptanceRow(customer_id=book.customer_id, acceptance_id=ctx.ids.next(), recorded_at=ctx.now, **given)
    book.agreement_version = consent.version
    book.draft.add(row)
    book.keep_fingerprint(row)
    return True


def require_accepted(book: Book, ctx: Context) -> None:
    """Raise Refused agreement-not-accepted if the customer has not accepted the version required by now."""
    if book.role == "customer":
        require_version(book.agreement_version, ctx.terms.agreements, ctx.today)


def require_version(accepted: str | None, agreements: Agreements, today: date) -> None:
    """Raise Refused agreement-not-accepted if a version is older than the one required on a day."""
    required = agreements.required(today)
    if required is not None and (accepted or "") < required:
        raise Refused(
            "agreement-not-accepted", f"The agreements of {required} have not been accepted.", version=required
        )
