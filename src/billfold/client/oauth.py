"""A client of the authorization server: asking a user, exchanging codes, renewing tokens.

Requests are yielded rather than sent, so that the same lines serve httpx's own auth flow.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Generator, Iterable, Mapping
from typing import TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
import msgspec

from billfold.client.keys import ProofKey, base64url
from billfold.client.responses import ApiError
from billfold.platform import ids
from billfold.platform.clock import wall_now

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS = 60
Got = TypeVar("Got")
Asking = Generator[httpx.Request, httpx.Response, Got]


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """What the authorization server knows of a program; the key is PEM, its kind ES256."""

    issuer: str
    client_id: str
    private_key: str
    kid: str
    redirect_uri: str = ""


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What was granted. `expires_at` is in seconds of the wall clock."""

    access_token: str
    token_type: str
    scope: str
    expires_at: float
    refresh_token: str | None = None
    id_token: str | None = None


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Where to send the user, and what must be remembered until he is back."""

    url: str
    state: str
    verifier: str


class _Answer(msgspec.Struct):
    access_token: str
    token_type: str
    expires_in: int
    scope: str = ""
    refresh_token: str | None = None
    id_token: str | None = None


class Authorization:
    """The authorization server as one program sees it; its tokens are bound to `key`."""

    def __init__(self, registered: Registered, *, key: ProofKey | None = None) -> None:
        self._me = registered
        self.key = key or ProofKey()
        self._nonce: str | None = None

    @property
    def redirect_uri(self) -> str:
        """Return where a user comes back to."""
        return self._me.redirect_uri

    def begin(self, http: httpx.Client, scopes: Iterable[str]) -> Begun:
        """Push what is asked for and return where the user answers it."""
        verifier, state = base64url(secrets.token_bytes(32)), base64url(secrets.token_bytes(16))
        form = {
            "response_type": "code",
            "redirect_uri": self._me.redirect_uri,
            "scope": " ".join(scopes),
            "state": state,
            "code_challenge": base64url(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        pushed = _carried_out(http, self._asked("par", form)).json()
        query = {"client_id": self._me.client_id, "request_uri": pushed["request_uri"]}
        url = f"{self._me.issuer}/api/oauth2/authorize?{urlencode(query)}"
        return Begun(url=url, state=state, verifier=verifier)

    def finish(self, http: httpx.Client, begun: Begun, came_back: str) -> Tokens:
        """Exchange the code in the address the user came back to. Raises ValueError, ApiError."""
        told = {name: each[0] for name, each in parse_qs(urlsplit(came_back).query).items()}
        if not hmac.compare_digest(told.get("state", ""), begun.state):
            raise ValueError("The answer belongs to another request.")
        if told.get("iss") != self._me.issuer:
            raise ValueError("The answer comes from another authorization server.")
        if "code" not in told:
            raise ValueError(f"The user did not agree: {told.get('error')}")
        form = {
            "grant_type": "authorization_code",
            "code": told["code"],
            "redirect_uri": self._me.redirect_uri,
            "code_verifier": begun.verifier,
        }
        return _carried_out(http, self._granted(form))

    def by_itself(self, http: httpx.Client, scopes: Iterable[str] = ()) -> Tokens:
        """Return tokens for a program that acts without a user."""
        return _carried_out(http, self._granted(self._own_form(" ".join(scopes))))

    def renewing(self, tokens: Tokens) -> Asking[Tokens]:
        """Get tokens anew: by the refresh token, or as a program that acts by itself."""
        if tokens.refresh_token is None:
            return (yield from self._granted(self._own_form(tokens.scope)))
        form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token}
        renewed = yield from self._granted(form)
        kept = renewed.refresh_token or tokens.refresh_token
        return msgspec.structs.replace(renewed, refresh_token=kept)

    def _own_form(self, scope: str) -> dict[str, str]:
        return {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}

    def _granted(self, form: Mapping[str, str]) -> Asking[Tokens]:
        answer = yield from self._asked("token", form)
        told = msgspec.json.decode(answer.content, type=_Answer)
        return Tokens(
            access_token=told.access_token,
            token_type=told.token_type,
            scope=told.scope,
            expires_at=wall_now().timestamp() + told.expires_in,
            refresh_token=told.refresh_token,
            id_token=told.id_token,
        )

    def _asked(self, endpoint: str, form: Mapping[str, str]) -> Asking[httpx.Response]:
        """Post a form with everything that proves the program; again when a nonce is wanted."""
        answer = yield self._posted(endpoint, form)
        wants_nonce = answer.is_error and "use_dpop_nonce" in answer.text
        self._nonce = answer.headers.get("dpop-nonce", self._nonce)
        if wants_nonce:
            answer = yield self._posted(endpoint, form)
        if answer.is_error:
            raise ApiError(answer)
        return answer

    def _posted(self, endpoint: str, form: Mapping[str, str]) -> httpx.Request:
        url = httpx.URL(f"{self._me.issuer}/api/oauth2/{endpoint}")
        full = {
            **form,
            "client_id": self._me.client_id,
            "client_assertion_type": _ASSERTION,
            "client_assertion": self._assertion(),
        }
        headers = {"dpop": self.key.proof("POST", url, nonce=self._nonce)}
        return httpx.Request("POST", url, data=full, headers=headers)

    def _assertion(self) -> str:
        now = int(wall_now().timestamp())
        claims = {
            "iss": self._me.client_id,
            "sub": self._me.client_id,
            "aud": self._me.issuer,
            "iat": now,
            "exp": now + _ASSERTION_SECONDS,
            "jti": str(ids.new()),
        }
        headers = {"kid": self._me.kid}
        return jwt.encode(claims, self._me.private_key, algorithm="ES256", headers=headers)


def _carried_out(http: httpx.Client, asking: Asking[Got]) -> Got:
    """Send what is asked for, and return what comes of it."""
    try:
        request = next(asking)
        while True:
            request = asking.send(http.send(request, auth=None))
    except StopIteration as done:
        got: Got = done.value
        return got
