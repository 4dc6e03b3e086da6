"""Applications and related parties as stored, and their states."""

from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from billfold.platform.ids import command_id, derive

CHECK_JOB: Final = "application.check"
"""Checks the identity behind a submitted application; its object is the move."""
REPORT_JOB: Final = "application.report"
"""Raises the event of a move; its object is the move."""
APPROVE_JOB: Final = "application.approve"
"""Creates the customer of an approved application; its object is the applicant."""
TEAM_JOB: Final = "application.team"
"""Invites the team members who wait for an approval; its object is the applicant."""
EXPIRE_JOB: Final = "application.expire"
"""Closes an application without recent changes; its object is the applicant."""


class ApplicationKind(StrEnum):
    """The kind of applicant."""

    BUSINESS = "BUSINESS"
    INDIVIDUAL = "INDIVIDUAL"


class ApplicationStatus(StrEnum):
    """SUBMITTED until the identity check begins, PENDING while it runs."""

    CREATED = "CREATED"
    SUBMITTED = "SUBMITTED"
    PENDING = "PENDING"
    MANUAL_REVIEW = "MANUAL_REVIEW"
    DOCUMENTS_NEEDED = "DOCUMENTS_NEEDED"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    CLOSED = "CLOSED"


class Role(StrEnum):
    """The role of a related party in a business."""

    CONTROL_PERSON = "CONTROL_PERSON"
    AUTHORIZED_REPRESENTATIVE = "AUTHORIZED_REPRESENTATIVE"
    BENEFICIAL_OWNER = "BENEFICIAL_OWNER"


class ApplicationRow(msgspec.Struct, frozen=True, kw_only=True):
    """An application as stored. `customer_id` is its owner: a partner's own customer, or one of the Customer API.

    `applicant_id` is the id of the future customer; until then nothing else has this id. `content` is sealed. `move_no`
    counts its status changes. `is_approved`: it is approved, and the customer is being created. Business time.
    """

    customer_id: UUID
    application_id: UUID
    applicant_id: UUID
    partner_id: UUID
    kind: ApplicationKind
    status: ApplicationStatus
    is_approved: bool
    content: bytes
    request_mac: bytes
    requested_documents: tuple[str, ...]
    exception_reasons: tuple[str, ...]
    move_no: int
    created_at: datetime
    updated_at: datetime
    submitted_at: datetime | None
    submitted_by: UUID | None
    submitted_address: str | None
    submitted_agent: str | None
    submitted_invite_id: UUID | None = None

    @property
    def move_id(self) -> UUID:
        """The id of its last move."""
        return move_id_of(self.applicant_id, self.move_no)


class MoveRow(msgspec.Struct, frozen=True, kw_only=True):
    """A change of status, at business time."""

    customer_id: UUID
    move_id: UUID
    application_id: UUID
    move_no: int
    status: ApplicationStatus
    moved_at: datetime


class RelatedPartyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A person who owns, controls or represents the business; `content` is sealed."""

    customer_id: UUID
    application_id: UUID
    related_party_id: UUID
    content: bytes
    created_at: datetime
    updated_at: datetime


class AwaitedMemberRow(msgspec.Struct, frozen=True, kw_only=True):
    """A member to be invited into the team of the applicant on approval; `content` is sealed."""

    customer_id: UUID
    application_id: UUID
    member_id: UUID
    content: bytes
    created_at: datetime


def applicant_id_of(seed: bytes, owner: UUID, application_id: UUID) -> UUID:
    """Return the id of the customer that an application becomes."""
    return derive(seed, command_id(f"application:{owner}", application_id), 0)


def move_id_of(applicant_id: UUID, move_no: int) -> UUID:
    """Return the id of a move of an application."""
    return command_id("application.move", f"{applicant_id}:{move_no}")
