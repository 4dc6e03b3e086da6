"""Invites, how long they last, how many are sent, and what an invited person may do. Pure."""

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from billfold.onboarding.applications.forms import RelatedPartyForm
from billfold.platform.errors import Refused


class InvitationType(StrEnum):
    """The purpose of an invite: to fill in everything, to review and submit it, or to fill in one's own data."""

    COLLABORATOR = "COLLABORATOR"
    AUTHORIZED_PERSON = "AUTHORIZED_PERSON"
    RELATED_PARTY = "RELATED_PARTY"


class InviteStatus(StrEnum):
    """ACCEPTED once the invited person has begun."""

    PENDING = "PENDING"
    ACCEPTED = "ACCEPTED"
    EXPIRED = "EXPIRED"


class Invitee(msgspec.Struct, frozen=True, kw_only=True):
    """The invited person, as addressed in the e-mail."""

    email: str
    first_name: str | None = None
    last_name: str | None = None


class InviteRow(msgspec.Struct, frozen=True, kw_only=True):
    """An invite as stored. `customer_id` is the owner of the application; `content` is the sealed `Invitee`.

    `requested_fields` are those that a related party may fill in; empty: all of their own. `expires_at` is
    business time; `link_expires_at` and `accepted_at` are wall time. `link_hash` is that of the newest link.
    """

    customer_id: UUID
    invite_id: UUID
    application_id: UUID
    invitation_type: InvitationType
    related_party_id: UUID | None
    requested_fields: tuple[str, ...]
    content: bytes
    created_at: datetime
    expires_at: datetime
    sent_at: datetime
    link_hash: bytes
    link_expires_at: datetime
    accepted_at: datetime | None


class Invite(msgspec.Struct, frozen=True, kw_only=True):
    """An invite with the invited person."""

    row: InviteRow
    invitee: Invitee
    status: InviteStatus


class WantedInvite(msgspec.Struct, frozen=True, kw_only=True):
    """An invite to be sent. A missing related party is added with the invitee's name."""

    invitation_type: InvitationType
    invitee: Invitee
    related_party_id: UUID | None = None
    requested_fields: tuple[str, ...] = ()


INVITE_LIFETIME: Final = timedelta(days=7)
RESEND_INTERVAL: Final = timedelta(minutes=1)
"""An invite that is repeated within this time is not mailed again."""
SESSION_IDLE_LIMIT: Final = timedelta(hours=1)
SESSION_LIFETIME: Final = timedelta(hours=12)
INVITES_MAX: Final = 100
"""Maximum number of invites of an application."""
COLLABORATORS_MAX: Final = 20
PARTY_FIELDS: Final = frozenset(RelatedPartyForm.__struct_fields__)
_CLAIMS: Final = frozenset({"roles", "ownership_percentage"})
"""Fields in which the business describes a person: the person fills them in only if requested."""


def status_of(row: InviteRow, parties: Collection[UUID], now: datetime) -> InviteStatus:
    """Return the status of an invite, given the existing related parties; `now` is business time."""
    if row.related_party_id is not None and row.related_party_id not in parties:
        return InviteStatus.EXPIRED
    if row.accepted_at is not None:
        return InviteStatus.ACCEPTED
    return InviteStatus.EXPIRED if row.expires_at <= now else InviteStatus.PENDING


def is_just_sent(row: InviteRow, *, now: datetime, wall: datetime) -> bool:
    """Return whether an invite is open and was mailed moments ago."""
    return row.expires_at > now and row.sent_at > wall - RESEND_INTERVAL


def own_fields(row: InviteRow) -> frozenset[str]:
    """Return the fields that an invited related party may read and fill in."""
    return frozenset(row.requested_fields) or PARTY_FIELDS - _CLAIMS


def require_may_edit_business(row: InviteRow) -> None:
    """Refuses: forbidden."""
    if row.invitation_type != InvitationType.COLLABORATOR:
        raise Refused("forbidden", "This invite does not let you change the application.")


def require_may_submit(row: InviteRow) -> None:
    """Refuses: forbidden."""
    if row.invitation_type != InvitationType.AUTHORIZED_PERSON:
        raise Refused("forbidden", "This invite does not let you submit the application.")


def require_may_edit_party(row: InviteRow, party_id: UUID, fields: Collection[str]) -> None:
    """Refuses: forbidden, for another person, or for a field that was not requested."""
    if row.invitation_type == InvitationType.COLLABORATOR:
        return
    if row.invitation_type != InvitationType.RELATED_PARTY or row.related_party_id != party_id:
        raise Refused("forbidden", "This invite does not let you change this person.")
    if excess := sorted(set(fields) - own_fields(row)):
        raise Refused("forbidden", f"This invite does not ask for {', '.join(excess)}.")


def require_may_upload(row: InviteRow, related_party_id: UUID | None) -> None:
    """Refuses: forbidden, for a document that does not concern the invited person."""
    if row.invitation_type == InvitationType.COLLABORATOR:
        return
    if row.invitation_type != InvitationType.RELATED_PARTY or row.related_party_id != related_party_id:
        raise Refused("forbidden", "This invite does not let you upload this document.")
