"""Passwords of users: only their hashes are kept. `now` is wall time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_HASH = """
SELECT w.password_hash FROM user_password w JOIN user_account p USING (user_id)
 WHERE w.user_id = $1 AND p.status = 'ACTIVE'
"""
_SET = """
INSERT INTO user_password (user_id, password_hash, changed_at) VALUES ($1, $2, $3)
ON CONFLICT (user_id) DO UPDATE
   SET password_hash = excluded.password_hash, changed_at = excluded.changed_at
"""


async def find_password_hash(conn: Connection | Pool, user_id: UUID) -> str | None:
    """Return what a user's password is verified against, or None when they have none."""
    found: str | None = await conn.fetchval(_HASH, user_id)
    return found


async def set_password(conn: Connection | Pool, user_id: UUID, password_hash: str, *, now: datetime) -> None:
    """Give a user another password, checked and hashed before."""
    await conn.execute(_SET, user_id, password_hash, now)
