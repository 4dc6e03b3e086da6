"""The keys that documents are signed with: sealed at rest, published for good, replaced without a gap.

A document is signed with the key of its moment, so it is the same file when it is made again after a change of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from billfold.platform.crypto import associated_data
from billfold.reports.proofs.signatures import thumbprint
from billfold.reports.proofs.types import DocumentKey, PublicKey

if TYPE_CHECKING:
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection, Pool

PUBLICATION_LEAD: Final = timedelta(hours=1)
"""How long a new key is published before it signs: longer than the published keys are cached."""
_LIST_PUBLIC = "SELECT key_id, public_key FROM document_key ORDER BY key_no"
_LIST = "SELECT key_id, active_at FROM document_key ORDER BY key_no"
_FIND_OF = """
SELECT key_id, active_at, sealed FROM document_key
 WHERE key_no = 1 OR active_at <= $1 ORDER BY key_no DESC LIMIT 1
"""
_NEW = """
INSERT INTO document_key (key_no, key_id, public_key, sealed, created_at, active_at)
SELECT coalesce(max(key_no), 0) + 1, $1, $2, $3, $4, $5 FROM document_key
"""
_NEW_FIRST = """
INSERT INTO document_key (key_no, key_id, public_key, sealed, created_at, active_at)
VALUES (1, $1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
"""


async def get_document_key(pool: Pool, vault: Vault, at: datetime) -> DocumentKey:
    """Return the key that signs documents of a moment: the last one active by then, or the first.

    The first is made when it is needed. Load a key before a transaction.
    """
    row = await pool.fetchrow(_FIND_OF, at)
    if row is None:
        await _create_key(pool, vault, _NEW_FIRST, now=at, active_at=at)
        row = await pool.fetchrow(_FIND_OF, at)
        assert row is not None
    opened = vault.open(row["sealed"], _place(row["key_id"]))
    return DocumentKey(row["key_id"], row["active_at"], Ed25519PrivateKey.from_private_bytes(opened))


async def list_public_keys(conn: Connection | Pool) -> Sequence[PublicKey]:
    """Return every key that ever was, the oldest first."""
    return [
        PublicKey(row["key_id"], Ed25519PublicKey.from_public_bytes(row["public_key"]))
        for row in await conn.fetch(_LIST_PUBLIC)
    ]


async def list_keys(conn: Connection) -> list[tuple[str, datetime]]:
    """Return the id of every key and since when it signs, the oldest first."""
    return [(row["key_id"], row["active_at"]) for row in await conn.fetch(_LIST)]


async def rotate_document_key(pool: Pool, vault: Vault, now: datetime) -> str:
    """Make the next key, which signs after `PUBLICATION_LEAD`; return its id. `now` is business time."""
    await get_document_key(pool, vault, now)
    return await _create_key(pool, vault, _NEW, now=now, active_at=now + PUBLICATION_LEAD)


async def _create_key(pool: Pool, vault: Vault, statement: str, *, now: datetime, active_at: datetime) -> str:
    private = Ed25519PrivateKey.generate()
    key_id = thumbprint(private.public_key())
    sealed = vault.seal(private.private_bytes_raw(), _place(key_id))
    await pool.execute(statement, key_id, private.public_key().public_bytes_raw(), sealed, now, active_at)
    return key_id


def _place(key_id: str) -> bytes:
    return associated_data("document_key", "sealed", key_id, tenant_id="")
