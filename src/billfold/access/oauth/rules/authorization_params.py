"""What a client may ask a person for: the parameters of an authorization request, read strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from billfold.access.oauth.errors import OAuthError, bad_proof, bad_request
from billfold.access.oauth.rules.scopes import scopes_in
from billfold.access.oauth.types import CODE, Client

RESPONSE_MODES = ("query", "form_post")
PROMPTS = frozenset({"login", "consent", "select_account"})
_SHA256 = re.compile(r"[A-Za-z0-9_-]{43}")
_STATE_CHARS_MAX = 2000
_NONCE_CHARS_MAX = 255
_HINT_CHARS_MAX = 254
_AGE_MAX = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An authorization request that may be put to a person."""

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


def redirect_in(client: Client, sent: Mapping[str, str]) -> str:
    """Return where the answer goes: one of the registered addresses, letter by letter.

    Raises OAuthError `invalid_request`; whoever asks must not be sent anywhere then.
    """
    uri = sent.get("redirect_uri")
    if uri is None or uri not in client.redirect_uris:
        raise bad_request("redirect_uri is not one that is registered for this client.")
    return uri


def read_request(client: Client, sent: Mapping[str, str], *, proven: str | None = None) -> Asked:
    """Return what is asked for. `proven` is the thumbprint of the proof that came along, if any.

    Raises OAuthError with the code that RFC 6749 4.1.2.1 and OpenID Connect give each mistake.
    """
    redirect_uri = redirect_in(client, sent)
    _refuse_what_is_not_offered(sent)
    _check_response_type(client, sent)
    challenge = sent.get("code_challenge", "")
    if sent.get("code_challenge_method") != "S256" or not _SHA256.fullmatch(challenge):
        raise bad_request("code_challenge with the method S256 is required (PKCE).")
    return Asked(
        redirect_uri=redirect_uri,
        scopes=scopes_in(sent.get("scope"), client.scopes),
        state=_short(sent, "state", _STATE_CHARS_MAX),
        nonce=_short(sent, "nonce", _NONCE_CHARS_MAX),
        response_mode=response_mode_in(sent),
        code_challenge=challenge,
        jkt=_bound_key(sent, proven),
        prompts=_prompts(sent),
        max_age=_max_age(sent),
        login_hint=_short(sent, "login_hint", _HINT_CHARS_MAX),
    )


def response_mode_in(sent: Mapping[str, str]) -> str:
    """Return how the answer is to be carried. Raises OAuthError `invalid_request`."""
    mode = sent.get("response_mode", "query")
    if mode not in RESPONSE_MODES:
        raise bad_request(f"response_mode must be one of {', '.join(RESPONSE_MODES)}.")
    return mode


def _refuse_what_is_not_offered(sent: Mapping[str, str]) -> None:
    if "request" in sent:
        raise OAuthError("request_not_supported", "Requests as JWT are not taken; push them.")
    if "request_uri" in sent:
        raise OAuthError("request_uri_not_supported", "Only request_uris of ours are taken.")
    if "registration" in sent:
        raise OAuthError("registration_not_supported", "Clients are registered beforehand.")


def _check_response_type(client: Client, sent: Mapping[str, str]) -> None:
    wanted = sent.get("response_type")
    if wanted is None:
        raise bad_request("response_type is missing.")
    if wanted != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code.")
    if CODE not in client.grant_types:
        raise OAuthError("unauthorized_client", "This client acts by itself and asks nobody.")


def _bound_key(sent: Mapping[str, str], proven: str | None) -> str | None:
    """Return the key the code is bound to (RFC 9449, 10): as named, as proven, or none."""
    named = sent.get("dpop_jkt")
    if named is None:
        return proven
    if not _SHA256.fullmatch(named):
        raise bad_request("dpop_jkt must be a SHA-256 thumbprint in base64url.")
    if proven not in {None, named}:
        raise bad_proof("dpop_jkt is not the key of the DPoP proof.")
    return named


def _prompts(sent: Mapping[str, str]) -> tuple[str, ...]:
    wanted = set(sent.get("prompt", "").split(" ")) - {""}
    if wanted == {"none"}:
        raise OAuthError("interaction_required", "A person is always asked here.")
    if wanted - PROMPTS:
        raise bad_request("prompt must be login, consent or select_account.")
    return tuple(sorted(wanted))


def _max_age(sent: Mapping[str, str]) -> int | None:
    text = sent.get("max_age")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) > _AGE_MAX:
        raise bad_request("max_age must be a number of seconds.")
    return int(text)


def _short(sent: Mapping[str, str], name: str, longest: int) -> str | None:
    text = sent.get(name)
    if text is not None and len(text) > longest:
        raise bad_request(f"{name} may have at most {longest} characters.")
    return text
