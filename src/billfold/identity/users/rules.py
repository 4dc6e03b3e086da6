"""Lifetimes, password rules, and permissions of roles. Pure; `now` is wall time."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.platform.errors import InvalidInput, Refused

UserRole = Literal["ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER"]
Role = Literal[UserRole, "SERVICE"]
"""The role of a user, or that of service users."""
MemberStatus = Literal["PENDING", "ACTIVE", "DEACTIVATED"]
AuthMethod = Literal["pwd", "otp", "hwk"]
"""An authentication method, as RFC 8176 names it."""
LinkPurpose = Literal["welcome", "reset"]


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user who can sign in. Holds no password: `Factors` says which factors they have."""

    user_id: UUID
    email: str
    email_verified_at: datetime | None
    first_name: str
    last_name: str
    phone_number: str | None
    phone_verified_at: datetime | None
    time_zone: str
    created_at: datetime
    last_login_at: datetime | None

    @property
    def name(self) -> str:
        """The full name."""
        return f"{self.first_name} {self.last_name}"


class Organization(StrEnum):
    """The organization of a team, by the role of its customer: a company, a partner, or the bank itself."""

    COMPANY = "customer"
    PARTNER = "partner"
    BANK = "house"

    def require_company(self) -> None:
        """Refuse the bank and partners where a company is required: no person or application moves their money.

        Raises `forbidden`.
        """
        if self is not Organization.COMPANY:
            raise Refused("forbidden", "Applications act for companies only: not for the bank itself, nor a partner.")


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The membership of a user in a customer's team. `partner_slug` is that of a partner's own team."""

    member_id: UUID
    customer_id: UUID
    customer_name: str
    role: Role
    status: MemberStatus
    organization: Organization = Organization.COMPANY
    partner_slug: str | None = None

    @property
    def is_of_bank(self) -> bool:
        """Tell whether the team is the bank's: its members are operators."""
        return self.organization is Organization.BANK

    @property
    def is_of_company(self) -> bool:
        """Tell whether the team is a company's: its members, and applications, use the Customer API."""
        return self.organization is Organization.COMPANY

    @property
    def path(self) -> str:
        """Return the path of its pages."""
        if self.is_of_bank:
            return "/bank"
        return f"/companies/{self.customer_id}" if self.partner_slug is None else f"/partners/{self.partner_slug}"


class Factors(msgspec.Struct, frozen=True, kw_only=True):
    """The authentication factors of a user."""

    password_changed_at: datetime | None
    authenticator_since: datetime | None
    passkeys: int

    @property
    def has_second_factor(self) -> bool:
        """Return whether there is any factor besides a password."""
        return self.authenticator_since is not None or self.passkeys > 0


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One browser in which a user is signed in.

    `authenticated_at` is the `auth_time` of the tokens issued from it. Until it is `complete` a second factor is
    missing, and it gives no access.
    """

    session_id: UUID
    user: User
    auth_methods: tuple[AuthMethod, ...]
    complete: bool
    authenticated_at: datetime
    started_at: datetime
    last_seen_at: datetime
    ends_at: datetime
    address: str
    device: str


class Passkey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that a device or a password manager keeps for a user."""

    passkey_id: UUID
    credential_id: bytes
    user_id: UUID
    public_key: bytes
    sign_count: int
    name: str
    created_at: datetime
    used_at: datetime | None


class Confirmation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The factor with which a person confirmed a decision; of a passkey its answer to a challenge with the `nonce`.

    Bytes are base64url: the credential, its public key (COSE), and what WebAuthn signed. For a code it has the `step`
    of time of the code, which no other decision of the person has. One factor confirms several decisions by the ordered
    list of their hashes, `decisions`.
    """

    method: AuthMethod
    step: int = 0
    nonce: str = ""
    credential_id: str = ""
    public_key: str = ""
    authenticator_data: str = ""
    client_data: str = ""
    signature: str = ""
    decisions: tuple[str, ...] = ()


class ClientInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a client, and its browser in words."""

    address: str
    device: str


Action = Literal["TRANSFER", "NEW_COUNTERPARTY", "MEMBER_ROLE"]
"""The actions that a rule can cover. Changes of the rules themselves need no rule: they always require approval."""


IDLE_TIMEOUT = timedelta(minutes=30)
SESSION_LIFETIME = timedelta(hours=12)
FIRST_FACTOR_SESSION_LIFETIME = timedelta(minutes=10)
"""Maximum time between the first factor and the second."""
RECENT_AUTHENTICATION_WINDOW = timedelta(minutes=5)
"""Maximum age of an authentication with which a user may change their credentials."""
WELCOME_LINK_LIFETIME = timedelta(days=7)
RESET_LINK_LIFETIME = timedelta(hours=1)
LINK_RESEND_INTERVAL = timedelta(minutes=1)
CHALLENGE_LIFETIME = timedelta(minutes=5)

PASSWORD_CHARS_MIN = 12
PASSWORD_CHARS_MAX = 128
_GUESSES_LOG10_MIN = 8
_ESTIMATED_CHARS = 72
"""The estimate of more characters takes long and adds no information."""
EMAIL_CHARS_MAX = 254
_PARTS = re.compile(r"[^A-Za-z0-9]+")
NAME_CHARS_MAX = 50


class LockoutPolicy(NamedTuple):
    """The delay after failed attempts: some are free, then it doubles each time, up to a lock."""

    free: int
    lock_after: int
    lock_duration: timedelta = timedelta(minutes=15)


ACCOUNT_LOCKOUT = LockoutPolicy(free=2, lock_after=5)
IP_LOCKOUT = LockoutPolicy(free=20, lock_after=30)
"""A whole office may share an address."""

PARTNER_LOCKOUT = LockoutPolicy(free=5, lock_after=5)
"""A program does not mistype: nothing slows it down before the lock."""


def lockout_seconds(policy: LockoutPolicy, failures: int, last_failed_at: datetime, now: datetime) -> int:
    """Return for how many seconds no try is accepted after so many failures, 0 for none."""
    if failures >= policy.lock_after:
        pause = policy.lock_duration
    elif failures >= policy.free:
        pause = timedelta(seconds=2 ** (failures - policy.free))
    else:
        return 0
    return max(0, ceil((last_failed_at + pause - now).total_seconds()))


def count_failure(policy: LockoutPolicy, failures: int, last_failed_at: datetime, now: datetime) -> int:
    """Return the count with one more failure; failures older than the lock are forgotten."""
    return 1 if now >= last_failed_at + policy.lock_duration else failures + 1


def check_email(email: str) -> str:
    """Return an e-mail address in lower case, with its domain in network form.

    Only a sent e-mail proves that it exists. Raises InvalidInput at `email`.
    """
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415 - loads at the first address

    try:
        found = validate_email(email.strip(), check_deliverability=False, allow_smtputf8=False, strict=True)
    except EmailNotValidError:
        found = None
    address = "" if found is None else (found.ascii_email or "").lower()
    if not 0 < len(address) <= EMAIL_CHARS_MAX:
        raise InvalidInput.at("email", msg="must be an address like anna@example.com")
    return address


def normalize_email(text: str) -> str:
    """Return a text as the address that it spells, or in lower case if it is not an address."""
    try:
        return check_email(text)
    except InvalidInput:
        return text.strip().lower()


def check_phone_number(number: str) -> str:
    """Return a phone number in E.164 format. Raises InvalidInput at `phone_number`.

    Its length and country must be possible. Assigned numbers change faster
    than any table of them.
    """
    import phonenumbers  # noqa: PLC0415 - loads a table of each country at the first number

    try:
        found = phonenumbers.parse(number, None)
    except phonenumbers.NumberParseException:
        found = None
    if found is None or found.extension or not phonenumbers.is_possible_number(found):
        raise InvalidInput.at("phone_number", msg="must be a number like +12025550123")
    return phonenumbers.format_number(found, phonenumbers.PhoneNumberFormat.E164)


def check_name(name: str, field: str) -> str:
    """Return a name of 1 to 50 printable characters. Raises InvalidInput."""
    name = name.strip()
    if not 1 <= len(name) <= NAME_CHARS_MAX or not name.isprintable():
        raise InvalidInput.at(field, msg="must be 1 to 50 printable characters")
    return name


def check_password(password: str, *, known: tuple[str, ...] = ()) -> str:
    """Return a password that is long enough and hard to guess. Raises InvalidInput.

    `known` are words that others know about the user. There are no composition rules: what
    counts is how many guesses it takes, common passwords and patterns tried first.
    """
    from zxcvbn import zxcvbn  # noqa: PLC0415 - loads lists of passwords at the first one

    if not PASSWORD_CHARS_MIN <= len(password) <= PASSWORD_CHARS_MAX:
        raise InvalidInput.at("password", msg="must be 12 to 128 characters")
    words = [part for word in known for part in (word, *_PARTS.split(word)) if part]
    estimate = zxcvbn(password[:_ESTIMATED_CHARS], user_inputs=[*words, "billfold"])
    if estimate["guesses_log10"] < _GUESSES_LOG10_MIN:
        raise InvalidInput.at("password", msg="is too easy to guess; three unrelated words are not")
    return password


def check_new_password(form: Mapping[str, str], *, known: tuple[str, ...]) -> str:
    """Return the `password` of a form, repeated in `again`. Raises InvalidInput like `check_password`."""
    password = check_password(form.get("password", ""), known=known)
    if password != form.get("again", ""):
        raise InvalidInput.at("again", msg="was typed differently the second time")
    return password


_READ = frozenset(
    {
        "openid",
        "profile",
        "email",
        "phone",
        "pockets.read",
        "transfers.read",
        "customer.read",
        "team.read",
        "onboarding.read",
        "agreements.read",
        "subscriptions.read",
        "reports.read",
        "approval_rules.read",
        "authorization_requests.read",
        "notifications.read",
        "notifications.write",
    }
)
_TRANSFERS = frozenset({"transfers.write", "counterparties.write"})
_APPROVE = frozenset({"transfers.approve", "authorization_requests.write"})
_MANAGE = _TRANSFERS | _APPROVE | {"pockets.write", "reports.write"}
_EVERYTHING = _MANAGE | {
    "customer.write",
    "team.write",
    "onboarding.write",
    "subscriptions.write",
    "approval_rules.write",
}
PERMISSIONS: Mapping[Role, frozenset[str]] = {
    "ADMIN": _READ | _EVERYTHING,
    "MANAGER": _READ | _MANAGE,
    "APPROVER": _READ | _APPROVE,
    "INITIATOR": _READ | _TRANSFERS,
    "VIEWER": _READ,
    "SERVICE": _READ | _EVERYTHING - _APPROVE,
}
"""The permissions of each role, as scopes; a token may do what both its role and its scopes permit.

A service user approves nothing: an approval has to come from a person.
"""
