"""Login with a signed assertion instead of a password: RFC 7523, section 2.1.

The partner has registered a public key; the assertion names it (`kid`), is valid for at most five
minutes, and is accepted once. Errors are those of RFC 6749.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import jwt
import msgspec

from billfold.http.operations import PER_ADDRESS, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, json_response
from billfold.identity.partners import credentials, login_routes, store
from billfold.identity.partners.rules import PartnerKey
from billfold.ledger.bank import Bank
from billfold.oauth.endpoint import NOT_CACHED, STRING, Fields, error_response, form_of, form_openapi, required
from billfold.oauth.rules.public_keys import instant_of
from billfold.oauth.types import OAuthError, invalid_client, invalid_grant
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused
from billfold.platform.telemetry.metrics import SIGN_IN_FAILURES

JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLOCK_SKEW = timedelta(seconds=10)
ASSERTION_LIFETIME_MAX = timedelta(minutes=5)
_CLAIMS = ("iss", "sub", "aud", "exp", "iat", "jti")
_VISIBLE = re.compile(r"[\x21-\x7e]{1,255}")
_OPENAPI = form_openapi(
    {
        "grant_type": {"const": JWT_BEARER_GRANT},
        "assertion": {
            **STRING,
            "description": "A JWT with `kid` in its header; `iss` and `sub` the user name, `aud` this URL, `jti` new, "
            "`exp` at most 5 minutes after `iat`.",
        },
    },
    ["grant_type", "assertion"],
    "invalid_grant",
    "invalid_request",
    "unsupported_grant_type",
)


class TokenAnswer(msgspec.Struct, frozen=True):
    """A bearer token response (RFC 6749)."""

    access_token: str
    token_type: str
    expires_in: int


@post("/token/", PER_ADDRESS, tag="authentication", status=200, any_query=True, documented=_OPENAPI)
async def exchange_assertion(request: RawRequest, bank: Bank) -> HttpResponse:
    """Exchange a signed JWT assertion for a bearer token of one hour."""
    now = wall_now()
    key = None
    try:
        form = _form(request)
        key = await _find_key(bank, request, form)
        await _consume_jti(bank, key, _verified_claims(request, form, key, now=now))
        await _check_address(bank, key, request)
    except OAuthError as error:
        SIGN_IN_FAILURES.add("partner assertion")
        if key is not None:
            login_routes.record_failed_login(bank, key, request, wrong=error.description, key_id=key.key_id)
        # RFC 6749 asks for the header with 401.
        challenge = (b"www-authenticate", b'Bearer realm="billfold"')
        return error_response(error, *([challenge] if error.error == "invalid_client" else []))
    async with bank.pool.acquire() as conn, conn.transaction():
        token, expires = await credentials.issue_token(conn, partner_id=key.partner_id, user_id=key.user_id, now=now)
        await login_routes.record_login(bank, conn, key, request, now=now, proved="assertion", key_id=key.key_id)
    seconds = int((expires - now).total_seconds())
    return json_response(TokenAnswer(token, "Bearer", seconds), 200, NOT_CACHED)


def _form(request: RawRequest) -> Fields:
    """Return the fields of the form. Raises OAuthError."""
    form = form_of(request)
    if required(form, "grant_type") != JWT_BEARER_GRANT:
        raise OAuthError("unsupported_grant_type", f"`grant_type` must be {JWT_BEARER_GRANT}.")
    required(form, "assertion")
    if request.header(b"authorization") is not None or "client_assertion" in form:
        raise invalid_client("Authenticate with the assertion only.")
    return form


def _verified_claims(request: RawRequest, form: Fields, key: PartnerKey, now: datetime) -> dict[str, Any]:
    """Return the verified claims of an assertion that a key has signed."""
    if form.get("client_id", key.username) != key.username:
        raise invalid_client("`client_id` is not the issuer of the assertion.")
    try:
        claims: dict[str, Any] = jwt.decode(
            form["assertion"],
            key.public_pem,
            algorithms=[key.algorithm],
            audience=_audiences(request.host),
            issuer=key.username,
            # Times are checked below, against our clock.
            options={"require": list(_CLAIMS), "verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except jwt.PyJWTError as error:
        raise invalid_grant(f"The assertion is invalid: {error}.") from None
    _check_claims(claims, key, now)
    return claims


async def _find_key(bank: Bank, request: RawRequest, form: Fields) -> PartnerKey:
    """Return the key that the assertion names, if it belongs to the partner of this host."""
    try:
        key_id = jwt.get_unverified_header(form["assertion"]).get("kid")
    except jwt.PyJWTError:
        raise invalid_grant("The assertion is not a JWT.") from None
    key = None
    if isinstance(key_id, str) and _VISIBLE.fullmatch(key_id):
        key = await store.find_partner_key(bank.pool, key_id)
    if key is None or not login_routes.is_host_of(key.partner_slug, request, bank):
        raise invalid_grant("The assertion names no key (`kid`) that is registered here.")
    return key


def _audiences(host: str) -> list[str]:
    issuer = f"https://{host}"
    return [f"{issuer}/token/", f"{issuer}/token", issuer, f"{issuer}/"]


def _check_claims(claims: Mapping[str, Any], key: PartnerKey, now: datetime) -> None:
    if claims["sub"] != key.username:
        raise invalid_grant("`iss` and `sub` must be the user name.")
    jti = claims["jti"]
    if not isinstance(jti, str) or _VISIBLE.fullmatch(jti) is None:
        raise invalid_grant("`jti` must be a text of 1 to 255 visible characters.")
    issued, begins, expires = _instant(claims, "iat"), _instant(claims, "nbf"), _instant(claims, "exp")
    if expires + CLOCK_SKEW <= now:
        raise invalid_grant("The assertion has expired.")
    if max(issued, begins) - CLOCK_SKEW > now:
        raise invalid_grant("The assertion is not valid yet.")
    if expires - issued > ASSERTION_LIFETIME_MAX:
        raise invalid_grant("`exp` may be at most 5 minutes after `iat`.")


def _instant(claims: Mapping[str, Any], name: str) -> datetime:
    """Return a time of an assertion; `nbf` is optional."""
    try:
        found = instant_of(claims, name) or instant_of(claims, "iat")
    except ValueError as error:
        raise invalid_grant(f"{error}.") from None
    assert found is not None
    return found


async def _check_address(bank: Bank, key: PartnerKey, request: RawRequest) -> None:
    try:
        await login_routes.require_allowed_caller(bank, key.partner_slug, request)
    except Refused as refused:
        raise OAuthError("unauthorized_client", refused.detail) from None


async def _consume_jti(bank: Bank, key: PartnerKey, claims: Mapping[str, Any]) -> None:
    fresh = await credentials.consume_assertion(
        bank.pool, issuer=key.username, jti=claims["jti"], expires_at=_instant(claims, "exp") + CLOCK_SKEW
    )
    if not fresh:
        raise invalid_grant("The assertion was used before.")
