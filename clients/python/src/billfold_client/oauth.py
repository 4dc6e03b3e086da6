"""A client of the authorization server: asks a user, exchanges codes, refreshes tokens.

Requests are yielded rather than sent, so that the same code works in httpx's own auth flow.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Generator, Iterable, Mapping
from typing import TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import msgspec

from billfold_client.errors import ApiError
from billfold_client.keys import ProofKey, base64url, client_assertion

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS = 60
Result = TypeVar("Result")
RequestFlow = Generator[httpx.Request, httpx.Response, Result]


class ClientRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """A client as registered with the authorization server; the key is an ES256 key in PEM."""

    issuer: str
    client_id: str
    private_key: str
    kid: str
    redirect_uri: str = ""


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens granted. `expires_at` is in seconds of the wall clock."""

    access_token: str
    token_type: str
    scope: str
    expires_at: float
    refresh_token: str | None = None
    id_token: str | None = None


class PendingAuthorization(msgspec.Struct, frozen=True, kw_only=True):
    """The URL to send the user to, and the state to keep until they return."""

    url: str
    state: str
    verifier: str


class _TokenResponse(msgspec.Struct, kw_only=True):
    access_token: str
    token_type: str
    expires_in: int
    scope: str = ""
    refresh_token: str | None = None
    id_token: str | None = None


class Authorization:
    """The authorization server as one program sees it; its tokens are bound to `key`."""

    def __init__(self, registration: ClientRegistration, *, key: ProofKey | None = None) -> None:
        self._registration = registration
        self.key = key or ProofKey()
        self._nonce: str | None = None

    @property
    def redirect_uri(self) -> str:
        """Return the address to which a user returns."""
        return self._registration.redirect_uri

    def begin(self, http: httpx.Client, scopes: Iterable[str]) -> PendingAuthorization:
        """Push the authorization request and return the URL where the user decides."""
        return _run(http, self._beginning(scopes))

    def finish(self, http: httpx.Client, pending: PendingAuthorization, callback_url: str) -> Tokens:
        """Exchange the code in the address to which the user returned. Raises ValueError, ApiError."""
        return _run(http, self._finishing(pending, callback_url))

    def client_credentials(self, http: httpx.Client, scopes: Iterable[str] = ()) -> Tokens:
        """Return tokens for a program that acts without a user."""
        return _run(http, self._request_tokens(_client_credentials_form(" ".join(scopes))))

    async def begin_async(self, http: httpx.AsyncClient, scopes: Iterable[str]) -> PendingAuthorization:
        """Do as `begin`."""
        return await _run_async(http, self._beginning(scopes))

    async def finish_async(self, http: httpx.AsyncClient, pending: PendingAuthorization, callback_url: str) -> Tokens:
        """Do as `finish`."""
        return await _run_async(http, self._finishing(pending, callback_url))

    def _beginning(self, scopes: Iterable[str]) -> RequestFlow[PendingAuthorization]:
        verifier, state = base64url(secrets.token_bytes(32)), base64url(secrets.token_bytes(16))
        form = {
            "response_type": "code",
            "redirect_uri": self._registration.redirect_uri,
            "scope": " ".join(scopes),
            "state": state,
            "code_challenge": base64url(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        pushed_request = (yield from self._post_form("par", form)).json()
        query = {"client_id": self._registration.client_id, "request_uri": pushed_request["request_uri"]}
        url = f"{self._registration.issuer}/api/oauth2/authorize?{urlencode(query)}"
        return PendingAuthorization(url=url, state=state, verifier=verifier)

    def _finishing(self, pending: PendingAuthorization, callback_url: str) -> RequestFlow[Tokens]:
        params = {name: each[0] for name, each in parse_qs(urlsplit(callback_url).query).items()}
        if not hmac.compare_digest(params.get("state", ""), pending.state):
            raise ValueError("The answer belongs to another request.")
        if params.get("iss") != self._registration.issuer:
            raise ValueError("The answer comes from another authorization server.")
        if "code" not in params:
            raise ValueError(f"The user did not agree: {params.get('error')}")
        form = {
            "grant_type": "authorization_code",
            "code": params["code"],
            "redirect_uri": self._registration.redirect_uri,
            "code_verifier": pending.verifier,
        }
        return (yield from self._request_tokens(form))

    def refreshing(self, tokens: Tokens) -> RequestFlow[Tokens]:
        """Get new tokens: with the refresh token, or as a service user."""
        if tokens.refresh_token is None:
            return (yield from self._request_tokens(_client_credentials_form(tokens.scope)))
        form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token}
        renewed = yield from self._request_tokens(form)
        kept_refresh_token = renewed.refresh_token or tokens.refresh_token
        return msgspec.structs.replace(renewed, refresh_token=kept_refresh_token)

    def _request_tokens(self, form: Mapping[str, str]) -> RequestFlow[Tokens]:
        response = yield from self._post_form("token", form)
        fields = msgspec.structs.asdict(msgspec.json.decode(response.content, type=_TokenResponse))
        return Tokens(expires_at=time.time() + fields.pop("expires_in"), **fields)

    def _post_form(self, endpoint: str, form: Mapping[str, str]) -> RequestFlow[httpx.Response]:
        """Post a form with the client's authentication; again if the server requires a nonce."""
        response = yield self._form_request(endpoint, form)
        wants_nonce = response.is_error and "use_dpop_nonce" in response.text
        self._nonce = response.headers.get("dpop-nonce", self._nonce)
        if wants_nonce:
            response = yield self._form_request(endpoint, form)
        if response.is_error:
            raise ApiError(response)
        return response

    def _form_request(self, endpoint: str, form: Mapping[str, str]) -> httpx.Request:
        url = httpx.URL(f"{self._registration.issuer}/api/oauth2/{endpoint}")
        form_fields = {
            **form,
            "client_id": self._registration.client_id,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": client_assertion(
                self._registration.client_id,
                self._registration.issuer,
                private_key=self._registration.private_key,
                kid=self._registration.kid,
                lifetime_seconds=_ASSERTION_SECONDS,
            ),
        }
        headers = {"dpop": self.key.proof("POST", url, nonce=self._nonce)}
        return httpx.Request("POST", url, data=form_fields, headers=headers)


def _client_credentials_form(scope: str) -> dict[str, str]:
    return {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}


def _run(http: httpx.Client, flow: RequestFlow[Result]) -> Result:
    """Send the requests of a flow and return its result."""
    try:
        request = next(flow)
        while True:
            request = flow.send(http.send(request, auth=None))
    except StopIteration as stop:
        result: Result = stop.value
        return result


async def _run_async(http: httpx.AsyncClient, flow: RequestFlow[Result]) -> Result:
    """Do the same for an async client."""
    try:
        request = next(flow)
        while True:
            response = await http.send(request, auth=None)
            request = flow.send(response)
    except StopIteration as stop:
        result: Result = stop.value
        return result
