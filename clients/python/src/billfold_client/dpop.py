"""Sends every request to the Customer API with its token and a new proof.

auth = DpopAuth(Authorization(ClientRegistration(issuer=..., client_id=..., private_key=..., kid=...)))
with CustomerApi(httpx.Client(base_url=url, auth=auth)) as api:
    pockets = list(api.list_pockets())
"""

import time
from collections.abc import Generator

import httpx
from typing_extensions import override

from billfold_client.keys import AuthFlow
from billfold_client.oauth import Authorization, Tokens

REFRESH_BEFORE_SECONDS = 30
"""Seconds before its expiry at which a token is refreshed."""
BEARER = "Bearer"
Flow = Generator[httpx.Request, httpx.Response, None]


class DpopAuth(AuthFlow):
    """Sends a token, and a new proof with each request; gets new tokens when they expire.

    Without tokens it acts as a service user: it gets them before the first request, for all scopes of its client.
    """

    def __init__(self, authorization: Authorization, tokens: Tokens | None = None) -> None:
        self._authorization = authorization
        self._nonce: str | None = None
        self.tokens = tokens or Tokens(access_token="", token_type="", scope="", expires_at=0.0)

    @override
    def auth_flow(self, request: httpx.Request) -> Flow:
        """Send the request; once more if the server requires a nonce or a new token."""
        if self.tokens.expires_at - REFRESH_BEFORE_SECONDS < time.time():
            self.tokens = yield from self._authorization.refreshing(self.tokens)
        response = yield self._with_proof(request)
        challenge = response.headers.get("www-authenticate", "")
        self._nonce = response.headers.get("dpop-nonce", self._nonce)
        if response.status_code != httpx.codes.UNAUTHORIZED:
            return
        if "use_dpop_nonce" in challenge:
            yield self._with_proof(request)
        elif "invalid_token" in challenge:
            self.tokens = yield from self._authorization.refreshing(self.tokens)
            yield self._with_proof(request)

    def _with_proof(self, request: httpx.Request) -> httpx.Request:
        token = self.tokens.access_token
        if self.tokens.token_type == BEARER:
            request.headers["authorization"] = f"Bearer {token}"
            return request
        key = self._authorization.key
        request.headers["authorization"] = f"DPoP {token}"
        request.headers["dpop"] = key.proof(request.method, request.url, token=token, nonce=self._nonce)
        return request
