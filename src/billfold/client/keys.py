"""Keys and the proofs of possession (RFC 9449) made with them."""

import base64
import hashlib
from collections.abc import AsyncGenerator, Generator
from typing import Any

import httpx
import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from typing_extensions import override

from billfold.platform import ids
from billfold.platform.clock import wall_now

_POINT_BYTES = 32


class ProofKey:
    """An ES256 key that never leaves the program; tokens are bound to its thumbprint."""

    def __init__(self, private: ec.EllipticCurvePrivateKey | None = None) -> None:
        self._private = private or ec.generate_private_key(ec.SECP256R1())
        numbers = self._private.public_key().public_numbers()
        self.jwk = {
            "kty": "EC",
            "crv": "P-256",
            "x": base64url(numbers.x.to_bytes(_POINT_BYTES)),
            "y": base64url(numbers.y.to_bytes(_POINT_BYTES)),
        }

    @property
    def thumbprint(self) -> str:
        """Return the RFC 7638 thumbprint."""
        ordered = msgspec.json.encode(dict(sorted(self.jwk.items())))
        return base64url(hashlib.sha256(ordered).digest())

    def proof(self, method: str, url: httpx.URL, *, token: str | None = None, nonce: str | None = None) -> str:
        """Return a new proof for one request."""
        claims: dict[str, Any] = {
            "jti": str(ids.new()),
            "htm": method,
            "htu": str(url.copy_with(query=None, fragment=None)),
            "iat": int(wall_now().timestamp()),
        }
        if token is not None:
            claims["ath"] = base64url(hashlib.sha256(token.encode()).digest())
        if nonce is not None:
            claims["nonce"] = nonce
        headers = {"typ": "dpop+jwt", "jwk": self.jwk}
        return jwt.encode(claims, self._private, algorithm="ES256", headers=headers)


def client_assertion(client_id: str, audience: str, *, private_key: str, kid: str, lifetime_seconds: int) -> str:
    """Return a JWT with which a client authenticates itself (RFC 7523); the key is PEM, ES256."""
    now = int(wall_now().timestamp())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": now,
        "exp": now + lifetime_seconds,
        "jti": str(ids.new()),
    }
    return jwt.encode(claims, private_key, algorithm="ES256", headers={"kid": kid})


def base64url(value: bytes) -> str:
    """Return bytes as JOSE writes them."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class AuthFlow(httpx.Auth):
    """Reads only the answers to its own requests and leaves those to the caller's unread.

    So an answer that does not end, a stream of events, reaches the caller as it comes.
    """

    @override
    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send the requests of the flow."""
        request.read()
        flow = self.auth_flow(request)
        try:
            next_request = next(flow)
            while True:
                response = yield next_request
                if next_request is not request:
                    response.read()
                next_request = flow.send(response)
        except StopIteration:
            return

    @override
    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Do the same for an async client."""
        await request.aread()
        flow = self.auth_flow(request)
        try:
            next_request = next(flow)
            while True:
                response = yield next_request
                if next_request is not request:
                    await response.aread()
                next_request = flow.send(response)
        except StopIteration:
            return
