"""Keys (ES256), the assertions of clients, and proofs of possession (RFC 9449) made with them."""

import base64
import hashlib
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any
from uuid import uuid4

import httpx
import msgspec
from fastecdsa import ecdsa
from fastecdsa.curve import P256
from fastecdsa.keys import gen_keypair, get_public_key
from typing_extensions import override

_COORDINATE_BYTES = 32
_P256_OID = bytes.fromhex("06082a8648ce3d030107")
_PRIVATE_VALUE = bytes.fromhex("0201010420")
"""What stands before the 32 bytes of a private key, in PKCS #8 and SEC 1 alike: version 1, a string of 32 bytes."""


class ProofKey:
    """An ES256 key that never leaves the program; tokens are bound to its thumbprint."""

    def __init__(self, private: int | None = None) -> None:
        if private is None:
            self._private, public = gen_keypair(P256)
        else:
            self._private, public = private, get_public_key(private, P256)
        self.jwk = {"kty": "EC", "crv": "P-256", "x": _coordinate(public.x), "y": _coordinate(public.y)}

    @classmethod
    def from_pem(cls, pem: str) -> "ProofKey":
        """Return the key of a PEM, PKCS #8 or SEC 1, without a password. Raises ValueError."""
        first, *lines = [line.strip() for line in pem.strip().splitlines()] or [""]
        der = base64.b64decode("".join(lines[:-1]), validate=True)
        _, found, private = der.partition(_PRIVATE_VALUE)
        if not first.endswith("PRIVATE KEY-----") or _P256_OID not in der or not found:
            raise ValueError("This is not a private key of P-256 in PEM without a password.")
        return cls(int.from_bytes(private[:_COORDINATE_BYTES], "big"))

    @property
    def thumbprint(self) -> str:
        """Return the RFC 7638 thumbprint."""
        ordered = msgspec.json.encode(dict(sorted(self.jwk.items())))
        return base64url(hashlib.sha256(ordered).digest())

    def sign(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
        """Return a signed JWT."""
        parts = (msgspec.json.encode(each) for each in ({"alg": "ES256", **header}, claims))
        signed = ".".join(base64url(each) for each in parts)
        r, s = ecdsa.sign(signed.encode(), self._private)
        return f"{signed}.{base64url(_integer(r) + _integer(s))}"

    def proof(self, method: str, url: httpx.URL, *, token: str | None = None, nonce: str | None = None) -> str:
        """Return a new proof for one request."""
        claims: dict[str, Any] = {
            "jti": str(uuid4()),
            "htm": method,
            "htu": str(url.copy_with(query=None, fragment=None)),
            "iat": int(time.time()),
        }
        if token is not None:
            claims["ath"] = base64url(hashlib.sha256(token.encode()).digest())
        if nonce is not None:
            claims["nonce"] = nonce
        return self.sign({"typ": "dpop+jwt", "jwk": self.jwk}, claims)


def client_assertion(client_id: str, audience: str, *, private_key: str, kid: str, lifetime_seconds: int) -> str:
    """Return a JWT with which a client authenticates itself (RFC 7523); the key is PEM, ES256."""
    now = int(time.time())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": now,
        "exp": now + lifetime_seconds,
        "jti": str(uuid4()),
    }
    return ProofKey.from_pem(private_key).sign({"typ": "JWT", "kid": kid}, claims)


def base64url(value: bytes) -> str:
    """Return bytes as JOSE writes them."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _integer(value: int) -> bytes:
    return value.to_bytes(_COORDINATE_BYTES, "big")


def _coordinate(value: int) -> str:
    return base64url(_integer(value))


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
