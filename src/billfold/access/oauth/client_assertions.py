"""How a client proves who it is: a JWT it signed (RFC 7523), valid for minutes, taken once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from billfold.access.oauth.clients import chosen
from billfold.access.oauth.errors import bad_client
from billfold.access.oauth.rules.jws import Compact, take_apart
from billfold.access.oauth.rules.public_keys import from_pem
from billfold.access.oauth.types import Client, ClientKey

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LASTS_MAX = timedelta(minutes=5)
SKEW = timedelta(seconds=10)
AHEAD_MAX = timedelta(seconds=60)
"""How far `iat` and `nbf` may lie ahead."""
_CHARS_MAX = 8192
_JTI_CHARS_MAX = 255
_INSTANT_MAX = 1e11


class Assertion(NamedTuple):
    """An assertion that holds: whose, and until when nobody may use it again."""

    client_id: str
    jti: str
    until: datetime


def claimed_client(assertion: str) -> str:
    """Return the client an assertion says it comes from; nothing is proven yet."""
    if len(assertion) > _CHARS_MAX:
        raise bad_client("The client assertion is too long.")
    issuer = _apart(assertion).claims.get("iss")
    if not isinstance(issuer, str) or not issuer.isprintable():
        raise bad_client("The client assertion does not name its issuer.")
    return issuer


def check_assertion(
    assertion: str,
    client: Client,
    *,
    keys: Iterable[ClientKey],
    issuer: str,
    token_url: str,
    now: datetime,
) -> Assertion:
    """Return what an assertion proves. Raises OAuthError `invalid_client`.

    Its audience is our issuer as one string; clients of the documented profile may name the
    token endpoint instead.
    """
    claims = _signed(assertion, keys)
    if claims.get("iss") != client.client_id or claims.get("sub") != client.client_id:
        raise bad_client("iss and sub must be the client_id.")
    accepted = {issuer} if client.is_fapi2 else {issuer, token_url}
    audience = claims.get("aud")
    if not isinstance(audience, str) or audience not in accepted:
        raise bad_client("aud must be the issuer, as one string.")
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 1 <= len(jti) <= _JTI_CHARS_MAX:
        raise bad_client("jti must be a text of 1 to 255 characters.")
    return Assertion(client.client_id, jti, _checked_times(claims, now) + SKEW)


def _signed(assertion: str, keys: Iterable[ClientKey]) -> Mapping[str, Any]:
    """Return the claims that one of the keys has signed; no key comes from the header."""
    found = _apart(assertion)
    if found.header.get("typ") == "dpop+jwt":
        raise bad_client("A DPoP proof is no client assertion.")
    for key in chosen(keys, found.header.get("kid"), found.header.get("alg")):
        if found.is_signed_by(from_pem(key.public_pem)):
            return found.claims
    raise bad_client("The client assertion is not signed with a registered key of this client.")


def _apart(assertion: str) -> Compact:
    try:
        return take_apart(assertion)
    except ValueError as error:
        raise bad_client(f"The client assertion is not a JWT: {error}.") from None


def _checked_times(claims: Mapping[str, Any], now: datetime) -> datetime:
    """Return when the assertion expires. `iat` and `nbf` may be left out, `exp` may not."""
    expires = _instant(claims, "exp")
    if expires is None or expires + SKEW <= now:
        raise bad_client("The client assertion has expired, or does not say when it does.")
    if expires > now + LASTS_MAX + SKEW:
        raise bad_client("exp may be at most 5 minutes ahead.")
    for name in ("iat", "nbf"):
        begins = _instant(claims, name)
        if begins is not None and begins > now + AHEAD_MAX:
            raise bad_client(f"{name} lies in the future.")
    return expires


def _instant(claims: Mapping[str, Any], name: str) -> datetime | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_client(f"{name} must be a number of seconds.")
    if not 0 <= value < _INSTANT_MAX:
        raise bad_client(f"{name} is not an instant.")
    return datetime.fromtimestamp(value, UTC)
