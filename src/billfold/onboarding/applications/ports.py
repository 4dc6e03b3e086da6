"""The port of an identity check: a provider that knows businesses and people."""

from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.onboarding.applications.forms import AnyForm, RelatedPartyForm


class CheckStatus(StrEnum):
    """Where a check stands. WAITING: it has not begun, and a person has to decide when it never does."""

    WAITING = "WAITING"
    IN_PROGRESS = "IN_PROGRESS"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    MANUAL_REVIEW = "MANUAL_REVIEW"
    DOCUMENTS_NEEDED = "DOCUMENTS_NEEDED"


class CheckedApplication(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be checked. `check_id` stays the same as long as the application is not submitted again."""

    check_id: UUID
    submitted_at: datetime
    applicant: AnyForm
    related_parties: tuple[RelatedPartyForm, ...]
    uploaded: frozenset[str]
    """The types of the documents that have a file."""

    @override
    def __repr__(self) -> str:
        """Return the id and nothing personal."""
        return f"CheckedApplication({self.check_id})"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found: reasons as codes that the applicant sees, and types of documents that it needs.

    `look_again_at` is business time; with WAITING and IN_PROGRESS the check is read again then.
    """

    status: CheckStatus
    reasons: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    look_again_at: datetime | None = None


@runtime_checkable
class IdentityCheck(Protocol):
    """Checks identities. Raises `Unavailable` when it does not answer; the check is repeated then."""

    async def check(self, application: CheckedApplication, now: datetime) -> CheckResult:
        """Begin a check, or look how far it is; `now` is business time. Asking twice begins one check."""
