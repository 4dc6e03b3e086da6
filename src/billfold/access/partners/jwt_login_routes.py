"""Logging in with a signed assertion instead of a password: RFC 7523, section 2.1.

The partner has registered a public key; the assertion names it (`kid`), lives five minutes at
most and is taken once. Errors are those of RFC 6749.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import jwt
import msgspec

from billfold.access.partners import credentials
from billfold.access.partners import store as partner_store
from billfold.access.partners.types import PartnerKey
from billfold.http.limits.rate_limits import count_address
from billfold.http.operations import OPEN, post
from billfold.http.raw_request import RawRequest, is_bare, slug_of
from billfold.http.responses import HttpResponse, json_response
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLOCK_SKEW = timedelta(seconds=10)
ASSERTION_LIFETIME_MAX = timedelta(minutes=5)
_FORM = "application/x-www-form-urlencoded"
_FIELDS_MAX = 20
_JTI_CHARS_MAX = 255
_NOT_CACHED = (b"pragma", b"no-cache")
_CLAIMS = ("iss", "sub", "aud", "exp", "iat", "jti")


_VISIBLE = re.compile(r"[\x21-\x7e]+")


class TokenAnswer(msgspec.Struct, frozen=True):
    """A bearer token as RFC 6749 answers it."""

    access_token: str
    token_type: str
    expires_in: int


class _TokenError(Exception):
    """An error of RFC 6749, section 5.2."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error)
        self.error = error
        self.description = description
        self.status = status


_ERROR = {
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["error"],
                "properties": {"error": {"type": "string"}, "error_description": {"type": "string"}},
            }
        }
    }
}
_OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            _FORM: {
                "schema": {
                    "type": "object",
                    "required": ["grant_type", "assertion"],
                    "properties": {
                        "grant_type": {"const": JWT_BEARER_GRANT},
                        "assertion": {
                            "type": "string",
                            "description": "A JWT with `kid` in its header; `iss` and `sub` the "
                            "user name, `aud` this URL, `jti` new, `exp` at most 5 minutes after "
                            "`iat`.",
                        },
                    },
                }
            }
        },
    },
    "responses": {
        "400": {"description": "invalid_grant, invalid_request, unsupported_grant_type (RFC 6749)", **_ERROR},
        "401": {"description": "invalid_client (RFC 6749)", **_ERROR},
    },
}


@post("/token/", OPEN, tag="authentication", status=200, any_query=True, documented=_OPENAPI)
async def exchange_assertion(request: RawRequest, bank: Bank) -> HttpResponse:
    """Exchange a signed JWT assertion for a bearer token of one hour."""
    now = wall_now()
    await count_address(bank.pool, request.client, now)
    try:
        form = _form(request)
        key, claims = await _verify_assertion(bank, request, form, now=now)
        await _consume_jti(bank, key, claims)
    except _TokenError as wrong:
        return _error_response(wrong)
    token, expires = await credentials.issue_token(bank.pool, partner_id=key.partner_id, user_id=key.user_id, now=now)
    seconds = int((expires - now).total_seconds())
    return json_response(TokenAnswer(token, "Bearer", seconds), 200, _NOT_CACHED)


def _error_response(wrong: _TokenError) -> HttpResponse:
    headers = [_NOT_CACHED]
    if wrong.status == 401:  # noqa: PLR2004 - RFC 6749 asks for the header with this one
        headers.append((b"www-authenticate", b'Bearer realm="billfold"'))
    body = {"error": wrong.error, "error_description": wrong.description}
    return json_response(body, wrong.status, *headers)


def _form(arrival: RawRequest) -> Mapping[str, str]:
    """Return the fields of the form. Raises _Wrong: each may be sent once."""
    media_type = (arrival.header(b"content-type") or "").partition(";")[0].strip().lower()
    if media_type != _FORM:
        raise _TokenError("invalid_request", f"Send the fields as {_FORM}.")
    try:
        pairs = parse_qsl(
            arrival.body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=_FIELDS_MAX,
            errors="strict",
        )
    except (ValueError, UnicodeError):
        raise _TokenError("invalid_request", "The form cannot be read.") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise _TokenError("invalid_request", "A field is there twice.")
    if "grant_type" not in form:
        raise _TokenError("invalid_request", "`grant_type` is missing.")
    if form["grant_type"] != JWT_BEARER_GRANT:
        raise _TokenError("unsupported_grant_type", f"`grant_type` must be {JWT_BEARER_GRANT}.")
    if not form.get("assertion"):
        raise _TokenError("invalid_request", "`assertion` is missing.")
    return form


async def _verify_assertion(
    bank: Bank, arrival: RawRequest, form: Mapping[str, str], now: datetime
) -> tuple[PartnerKey, dict[str, Any]]:
    """Return whose key signed the assertion, and its claims, all of them checked."""
    if arrival.header(b"authorization") is not None or "client_assertion" in form:
        raise _TokenError("invalid_client", "The assertion alone says who calls.", 401)
    key = await _find_key(bank, arrival, form["assertion"])
    if form.get("client_id", key.username) != key.username:
        raise _TokenError("invalid_client", "`client_id` is not the issuer of the assertion.", 401)
    try:
        claims: dict[str, Any] = jwt.decode(
            form["assertion"],
            key.public_pem,
            algorithms=[key.algorithm],
            audience=_audiences(arrival.host),
            issuer=key.username,
            # Times are checked below, against our clock.
            options={"require": list(_CLAIMS), "verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except jwt.PyJWTError as error:
        raise _TokenError("invalid_grant", f"The assertion does not hold: {error}.") from None
    _check_claims(claims, key, now)
    return key, claims


async def _find_key(bank: Bank, arrival: RawRequest, assertion: str) -> PartnerKey:
    """Return the key the assertion names, if it belongs to the partner of this host."""
    try:
        key_id = jwt.get_unverified_header(assertion).get("kid")
    except jwt.PyJWTError:
        raise _TokenError("invalid_grant", "The assertion is not a JWT.") from None
    key = None
    if isinstance(key_id, str) and _is_visible(key_id):
        key = await partner_store.find_partner_key(bank.pool, key_id)
    slug = slug_of(arrival.host, bank.settings.domain)
    is_bare_host = not bank.settings.is_production and is_bare(arrival.host)
    if key is None or not (key.partner_slug == slug or (slug is None and is_bare_host)):
        raise _TokenError("invalid_grant", "The assertion names no key (`kid`) that is registered here.")
    return key


def _audiences(host: str) -> list[str]:
    issuer = f"https://{host}"
    return [f"{issuer}/token/", f"{issuer}/token", issuer, f"{issuer}/"]


def _check_claims(claims: Mapping[str, Any], key: PartnerKey, now: datetime) -> None:
    if claims["sub"] != key.username:
        raise _TokenError("invalid_grant", "`iss` and `sub` must be the user name.")
    jti = claims["jti"]
    if not isinstance(jti, str) or not _is_visible(jti) or len(jti) > _JTI_CHARS_MAX:
        raise _TokenError("invalid_grant", "`jti` must be a text of 1 to 255 visible characters.")
    issued, expires = _instant(claims, "iat"), _instant(claims, "exp")
    begins = _instant(claims, "nbf") if "nbf" in claims else issued
    if expires + CLOCK_SKEW <= now:
        raise _TokenError("invalid_grant", "The assertion has expired.")
    if max(issued, begins) - CLOCK_SKEW > now:
        raise _TokenError("invalid_grant", "The assertion is not valid yet.")
    if expires - issued > ASSERTION_LIFETIME_MAX:
        raise _TokenError("invalid_grant", "`exp` may be at most 5 minutes after `iat`.")


def _instant(claims: Mapping[str, Any], name: str) -> datetime:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _TokenError("invalid_grant", f"`{name}` must be a number of seconds.")
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        raise _TokenError("invalid_grant", f"`{name}` is not an instant.") from None


async def _consume_jti(bank: Bank, key: PartnerKey, claims: Mapping[str, Any]) -> None:
    fresh = await credentials.consume_assertion(
        bank.pool, issuer=key.username, jti=claims["jti"], expires_at=_instant(claims, "exp") + CLOCK_SKEW
    )
    if not fresh:
        raise _TokenError("invalid_grant", "The assertion was used before.")


def _is_visible(text: str) -> bool:
    """Return whether a text consists of visible ASCII, at least one character."""
    return _VISIBLE.fullmatch(text) is not None
