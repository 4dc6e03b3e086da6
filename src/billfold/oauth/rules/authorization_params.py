"""The parameters of an authorization request, parsed strictly."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.oauth.types import AUTHORIZATION_CODE, Client, OAuthError, invalid_dpop_proof, invalid_request

SCOPES: Mapping[str, str] = {
    "openid": "Know who you are",
    "profile": "See your name and your memberships",
    "email": "See your email address",
    "phone": "See your phone number",
    "pockets.read": "See Pockets, what they are worth, their portals, transactions and trades",
    "pockets.write": "Open, change and close Pockets and portals",
    "transfers.read": "See transfers, transfer requests and counterparties",
    "transfers.write": "Request transfers and change counterparties",
    "customer.read": "See the company's details",
    "customer.write": "Change the company's details",
    "team.read": "See the team and what its members did",
    "team.write": "Invite, change and remove members of the team",
    "onboarding.read": "See business applications and documents",
    "onboarding.write": "Fill in and send business applications and documents",
    "agreements.read": "See agreements",
    "subscriptions.read": "See events and webhook subscriptions",
    "subscriptions.write": "Change webhook subscriptions",
    "approval_rules.read": "See the rules by which transfers are approved",
    "approval_rules.write": "Change the rules by which transfers are approved",
    "authorization_requests.read": "See requests to confirm sensitive changes",
    "authorization_requests.write": "Confirm or refuse sensitive changes",
    "notifications.read": "See notifications and who gets them",
    "notifications.write": "Mark notifications and change who gets them",
    "reports.read": "See and download reports",
    "reports.write": "Order reports",
}
"""Scope -> what it grants, in the order of `service.md`'s table, the later ones at the end."""

_GROUPS = ("Move money", "Change", "See", "About you")
"""Groups of scopes by what they let an application do, the most powerful first."""
_MOVES_MONEY = frozenset({"transfers.write"})


def parse_scopes(text: str | None, allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the requested scopes in the canonical order; all allowed ones when none is named.

    Raises OAuthError `invalid_scope` for one that is unknown or not allowed.
    """
    allowed_scopes = set(allowed)
    requested = set((text or "").split(" ")) - {""} or allowed_scopes
    not_allowed = sorted(requested - allowed_scopes)
    if not_allowed:
        named = " ".join(each for each in not_allowed if each in SCOPES) or "one of the requested scopes"
        raise OAuthError("invalid_scope", f"This client may not have the scope: {named}.")
    return sort_scopes(requested)


def sort_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return scopes in the order of `SCOPES`, each once."""
    requested = set(scopes)
    return tuple(each for each in SCOPES if each in requested)


def group_scopes(scopes: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """Return scopes with their texts under the headings of a consent page: those that move money come first."""
    groups: dict[str, dict[str, str]] = {heading: {} for heading in _GROUPS}
    for scope in sort_scopes(scopes):
        groups[_heading_of(scope)][scope] = SCOPES[scope]
    return [(heading, words) for heading, words in groups.items() if words]


def _heading_of(scope: str) -> str:
    moves_money, changes, reads, personal = _GROUPS
    if scope in _MOVES_MONEY:
        return moves_money
    if scope in PERSONAL_SCOPES:
        return personal
    return changes if scope.endswith(".write") else reads


RESPONSE_MODES = ("query", "form_post")
PROMPTS = frozenset({"login", "consent", "select_account"})
_SHA256 = re.compile(r"[A-Za-z0-9_-]{43}")
_STATE_CHARS_MAX = 2000
_NONCE_CHARS_MAX = 255
_HINT_CHARS_MAX = 254
_AGE_MAX = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationParams:
    """An authorization request that may be shown to a user. Stored in the order of its fields."""

    redirect_uri: str
    scopes: tuple[str, ...]
    state: str | None
    nonce: str | None
    response_mode: str
    code_challenge: str
    jkt: str | None
    prompts: tuple[str, ...]
    max_age: int | None
    login_hint: str | None


def parse_redirect_uri(client: Client, params: Mapping[str, str]) -> str:
    """Return the address for the answer: one of the registered addresses, compared exactly.

    Raises OAuthError `invalid_request`; there must be no redirect then.
    """
    uri = params.get("redirect_uri")
    if uri is None or uri not in client.redirect_uris:
        raise invalid_request("redirect_uri is not one that is registered for this client.")
    return uri


def parse_authorization_params(
    client: Client, params: Mapping[str, str], *, proven: str | None = None
) -> AuthorizationParams:
    """Return the parsed request. `proven` is the thumbprint of its DPoP proof, if any.

    Raises OAuthError with the code that RFC 6749 4.1.2.1 and OpenID Connect assign to each error.
    """
    redirect_uri = parse_redirect_uri(client, params)
    _reject_unsupported_params(params)
    _check_response_type(client, params)
    challenge = params.get("code_challenge", "")
    if params.get("code_challenge_method") != "S256" or not _SHA256.fullmatch(challenge):
        raise invalid_request("code_challenge with the method S256 is required (PKCE).")
    return AuthorizationParams(
        redirect_uri=redirect_uri,
        scopes=parse_scopes(params.get("scope"), client.scopes),
        state=_limited_text(params, "state", _STATE_CHARS_MAX),
        nonce=_limited_text(params, "nonce", _NONCE_CHARS_MAX),
        response_mode=parse_response_mode(params),
        code_challenge=challenge,
        jkt=_code_thumbprint(params, proven),
        prompts=_prompts(params),
        max_age=_max_age(params),
        login_hint=_limited_text(params, "login_hint", _HINT_CHARS_MAX),
    )


def parse_response_mode(params: Mapping[str, str]) -> str:
    """Return how the answer is to be delivered. Raises OAuthError `invalid_request`."""
    mode = params.get("response_mode", "query")
    if mode not in RESPONSE_MODES:
        raise invalid_request(f"response_mode must be one of {', '.join(RESPONSE_MODES)}.")
    return mode


def _reject_unsupported_params(params: Mapping[str, str]) -> None:
    if "request" in params:
        raise OAuthError("request_not_supported", "Requests as JWT are not accepted; push them.")
    if "request_uri" in params:
        raise OAuthError("request_uri_not_supported", "Only request_uris of this server are accepted.")
    if "registration" in params:
        raise OAuthError("registration_not_supported", "Clients are registered beforehand.")


def _check_response_type(client: Client, params: Mapping[str, str]) -> None:
    requested = params.get("response_type")
    if requested is None:
        raise invalid_request("response_type is missing.")
    if requested != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code.")
    if AUTHORIZATION_CODE not in client.grant_types:
        raise OAuthError("unauthorized_client", "This client has no users to authorize it. Use client_credentials.")


def _code_thumbprint(params: Mapping[str, str], proven: str | None) -> str | None:
    """Return the key the code is bound to (RFC 9449, 10): as named, as proven, or None."""
    named = params.get("dpop_jkt")
    if named is None:
        return proven
    if not _SHA256.fullmatch(named):
        raise invalid_request("dpop_jkt must be a SHA-256 thumbprint in base64url.")
    if proven not in {None, named}:
        raise invalid_dpop_proof("dpop_jkt is not the key of the DPoP proof.")
    return named


def _prompts(params: Mapping[str, str]) -> tuple[str, ...]:
    requested = set(params.get("prompt", "").split(" ")) - {""}
    if requested == {"none"}:
        raise OAuthError("interaction_required", "The user must always confirm. Send the request without prompt=none.")
    if requested - PROMPTS:
        raise invalid_request("prompt must be login, consent or select_account.")
    return tuple(sorted(requested))


def _max_age(params: Mapping[str, str]) -> int | None:
    text = params.get("max_age")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(_AGE_MAX)) or int(text) > _AGE_MAX:
        raise invalid_request("max_age must be a number of seconds.")
    return int(text)


def _limited_text(params: Mapping[str, str], name: str, chars_max: int) -> str | None:
    text = params.get(name)
    if text is not None and len(text) > chars_max:
        raise invalid_request(f"{name} may have at most {chars_max} characters.")
    return text
