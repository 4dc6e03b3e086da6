"""Invites as stored, and the words for their states."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec


class InvitationType(StrEnum):
    """What somebody is invited for: to fill in the whole, to review and submit it, or to fill in their own data."""

    COLLABORATOR = "COLLABORATOR"
    AUTHORIZED_PERSON = "AUTHORIZED_PERSON"
    RELATED_PARTY = "RELATED_PARTY"


class InviteStatus(StrEnum):
    """ACCEPTED once the invited person has begun."""

    PENDING = "PENDING"
    ACCEPTED = "ACCEPTED"
    EXPIRED = "EXPIRED"


class Invitee(msgspec.Struct, frozen=True, kw_only=True):
    """Who is invited, as they are addressed in the e-mail."""

    email: str
    first_name: str | None = None
    last_name: str | None = None


class InviteRow(msgspec.Struct, frozen=True, kw_only=True):
    """An invite as stored. `customer_id` is the owner of the application; `content` is the sealed `Invitee`.

    `requested_fields` are all that a related party may fill in; empty: everything of their own. `expires_at` is
    business time, `link_expires_at` wall time, as `accepted_at`. `link_hash` is that of the newest link.
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
    """An invite with who is invited."""

    row: InviteRow
    invitee: Invitee
    status: InviteStatus


class WantedInvite(msgspec.Struct, frozen=True, kw_only=True):
    """An invite that is to be sent. A related party that is not there yet is added under the name of the invitee."""

    invitation_type: InvitationType
    invitee: Invitee
    related_party_id: UUID | None = None
    requested_fields: tuple[str, ...] = ()
