"""Clients, their requests, their grants, and the subjects of their tokens."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from billfold.identity.users.rules import Confirmation, Organization, Role
from billfold.platform import ids

AUTHORIZATION_CODE = "authorization_code"
REFRESH_TOKEN = "refresh_token"  # noqa: S105 - a name, not a secret
CLIENT_CREDENTIALS = "client_credentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClient:
    """A client to register. None leaves a setting to the profile.

    `fapi2` clients must push their requests and prove their keys. `customer_id` is the customer of a
    service user. `owner_id` is the company that registered a client, the only one it can be
    granted access to: None for those of the operator. `dpop_bound`: no token without a proof;
    `requires_nonce`: no proof without our nonce; `requires_signature`: requests to the Customer
    API carry an RFC 9421 signature.
    """

    name: str
    scopes: tuple[str, ...]
    description: str = ""
    profile: str = "fapi2"
    redirect_uris: tuple[str, ...] = ()
    post_logout_redirect_uris: tuple[str, ...] = ()
    grant_types: tuple[str, ...] = (AUTHORIZATION_CODE, REFRESH_TOKEN)
    customer_id: UUID | None = None
    owner_id: UUID | None = None
    dpop_bound: bool | None = None
    requires_nonce: bool | None = None
    requires_signature: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Client(NewClient):
    """A registered client. `member_id` is the membership of a service user."""

    dpop_bound: bool
    requires_nonce: bool
    client_id: str
    member_id: UUID | None
    created_at: datetime
    revoked_at: datetime | None

    @property
    def is_fapi2(self) -> bool:
        """Return whether the FAPI 2.0 profile applies to this client."""
        return self.profile == "fapi2"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A public key of a client; its kind decides the only algorithm it is used with.

    `registered_by` is the member who registered it, None for the operator.
    """

    client_id: str
    key_id: str
    algorithm: str
    public_pem: str
    created_at: datetime
    expires_at: datetime | None
    registered_by: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """The subject of an access token: one client, one customer, at most one user.

    `jkt` is the thumbprint of the key that requests must be proven with; None for a bearer token.
    `role` is the user's current role in the team, SERVICE for a client that acts for itself, which is a member like
    others; `auth_time` is when they signed in.
    """

    client_id: str
    user_id: UUID | None
    member_id: UUID | None
    customer_id: UUID
    role: Role
    scopes: frozenset[str]
    jkt: str | None
    auth_time: datetime | None
    issued_at: datetime
    expires_at: datetime
    is_fapi2: bool
    requires_nonce: bool
    requires_signature: bool
    organization: Organization = Organization.COMPANY
    grant_id: UUID | None = None
    grant_used_at: datetime | None = None
    confirmation: Confirmation | None = None
    """On a page: the factor with which this request was confirmed. Tokens sent by clients have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSubject:
    """The subject of a new token, its scopes, and its grant. Stored in the order of its fields."""

    client_id: str
    customer_id: UUID
    scopes: tuple[str, ...]
    family_id: UUID = field(default_factory=ids.new)
    user_id: UUID | None = None
    grant_id: UUID | None = None
    jkt: str | None = None
    auth_time: datetime | None = None
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequest:
    """An authorization request as the consent page presents it."""

    request_id: UUID
    client_id: str
    client_name: str
    client_description: str
    redirect_uri: str
    scopes: tuple[str, ...]
    login_hint: str | None
    prompts: tuple[str, ...]
    max_age: int | None
    """The user must have signed in within this many seconds; None: no limit."""
    refreshes: bool
    """True if access continues for up to 90 days without asking the user again."""
    owner_id: UUID | None
    """The only company it can be granted for; None for any."""
    publisher: str | None
    """That company's name; None for an application of the bank."""
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthGrant:
    """The permission that a user gave a client for one customer."""

    grant_id: UUID
    client_id: str
    client_name: str
    customer_id: UUID
    customer_name: str
    scopes: tuple[str, ...]
    granted_at: datetime
    last_used_at: datetime | None
    """The time when a token was last issued under it."""


class OAuthError(Exception):
    """An error of RFC 6749 or its companions. The endpoint decides its HTTP status.

    `error` is for clients, `description` for users: printable ASCII without quotes.
    """

    def __init__(self, error: str, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.error = error
        self.description = description


def invalid_dpop_proof(description: str) -> OAuthError:
    """Return the error for an invalid DPoP proof."""
    return OAuthError("invalid_dpop_proof", description)


def invalid_client(description: str) -> OAuthError:
    """Return the error for a client that failed to authenticate."""
    return OAuthError("invalid_client", description)


def invalid_grant(description: str) -> OAuthError:
    """Return the error for an invalid code or refresh token."""
    return OAuthError("invalid_grant", description)


def invalid_request(description: str) -> OAuthError:
    """Return the error for an invalid request."""
    return OAuthError("invalid_request", description)
