"""The keys that sign documents: sealed at rest, published for good, rotated without a gap.

A document is signed with the key of its time, so it is the same file when it is made again after a rotation.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import asyncpg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.errors import InvalidInput, NotFound
from billfold.reports.proofs.signatures import DocumentKey, PublicKey, thumbprint

KEYS_PATH: Final = "/.well-known/document-keys.json"
"""The path of the public keys, on the hosts of both APIs."""
PUBLICATION_LEAD: Final = timedelta(hours=1)
"""Time for which a new key is published before it signs: longer than the published keys are cached."""
_KEYS = "document_key LEFT JOIN document_key_revocation USING (key_id)"
_LIST_PUBLIC = f"SELECT key_id, public_key, revoked_at FROM {_KEYS} ORDER BY key_no"
_LIST = f"SELECT key_id, active_at, revoked_at FROM {_KEYS} ORDER BY key_no"
_FIND_OF = f"""
SELECT key_id, active_at, sealed FROM {_KEYS}
 WHERE revoked_at IS NULL OR revoked_at > $1
 ORDER BY CASE WHEN key_no = 1 OR active_at <= $1 THEN key_no ELSE -key_no END DESC LIMIT 1
"""
_REVOKE = """
INSERT INTO document_key_revocation (key_id, revoked_at, recorded_at, reason)
SELECT key_id, $2, $3, $4 FROM document_key WHERE key_id = $1
"""
_IS_ANY_LEFT = f"SELECT EXISTS (SELECT FROM {_KEYS} WHERE revoked_at IS NULL)"
_NEW = """
INSERT INTO document_key (key_no, key_id, public_key, sealed, created_at, active_at)
SELECT coalesce(max(key_no), 0) + 1, $1, $2, $3, $4, $5 FROM document_key
"""
_NEW_FIRST = """
INSERT INTO document_key (key_no, key_id, public_key, sealed, created_at, active_at)
VALUES (1, $1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
"""


async def get_document_key(pool: Pool, vault: Vault, at: datetime) -> DocumentKey:
    """Return the key that signs documents of a given time: the last one active by then, or the first.

    A key that was revoked by then signs none of them; the next one does. The first key is created on demand. Load a
    key before a transaction.
    """
    row = await pool.fetchrow(_FIND_OF, at)
    if row is None:
        await _create_key(pool, vault, _NEW_FIRST, now=at, active_at=at)
        row = await pool.fetchrow(_FIND_OF, at)
        assert row is not None
    opened = vault.open(row["sealed"], _place(row["key_id"]))
    return DocumentKey(row["key_id"], row["active_at"], Ed25519PrivateKey.from_private_bytes(opened))


async def list_public_keys(conn: Db) -> Sequence[PublicKey]:
    """Return all keys ever created, oldest first."""
    return [
        PublicKey(row["key_id"], Ed25519PublicKey.from_public_bytes(row["public_key"]), row["revoked_at"])
        for row in await conn.fetch(_LIST_PUBLIC)
    ]


async def list_keys(conn: Connection) -> list[tuple[str, datetime, datetime | None]]:
    """Return the id of every key, when it began to sign, and when it was revoked, oldest first."""
    return [(row["key_id"], row["active_at"], row["revoked_at"]) for row in await conn.fetch(_LIST)]


async def rotate_document_key(pool: Pool, vault: Vault, now: datetime) -> str:
    """Create the next key, which signs after `PUBLICATION_LEAD`; return its id. `now` is business time."""
    await get_document_key(pool, vault, now)
    return await _create_key(pool, vault, _NEW, now=now, active_at=now + PUBLICATION_LEAD)


async def revoke_document_key(
    pool: Pool, vault: Vault, key_id: str, *, revoked_at: datetime, reason: str, now: datetime
) -> str:
    """Revoke a key for good, from an instant that is not in the future; return the id of the one that signs now.

    If there is no other key, a new one is created and signs at once. Raises InvalidInput, NotFound.
    """
    if revoked_at > now:
        raise InvalidInput.at("since", msg="a key is revoked as of now, or of an earlier time")
    async with pool.acquire() as conn, conn.transaction():
        try:
            done = await conn.execute(_REVOKE, key_id, revoked_at.replace(microsecond=0), now, reason)
        except asyncpg.UniqueViolationError:
            raise InvalidInput.at("key", msg=f"{key_id} is revoked already") from None
        if done.endswith(" 0"):
            raise NotFound(f"There is no key {key_id}.")
        if not await conn.fetchval(_IS_ANY_LEFT):
            await _create_key(conn, vault, _NEW, now=now, active_at=now)
    return (await get_document_key(pool, vault, now)).key_id


async def _create_key(conn: Db, vault: Vault, statement: str, *, now: datetime, active_at: datetime) -> str:
    private = Ed25519PrivateKey.generate()
    key_id = thumbprint(private.public_key())
    sealed = vault.seal(private.private_bytes_raw(), _place(key_id))
    await conn.execute(statement, key_id, private.public_key().public_bytes_raw(), sealed, now, active_at)
    return key_id


def _place(key_id: str) -> bytes:
    return associated_data("document_key", "sealed", key_id, tenant_id="")
