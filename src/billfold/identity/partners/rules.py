"""Lifetimes, names of partners and their users, and allowed networks. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from uuid import UUID

from billfold.identity.users.rules import RECENT_AUTHENTICATION_WINDOW, Role
from billfold.platform.errors import InvalidInput, Refused


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
    """Networks from which requests may come, as CIDR; empty: any."""


@dataclass(frozen=True, slots=True)
class NewPartner:
    """A new partner with its signing secret: the only time it is shown."""

    partner_id: UUID
    shared_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartnerUser:
    """A login user of a partner; `own_customer_id` is the partner's customer, whose audit log records it."""

    user_id: UUID
    partner_id: UUID
    partner_slug: str
    own_customer_id: UUID
    username: str
    password_hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartnerKey:
    """A registered public key, and its owner."""

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
    """A valid signing secret, without the secret value: its start, and its end if another has replaced it."""

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
    """The subject of an access token, with everything that its requests are checked against.

    `shared_secrets` are the valid signing secrets: two while one is being changed.
    """

    partner: PartnerRow
    user_id: UUID
    expires_at: datetime
    shared_secrets: tuple[bytes, ...] = field(repr=False)


TOKEN_LIFETIME = timedelta(hours=1)
OVERLAP = timedelta(hours=24)
"""Period in which the former signing secret stays valid after a change."""
PASSWORD_CHARS_MIN = 12
PASSWORD_CHARS_MAX = 128
USERNAME_CHARS_MAX = 128
FEATURES: Mapping[str, str] = {
    "ccd": "ACH originations of the class CCD",
    "customer_closure": "closing the account of a customer",
    "unverified_wires": "wires to counterparties that are not verified",
    "wires": "wires of the Partner API",
}
"""Optional features of a partner, or of one of its customers, and what each allows."""
ALGORITHMS = ("ES256", "EdDSA", "PS256", "RS256")
_CHANGING_ROLES = frozenset[Role]({"ADMIN", "MANAGER"})
_MAPPED = IPv6Network("::ffff:0:0/96")
_SLUG = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_RESERVED_SLUGS = frozenset({"auth", "api", "cards", "www", "docs", "console", "localhost"})


def may_change(role: Role) -> bool:
    """Tell whether people of a partner may do more than read, by their role in its team."""
    return role in _CHANGING_ROLES


def refusal_of(role: Role, *, changes: bool, moves_money: bool) -> Refused | None:
    """Return why a person of a partner may not use an operation of the Partner API, or None.

    All may read. No person moves money: that is for the partner's programs.
    """
    if moves_money:
        return Refused("forbidden", "Only programs of the partner can move money, not its people.")
    if changes and not may_change(role):
        return Refused("forbidden", f"The role {role} of the partner's team is read-only.")
    return None


def require_administrator(person: PartnerPerson, now: datetime) -> None:
    """Raise Refused `forbidden` unless the person may see and change credentials and has just authenticated."""
    if person.role != "ADMIN":
        raise Refused("forbidden", "Only administrators of the partner's team can change its secrets and keys.")
    if now - person.authenticated_at > RECENT_AUTHENTICATION_WINDOW:
        raise Refused("forbidden", "Confirm your identity first: you signed in too long ago.")


def check_slug(slug: str) -> str:
    """Return a slug that can be a host name. Raises InvalidInput."""
    if not _SLUG.fullmatch(slug) or slug in _RESERVED_SLUGS:
        raise InvalidInput.at(
            "slug",
            msg="must be 1 to 63 of a-z, 0-9 and -, begin with a letter, not end with -, and "
            f"not be one of {', '.join(sorted(_RESERVED_SLUGS))}",
        )
    return slug


def parse_network(text: str) -> str:
    """Return an address or a network as CIDR text: 203.0.113.7/32, 2001:db8::/32. Raises InvalidInput."""
    try:
        network = ip_network(text)
    except ValueError as wrong:
        raise InvalidInput.at("network", msg=f"must be an address or a network like 203.0.113.0/24: {wrong}") from None
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        raise InvalidInput.at("network", msg="must be written as IPv4")
    return str(network)


def require_allowed_address(address: str, networks: Sequence[str]) -> None:
    """Raise Refused `ip-not-allowed` unless the address lies in one of these networks, or there are none."""
    if networks and not _is_in(address, tuple(networks)):
        raise Refused("ip-not-allowed", f"Requests from {address} are not accepted.")


def is_listed_address(address: str, networks: Sequence[str]) -> bool:
    """Tell whether the address lies in one of the listed networks."""
    return bool(networks) and _is_in(address, tuple(networks))


@lru_cache(4096)
def _is_in(address: str, networks: tuple[str, ...]) -> bool:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):  # a socket of both families shows an IPv4 caller as ::ffff:203.0.113.7
        parsed = parsed.ipv4_mapped or parsed
    return any(parsed in ip_network(network) for network in networks)


def check_name(name: str) -> str:
    """Return a partner's name: one line of printable characters. Raises InvalidInput."""
    if not (name.strip() and name.isprintable()):
        raise InvalidInput.at("name", msg="must be one line of printable characters")
    return name


def check_username(username: str) -> str:
    """Return a user name of 1 to 128 printable characters. Raises InvalidInput."""
    if not 1 <= len(username) <= USERNAME_CHARS_MAX or not username.isprintable():
        raise InvalidInput.at("username", msg="must be 1 to 128 printable characters")
    return username


def check_password(password: str) -> str:
    """Return a password of 12 to 128 characters. Raises InvalidInput."""
    if not PASSWORD_CHARS_MIN <= len(password) <= PASSWORD_CHARS_MAX:
        raise InvalidInput.at("password", msg="must be 12 to 128 characters")
    return password
