"""Signed requests to the Partner API: token, idempotency key, signature."""

import base64
import hashlib
import hmac
import time
from collections.abc import Generator
from urllib.parse import urlencode
from uuid import uuid4

import httpx
from typing_extensions import override

from billfold_client.errors import ApiError
from billfold_client.keys import AuthFlow, client_assertion

KEY_HEADER = "x-service-idempotency"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_SECONDS = 120
_REFRESH_BEFORE_SECONDS = 60


class PartnerAuth(AuthFlow):
    """Signs each request, under the idempotency key it carries or a new one.

    Gets tokens with an assertion signed by the private key (PEM, ES256), and again when they expire.
    """

    def __init__(self, *, url: str, username: str, shared_secret: str, private_key: str, kid: str) -> None:
        self._token_url = f"{url.rstrip('/')}/token/"
        self._username, self._secret = username, shared_secret
        self._private_key, self._kid = private_key, kid
        self._token, self._expires_at = "", 0.0

    @override
    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send the request; once more with a new token if the old one is no longer known."""
        had_token = self._expires_at - _REFRESH_BEFORE_SECONDS > time.time()
        if not had_token:
            self._store_token((yield self._token_request()))
        response = yield self._sign(request)
        challenge = response.headers.get("www-authenticate", "")
        if response.status_code == httpx.codes.UNAUTHORIZED and had_token and challenge:
            self._store_token((yield self._token_request()))
            yield self._sign(request)

    def _sign(self, request: httpx.Request) -> httpx.Request:
        key = request.headers.setdefault(KEY_HEADER, str(uuid4()))
        path = request.url.raw_path.partition(b"?")[0].decode()
        request.headers["authorization"] = f"Bearer {self._token}"
        request.headers["x-service-signature"] = sign_request(self._secret, key, path, body=request.content)
        return request

    def _token_request(self) -> httpx.Request:
        assertion = client_assertion(
            self._username,
            self._token_url,
            private_key=self._private_key,
            kid=self._kid,
            lifetime_seconds=_ASSERTION_SECONDS,
        )
        form = urlencode({"grant_type": _GRANT, "assertion": assertion})
        form_headers = {"content-type": "application/x-www-form-urlencoded"}
        return httpx.Request("POST", self._token_url, content=form, headers=form_headers)

    def _store_token(self, response: httpx.Response) -> None:
        if response.is_error:
            raise ApiError(response)
        token_response = response.json()
        self._token = token_response["access_token"]
        self._expires_at = time.time() + token_response["expires_in"]


def sign_request(secret: str, key: str, path: str, *, body: bytes) -> str:
    """Return the signature of a request: base64 of the HMAC-SHA256 over key, path without query, and body."""
    return base64.b64encode(hmac.digest(secret.encode(), key.encode() + path.encode() + body, hashlib.sha256)).decode()
