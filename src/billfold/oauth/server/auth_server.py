"""Client authentication, and the services that all endpoints of one process share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from billfold.http.raw_request import RawRequest
from billfold.http.responses import Header, HttpResponse
from billfold.identity.partners import credentials
from billfold.ledger.bank import Bank
from billfold.oauth import clients, dpop
from billfold.oauth import signing_keys as oauth_signing_keys
from billfold.oauth.caller import AccessTokenAuthenticator
from billfold.oauth.endpoint import Fields
from billfold.oauth.rules.public_keys import Jws, algorithm_names, from_pem, instant_of, parse_jws
from billfold.oauth.signing_keys import SigningKey
from billfold.oauth.types import Client, ClientKey, OAuthError, invalid_client
from billfold.pages.theme import Theme, page_headers

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LIFETIME_MAX = timedelta(hours=1)
"""Maximum time that `exp` may lie ahead: client libraries of the documented profile write an hour."""
FAPI2_LIFETIME_MAX = timedelta(minutes=5)
SKEW = timedelta(seconds=10)
CLOCK_AHEAD_MAX = timedelta(seconds=60)
"""Maximum time that `iat` and `nbf` may lie ahead."""
_CHARS_MAX = 8192
_JTI_CHARS_MAX = 255


class Assertion(NamedTuple):
    """A valid assertion: its client, and the time until which it must not be used again."""

    client_id: str
    jti: str
    until: datetime


def unverified_issuer(assertion: str) -> str:
    """Return the client that an assertion names as its issuer; nothing is proven yet."""
    if len(assertion) > _CHARS_MAX:
        raise invalid_client("The client assertion is too long.")
    issuer = _parse_jwt(assertion).claims.get("iss")
    if not isinstance(issuer, str) or not issuer.isprintable():
        raise invalid_client("The client assertion does not name its issuer.")
    return issuer


def verify_assertion(
    assertion: str, client: Client, *, keys: Iterable[ClientKey], issuer: str, token_url: str, now: datetime
) -> Assertion:
    """Return the verified assertion. Raises OAuthError `invalid_client`.

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
    """Return the claims that one of the keys has signed; the header's key is never used."""
    found = _parse_jwt(assertion)
    if found.header.get("typ") == "dpop+jwt":
        raise invalid_client("A DPoP proof is not a client assertion.")
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
    """Return when the assertion expires. `iat` and `nbf` are optional, `exp` is not."""
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


TOKEN_PATH = "/api/oauth2/token"  # noqa: S105 - a path
_KEYS_FRESH = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class AuthenticatedClient:
    """An authenticated client, and the key it proved to hold, if it did."""

    client: Client
    jkt: str | None


class AuthServer:
    """The shared parts of the authorization server in one process."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.issuer = bank.settings.auth_origin
        self.nonces = dpop.Nonces(bank.vault)
        self.access_tokens = AccessTokenAuthenticator(bank, self.issuer)
        self._key_cache: tuple[datetime, Sequence[SigningKey]] | None = None

    @cached_property
    def theme(self) -> Theme:
        """The look of its pages, loaded with the first one."""
        return Theme(self.bank.settings.bank_name, ["billfold.oauth.server"])

    def page(
        self,
        name: str,
        *,
        status: int = 200,
        form_target_uri: str | None = None,
        more: Sequence[Header] = (),
        **facts: object,
    ) -> HttpResponse:
        """Return a page for a browser that a client sent here, with `more` headers."""
        text = self.theme.render(name, {"session": None, "csrf": "", **facts})
        headers = [(key.encode(), value.encode()) for key, value in page_headers(form_target_uri).items()]
        return HttpResponse(status, "text/html; charset=utf-8", text.encode(), headers=[*headers, *more])

    async def prove(
        self, request: RawRequest, form: Fields, now: datetime, *, must_bind: bool = False
    ) -> AuthenticatedClient:
        """Return the client that sent a form, proven by its assertion and its DPoP proof.

        Nothing is used up before all checks pass. `must_bind` requires a proof if the client
        is registered for tokens that are bound to a key. Raises OAuthError.
        """
        client, assertion = await self._verify_assertion(request, form, now)
        proof = self._verify_dpop(request, client, now, must_bind=must_bind)
        if not await credentials.consume_assertion(
            self.bank.pool, issuer=f"oauth:{client.client_id}", jti=assertion.jti, expires_at=assertion.until
        ):
            raise OAuthError("invalid_client", "The client assertion was used before.")
        if proof is None:
            return AuthenticatedClient(client, None)
        if not await dpop.consume_proof(self.bank.pool, proof.jkt, proof.jti, until=proof.until):
            raise OAuthError("invalid_dpop_proof", "The proof was used before.")
        return AuthenticatedClient(client, proof.jkt)

    def nonce_headers(self, client: Client, now: datetime) -> list[tuple[bytes, bytes]]:
        """Return the header with a client's next nonce, if it needs one."""
        if not client.requires_nonce:
            return []
        return [(b"dpop-nonce", self.nonces.current(now).encode())]

    async def signing_keys(self, now: datetime) -> Sequence[SigningKey]:
        """Return the published keys, looked up twice a minute; created if there are none yet."""
        if self._key_cache is not None and now - self._key_cache[0] < _KEYS_FRESH:
            return self._key_cache[1]
        keys = await oauth_signing_keys.list_published_keys(self.bank.pool, self.bank.vault, now)
        if {key.algorithm for key in keys} != set(oauth_signing_keys.ALGORITHMS):
            async with self.bank.pool.acquire() as conn:
                await oauth_signing_keys.ensure_signing_keys(conn, self.bank.vault, now)
                keys = await oauth_signing_keys.list_published_keys(conn, self.bank.vault, now)
        self._key_cache = now, keys
        return keys

    async def _verify_assertion(self, request: RawRequest, form: Fields, now: datetime) -> tuple[Client, Assertion]:
        if request.header(b"authorization") is not None or "client_secret" in form:
            raise OAuthError("invalid_client", "Clients authenticate with private_key_jwt only.")
        if form.get("client_assertion_type") != ASSERTION_TYPE:
            raise OAuthError("invalid_client", "client_assertion_type must be jwt-bearer.")
        sent = form.get("client_assertion")
        if sent is None:
            raise OAuthError("invalid_client", "client_assertion is missing.")
        named = unverified_issuer(sent)
        if form.get("client_id", named) != named:
            raise OAuthError("invalid_client", "client_id is not the issuer of the assertion.")
        client = await clients.find_client(self.bank.pool, named)
        if client is None or client.revoked_at is not None:
            raise OAuthError("invalid_client", "The client is unknown.")
        keys = await clients.list_client_keys(self.bank.pool, client.client_id, now)
        token_url = self.issuer + TOKEN_PATH
        return client, verify_assertion(sent, client, keys=keys, issuer=self.issuer, token_url=token_url, now=now)

    def _verify_dpop(self, request: RawRequest, client: Client, now: datetime, *, must_bind: bool) -> dpop.Proof | None:
        sent = request.header(b"dpop")
        if sent is None and not (must_bind and client.dpop_bound):
            return None
        return dpop.verify_proof(
            sent,
            method=request.method,
            url=self.issuer + request.path,
            now=now,
            nonces=self.nonces,
            requires_nonce=client.requires_nonce,
        )
