"""Programs that are registered in tests, and the keys they prove themselves with."""

import base64
import hashlib
import json
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from billfold.oauth import clients
from billfold.oauth.rules.public_keys import from_jwk, to_jwk, to_pem
from billfold.oauth.types import NewClient
from billfold.platform import ids
from billfold.platform.clock import wall_now

REDIRECT = "https://books.example/callback"
SCOPES = ("openid", "profile", "email", "pockets.read", "pockets.write")


@dataclass
class Key:
    """A private key with all its names."""

    private: Any
    algorithm: str

    @property
    def jwk(self):
        """Return the public half as JWK."""
        return to_jwk(self.private.public_key())

    @property
    def pem(self):
        """Return the public half as PEM."""
        return to_pem(self.private.public_key())

    @property
    def thumbprint(self):
        """Return the RFC 7638 thumbprint."""
        return from_jwk(self.jwk).thumbprint

    def sign(self, claims, **header):
        """Return the claims as a JWT."""
        return jwt.encode(claims, self.private, algorithm=self.algorithm, headers=header)


def new_key(algorithm="ES256"):
    """Return a key for an algorithm."""
    if algorithm == "ES256":
        return Key(ec.generate_private_key(ec.SECP256R1()), algorithm)
    if algorithm == "EdDSA":
        return Key(ed25519.Ed25519PrivateKey.generate(), algorithm)
    return Key(rsa.generate_private_key(65537, 2048), algorithm)


KEYS = {each: new_key(each) for each in ("ES256", "PS256", "EdDSA")}
SPA = new_key()
"""The key that proofs are made with."""


async def program(conn, client_id="books", *, keys=("ES256",), **changed):
    """Return a registered client with keys; `fapi2` unless something else is said."""
    fields = {
        "name": "Books",
        "scopes": SCOPES,
        "redirect_uris": (REDIRECT,),
        "post_logout_redirect_uris": ("https://books.example/bye",),
    } | changed
    new = NewClient(**fields)
    made = await clients.register_client(conn, new, now=wall_now(), client_id=client_id)
    for each in keys:
        key = KEYS[each] if isinstance(each, str) else each
        await clients.add_client_key(conn, client_id, key.pem, now=wall_now())
    return made


def base64url(value):
    """Return bytes as JOSE writes them."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def hash_of(token):
    """Return the `ath` of an access token."""
    return base64url(hashlib.sha256(token.encode()).digest())


def proof(method, url, *, key=SPA, token=None, header=None, **changed):
    """Return a DPoP proof; a claim or header member that is None is left out."""
    claims = {
        "jti": str(ids.new()),
        "htm": method,
        "htu": url,
        "iat": int(time.time()),
        "ath": None if token is None else hash_of(token),
    } | changed
    head = {"typ": "dpop+jwt", "jwk": key.jwk} | (header or {})
    return raw_jwt(key, without_none(claims), head)


def from_now(claims):
    """Return claims in which an instant that is given as a duration counts from now."""
    now = int(time.time())
    return {
        name: now + int(value.total_seconds()) if isinstance(value, timedelta) else value
        for name, value in claims.items()
    }


def raw_jwt(key, claims, header):
    """Return a JWT whose header is exactly this and `alg`."""
    head = without_none({"alg": key.algorithm} | header)
    parts = [base64url(json.dumps(each).encode()) for each in (head, claims)]
    algorithm = jwt.get_algorithm_by_name(key.algorithm)
    signature = algorithm.sign(".".join(parts).encode(), algorithm.prepare_key(key.private))
    return ".".join([*parts, base64url(signature)])


def without_none(found):
    """Return a dict without what is None."""
    return {name: value for name, value in found.items() if value is not None}
