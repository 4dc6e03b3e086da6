"""Partners, users, keys, and what a token stands for."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from billfold.identity.users.types import Role


@dataclass(frozen=True, slots=True)
class PartnerRow:
    """A partner as stored. The slug is the first label of its host name."""

    partner_id: UUID
    slug: str
    name: str
    own_customer_id: UUID
    features: frozenset[str]
    rate_per_minute: int
    money_per_minute: int
    allowed_networks: tuple[str, ...] = ()
    """Where requests may come from, as CIDR; empty: from anywhere."""


@dataclass(frozen=True, slots=True)
class NewPartner:
    """A new partner with its signing secret: the only time it is shown."""

    partner_id: UUID
    shared_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartnerUser:
    """One who logs in for a partner; `own_customer_id` is that of the partner, whose audit log tells of it."""

    user_id: UUID
    partner_id: UUID
    partner_slug: str
    own_customer_id: UUID
    username: str
    password_hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartnerKey:
    """A registered public key, and whose it is."""

    key_id: str
    algorithm: str
    public_pem: str
    user_id: UUID
    partner_id: UUID
    partner_slug: str
    own_customer_id: UUID
    username: str


@dataclass(frozen=True, slots=True)
class RegisteredKey:
    """A key as an operator lists it."""

    key_id: str
    username: str
    algorithm: str
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class SigningSecret:
    """A signing secret in force, without what is secret: since when, and until when if another has replaced it."""

    secret_no: int
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class PartnerPerson:
    """A member of a partner's own team at the bank's pages."""

    partner: PartnerRow
    member_id: UUID
    user_id: UUID
    role: Role
    authenticated_at: datetime


@dataclass(frozen=True, slots=True)
class Credential:
    """What an access token stands for, with all that its requests are checked against.

    `shared_secrets` are the signing secrets in force: two while one is being changed.
    """

    partner: PartnerRow
    user_id: UUID
    expires_at: datetime
    shared_secrets: tuple[bytes, ...] = field(repr=False)
