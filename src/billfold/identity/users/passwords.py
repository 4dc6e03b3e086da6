"""Passwords: only their hashes are kept. Hashing is slow on purpose, so two run at a time. `now` is wall time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from billfold.platform.crypto import hash_password, verify_password
from billfold.platform.database.connection import Db
from billfold.platform.errors import Unavailable

AT_ONCE = 2
"""Number of hashes computed concurrently; each takes 19 MiB and a core."""
WAITING_MAX = 100

_HASH = """
SELECT w.password_hash FROM user_password w JOIN user_account p USING (user_id)
 WHERE w.user_id = $1 AND p.status = 'ACTIVE'
"""
_SET = """
INSERT INTO user_password (user_id, password_hash, changed_at) VALUES ($1, $2, $3)
ON CONFLICT (user_id) DO UPDATE
   SET password_hash = excluded.password_hash, changed_at = excluded.changed_at
"""


async def find_password_hash(conn: Db, user_id: UUID) -> str | None:
    """Return what a user's password is verified against, or None when they have none."""
    found: str | None = await conn.fetchval(_HASH, user_id)
    return found


async def set_password(conn: Db, user_id: UUID, password_hash: str, *, now: datetime) -> None:
    """Replace a user's password by one that was checked and hashed before."""
    await conn.execute(_SET, user_id, password_hash, now)


class PasswordGate:
    """Verifies at most two passwords at a time; up to a hundred wait."""

    def __init__(self) -> None:
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Return whether a password is right; None takes as long. Raises Unavailable."""
        async with self.limited():
            return await self.verify_now(password_hash, password)

    async def verify_now(self, password_hash: str | None, password: str) -> bool:
        """Return the same, inside a block of `limited`."""
        return await asyncio.to_thread(verify_password, password_hash, password)

    async def hash(self, password: str) -> str:
        """Return the hash of a new password. Raises Unavailable."""
        async with self.limited():
            return await asyncio.to_thread(hash_password, password)

    @asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """Wait until a password may be verified or hashed in the block. Raises Unavailable."""
        if self._waiting >= WAITING_MAX:
            raise Unavailable("Too many logins are waiting.", retry_after_seconds=2)
        self._waiting += 1
        try:
            async with self._gate:
                yield
        finally:
            self._waiting -= 1
