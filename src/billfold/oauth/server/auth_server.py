"""Where clients prove who they are, and what all endpoints of one process share."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from billfold.http.raw_request import RawRequest
from billfold.http.responses import Header, HttpResponse
from billfold.identity.partners import credentials
from billfold.ledger.bank import Bank
from billfold.oauth import clients, dpop
from billfold.oauth import signing_keys as signing
from billfold.oauth.caller import AccessTokenAuthenticator
from billfold.oauth.endpoint import Fields
from billfold.oauth.errors import OAuthError
from billfold.oauth.server import client_assertions as assertions
from billfold.oauth.signing_keys import SigningKey
from billfold.oauth.types import Client
from billfold.pages.theme import Theme, page_headers

TOKEN_PATH = "/api/oauth2/token"  # noqa: S105 - a path
_KEYS_FRESH = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class AuthenticatedClient:
    """A client that has proven who it is, and the key it proved to hold, if it did."""

    client: Client
    jkt: str | None


class AuthServer:
    """The shared parts of the authorization server in one process."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.issuer = bank.settings.auth_origin
        self.nonces = dpop.Nonces(bank.vault)
        self.theme = Theme(bank.settings.bank_name, ["billfold.oauth.server"])
        self.access_tokens = AccessTokenAuthenticator(bank, self.issuer)
        self._key_cache: tuple[datetime, Sequence[SigningKey]] | None = None

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

        Nothing is used up before all checks pass. `must_bind` requires a proof where the client
        is registered for tokens that are bound. Raises OAuthError.
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
        """Return the header that gives a client its next nonce, if it needs one."""
        if not client.requires_nonce:
            return []
        return [(b"dpop-nonce", self.nonces.current(now).encode())]

    async def signing_keys(self, now: datetime) -> Sequence[SigningKey]:
        """Return the published keys, looked up twice a minute; made when there are none yet."""
        if self._key_cache is not None and now - self._key_cache[0] < _KEYS_FRESH:
            return self._key_cache[1]
        keys = await signing.list_published_keys(self.bank.pool, self.bank.vault, now)
        if {key.algorithm for key in keys} != set(signing.ALGORITHMS):
            async with self.bank.pool.acquire() as conn:
                await signing.ensure_signing_keys(conn, self.bank.vault, now)
                keys = await signing.list_published_keys(conn, self.bank.vault, now)
        self._key_cache = now, keys
        return keys

    async def _verify_assertion(
        self, request: RawRequest, form: Fields, now: datetime
    ) -> tuple[Client, assertions.Assertion]:
        if request.header(b"authorization") is not None or "client_secret" in form:
            raise OAuthError("invalid_client", "Clients prove themselves by private_key_jwt only.")
        if form.get("client_assertion_type") != assertions.ASSERTION_TYPE:
            raise OAuthError("invalid_client", "client_assertion_type must be jwt-bearer.")
        sent = form.get("client_assertion")
        if sent is None:
            raise OAuthError("invalid_client", "client_assertion is missing.")
        named = assertions.unverified_issuer(sent)
        if form.get("client_id", named) != named:
            raise OAuthError("invalid_client", "client_id is not the issuer of the assertion.")
        client = await clients.find_client(self.bank.pool, named)
        if client is None or client.revoked_at is not None:
            raise OAuthError("invalid_client", "The client is unknown.")
        keys = await clients.list_client_keys(self.bank.pool, client.client_id, now)
        token_url = self.issuer + TOKEN_PATH
        return client, assertions.verify_assertion(
            sent, client, keys=keys, issuer=self.issuer, token_url=token_url, now=now
        )

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
