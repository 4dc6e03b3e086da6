"""Programs of a company under load: tokens bound to one key, and a new proof for each request.

The Customer API lets a program in 120 times a minute and has no higher limit to set, so that each
run is shared out over as many programs as it takes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import asyncpg
import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from benchmarks.dataset import Location
from billfold.access.oauth import access_tokens, clients
from billfold.access.oauth.types import CLIENT_CREDENTIALS, NewClient
from billfold.client.keys import ProofKey
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

PER_PROGRAM = 100
"""Requests of one program in one run: fewer than a minute lets in."""
SCOPES = ("pockets.read",)


class BoundTokens(msgspec.Struct, frozen=True):
    """How programs prove who they are: a token each, all bound to one private key (PEM)."""

    origin: str
    tokens: list[str]
    private_key: str

    @property
    def host(self) -> str:
        """The name of the Customer API."""
        return self.origin.removeprefix("https://")

    def headers(self) -> ProofHeaders:
        """Return the builder of the header lines."""
        return ProofHeaders(self)


class ProofHeaders:
    """Makes the header lines of one request after another."""

    def __init__(self, bound: BoundTokens) -> None:
        self._bound = bound
        self._key = ProofKey(private_key(bound.private_key))
        self._made = 0

    def of(self, method: str, path: str) -> list[str]:
        """Return the lines that prove the next request."""
        token = self._bound.tokens[self._made % len(self._bound.tokens)]
        self._made += 1
        proof = self._key.proof(method, httpx.URL(self._bound.origin + path), token=token)
        return [f"Host: {self._bound.host}", f"Authorization: DPoP {token}", f"DPoP: {proof}"]


class TokenIssuer:
    """Registers programs of a company and gives each a token."""

    def __init__(self, location: Location, origin: str) -> None:
        self._dsn = location.dsn
        self._origin = origin
        self._key = ec.generate_private_key(ec.SECP256R1())

    def bound(self, customer_id: UUID, requests: int) -> BoundTokens:
        """Return what so many requests for a customer are proven with."""
        programs = -(-requests // PER_PROGRAM)
        tokens = asyncio.run(self._tokens(customer_id, programs))
        return BoundTokens(self._origin, tokens, as_pem(self._key))

    async def _tokens(self, customer_id: UUID, programs: int) -> list[str]:
        conn = await asyncpg.connect(self._dsn)
        try:
            return [await self._token(conn, customer_id) for _ in range(programs)]
        finally:
            await conn.close()

    async def _token(self, conn: Connection, customer_id: UUID) -> str:
        now = wall_now()
        new = NewClient(
            name="Bench",
            scopes=SCOPES,
            grant_types=(CLIENT_CREDENTIALS,),
            customer_id=customer_id,
            requires_nonce=False,
        )
        made = await clients.register_client(conn, new, now=now)
        return await access_tokens.issue_access(
            conn,
            client_id=made.client_id,
            customer_id=customer_id,
            scopes=SCOPES,
            now=now,
            jkt=ProofKey(self._key).thumbprint,
        )


def as_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """Return a private key as text."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def private_key(pem: str) -> ec.EllipticCurvePrivateKey:
    """Return the private key of a text."""
    key = load_pem_private_key(pem.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key
