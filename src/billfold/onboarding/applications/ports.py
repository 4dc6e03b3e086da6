"""The port for identity checks: a provider that verifies businesses and people."""

from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.onboarding.applications.forms import AnyForm, RelatedPartyForm


class CheckStatus(StrEnum):
    """The progress of a check. WAITING: it has not begun; if it never does, a person has to decide."""

    WAITING = "WAITING"
    IN_PROGRESS = "IN_PROGRESS"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    MANUAL_REVIEW = "MANUAL_REVIEW"
    DOCUMENTS_NEEDED = "DOCUMENTS_NEEDED"


class CheckedApplication(msgspec.Struct, frozen=True, kw_only=True):
    """An application to check. `check_id` stays the same until the application is submitted again."""

    check_id: UUID
    submitted_at: datetime
    applicant: AnyForm
    related_parties: tuple[RelatedPartyForm, ...]
    uploaded: frozenset[str]
    """The types of the documents that have a file."""

    @override
    def __repr__(self) -> str:
        """Return the id, without personal data."""
        return f"CheckedApplication({self.check_id})"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check: reason codes that the applicant sees, and types of documents that it needs.

    `look_again_at` is business time; with WAITING and IN_PROGRESS the check is polled again then.
    """

    status: CheckStatus
    reasons: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    look_again_at: datetime | None = None


@runtime_checkable
class IdentityCheck(Protocol):
    """Checks identities. Raises `Unavailable` if it does not answer; the check is then repeated."""

    async def check(self, application: CheckedApplication, now: datetime) -> CheckResult:
        """Begin a check, or return its progress; `now` is business time. A second call does not begin another check."""
