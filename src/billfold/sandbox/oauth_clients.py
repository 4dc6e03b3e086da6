"""The programs a sandbox comes with: one of each profile, and one that acts by itself."""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.ledger.bank import Bank
from billfold.oauth import clients
from billfold.oauth.operator_audit import record_oauth_client
from billfold.oauth.rules.scopes import SCOPES
from billfold.oauth.types import CLIENT_CREDENTIALS, NewClient
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection

REDIRECT_URIS = ("http://127.0.0.1:8765/callback", "https://localhost:8765/callback")


class SandboxOAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """What a program needs to be this client. The key is an ES256 one, PEM."""

    client_id: str
    profile: str
    grant_types: tuple[str, ...]
    redirect_uris: tuple[str, ...]
    scope: str
    private_key: str
    kid: str


async def sandbox_clients(
    bank: Bank, customer_id: UUID, previous: Iterable[SandboxOAuthClient] = ()
) -> tuple[SandboxOAuthClient, ...]:
    """Register the sandbox's programs, or find them again with the keys of the last start."""
    previous_by_id = {each.client_id: each for each in previous}
    async with bank.pool.acquire() as conn, conn.transaction():
        return tuple(
            [
                await _client(bank, conn, client_id, new, previous=previous_by_id.get(client_id))
                for client_id, new in _clients_to_register(customer_id).items()
            ]
        )


def _clients_to_register(customer_id: UUID) -> dict[str, NewClient]:
    scopes = tuple(SCOPES)
    return {
        "sandbox-fapi2": NewClient(
            name="Sandbox application",
            scopes=scopes,
            redirect_uris=REDIRECT_URIS,
            description="Pushes its requests and proves its key, as new clients do.",
        ),
        "sandbox-documented": NewClient(
            name="Sandbox application without PAR",
            scopes=scopes,
            redirect_uris=REDIRECT_URIS,
            profile="documented",
            description="May use bearer tokens.",
        ),
        "sandbox-service": NewClient(
            name="Sandbox service user",
            grant_types=(CLIENT_CREDENTIALS,),
            customer_id=customer_id,
            scopes=tuple(each for each in scopes if each not in PERSONAL_SCOPES),
            requires_nonce=False,
        ),
        "sandbox-bearer": NewClient(
            name="Sandbox service user with bearer tokens",
            grant_types=(CLIENT_CREDENTIALS,),
            customer_id=customer_id,
            scopes=tuple(each for each in scopes if each not in PERSONAL_SCOPES),
            profile="documented",
        ),
    }


async def _client(
    bank: Bank, conn: Connection, client_id: str, new: NewClient, previous: SandboxOAuthClient | None
) -> SandboxOAuthClient:
    found = await clients.find_client(conn, client_id)
    keys = await clients.list_client_keys(conn, client_id, wall_now())
    if found is not None and previous is not None and previous.kid in {each.key_id for each in keys}:
        return previous
    private, public = new_key()
    client = found or await clients.register_client(conn, new, now=wall_now(), client_id=client_id)
    key = await clients.rotate_client_key(conn, client_id, public, now=wall_now())
    await record_oauth_client(bank, conn, found, action="service_user.key_rotated", key_id=key.key_id)
    return SandboxOAuthClient(
        client_id=client_id,
        profile=client.profile,
        grant_types=client.grant_types,
        redirect_uris=client.redirect_uris,
        scope=" ".join(client.scopes),
        private_key=private,
        kid=key.key_id,
    )


def new_key() -> tuple[str, str]:
    """Return a new ES256 key: the private and the public part, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
