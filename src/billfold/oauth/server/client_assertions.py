"""How a client proves who it is: a JWT it signed (RFC 7523), taken once in its lifetime."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from billfold.oauth.rules.public_keys import Jws, algorithm_names, from_pem, instant_of, parse_jws
from billfold.oauth.types import Client, ClientKey, invalid_client

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LIFETIME_MAX = timedelta(hours=1)
"""How far `exp` may lie ahead: client libraries of the documented profile write an hour."""
FAPI2_LIFETIME_MAX = timedelta(minutes=5)
SKEW = timedelta(seconds=10)
CLOCK_AHEAD_MAX = timedelta(seconds=60)
"""How far `iat` and `nbf` may lie ahead."""
_CHARS_MAX = 8192
_JTI_CHARS_MAX = 255


class Assertion(NamedTuple):
    """A valid assertion: whose, and until when it must not be used again."""

    client_id: str
    jti: str
    until: datetime


def unverified_issuer(assertion: str) -> str:
    """Return the client an assertion says it comes from; nothing is proven yet."""
    if len(assertion) > _CHARS_MAX:
        raise invalid_client("The client assertion is too long.")
    issuer = _parse_jwt(assertion).claims.get("iss")
    if not isinstance(issuer, str) or not issuer.isprintable():
        raise invalid_client("The client assertion does not name its issuer.")
    return issuer


def verify_assertion(
    assertion: str, client: Client, *, keys: Iterable[ClientKey], issuer: str, token_url: str, now: datetime
) -> Assertion:
    """Return what an assertion proves. Raises OAuthError `invalid_client`.

    Its audience is our issuer as one string; clients of the documented profile may name the
    token endpoint instead.
    """
    claims = _verified_claims(assertion, keys)
    if claims.get("iss") != client.client_id or claims.get("sub") != client.client_id:
        raise invalid_client("iss and sub must be the client_id.")
    accepted = {issuer} if client.is_fapi2 else {issuer, token_url}
    audience = claims.get("aud")
    if not isinstance(audience, str) or audience not in accepted:
        raise invalid_client("aud must be the issuer, as one string.")
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 1 <= len(jti) <= _JTI_CHARS_MAX:
        raise invalid_client("jti must be a text of 1 to 255 characters.")
    lifetime_max = FAPI2_LIFETIME_MAX if client.is_fapi2 else LIFETIME_MAX
    return Assertion(client.client_id, jti, _check_times(claims, now, lifetime_max) + SKEW)


def _verified_claims(assertion: str, keys: Iterable[ClientKey]) -> Mapping[str, Any]:
    """Return the claims that one of the keys has signed; no key comes from the header."""
    found = _parse_jwt(assertion)
    if found.header.get("typ") == "dpop+jwt":
        raise invalid_client("A DPoP proof is no client assertion.")
    key_id, algorithm = found.header.get("kid"), found.header.get("alg")
    for key in keys:
        is_named = algorithm in algorithm_names(key.algorithm) and (key_id is None or key_id == key.key_id)
        if is_named and found.is_signed_by(from_pem(key.public_pem)):
            return found.claims
    raise invalid_client("The client assertion is not signed with a registered key of this client.")


def _parse_jwt(assertion: str) -> Jws:
    try:
        return parse_jws(assertion)
    except ValueError as error:
        raise invalid_client(f"The client assertion is not a JWT: {error}.") from None


def _check_times(claims: Mapping[str, Any], now: datetime, lifetime_max: timedelta) -> datetime:
    """Return when the assertion expires. `iat` and `nbf` may be left out, `exp` may not."""
    expires = _instant(claims, "exp")
    if expires is None or expires + SKEW <= now:
        raise invalid_client("The client assertion has expired, or does not say when it does.")
    if expires > now + lifetime_max + SKEW:
        raise invalid_client(f"exp may be at most {lifetime_max // timedelta(minutes=1)} minutes ahead.")
    for name in ("iat", "nbf"):
        valid_from = _instant(claims, name)
        if valid_from is not None and valid_from > now + CLOCK_AHEAD_MAX:
            raise invalid_client(f"{name} lies in the future.")
    return expires


def _instant(claims: Mapping[str, Any], name: str) -> datetime | None:
    try:
        return instant_of(claims, name)
    except ValueError as error:
        raise invalid_client(f"{error}.") from None
