"""Work that one process at a time does: claimed by a row, so that no lock is held while it is done.

A claim is renewed as long as the work continues. Of a process that died it ends by itself, and the
next one continues. Work must bear being done twice: a claim only saves the effort.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from uuid import UUID

from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Pool

LASTS = timedelta(seconds=15)
"""How long a claim holds unless it is renewed."""
_RENEWED_PER_CLAIM = 5
_POLL_SECONDS = 0.05

_CLAIM = """
INSERT INTO work_claim (name, owner_id, until) VALUES ($1, $2, $4)
ON CONFLICT (name) DO UPDATE SET owner_id = excluded.owner_id, until = excluded.until
 WHERE work_claim.until <= $3 OR work_claim.owner_id = excluded.owner_id
RETURNING true
"""
_RELEASE = "DELETE FROM work_claim WHERE name = $1 AND owner_id = $2"


@asynccontextmanager
async def claimed(pool: Pool, name: str, *, wait: timedelta | None = None) -> AsyncIterator[bool]:
    """Have some work to oneself: False when another process has it.

    With `wait` another's claim is awaited for so long. Raises TimeoutError after that.
    """
    owner_id = ids.new()
    if not await _claim(pool, name, owner_id):
        if wait is None:
            yield False
            return
        async with asyncio.timeout(wait.total_seconds()):
            while not await _claim(pool, name, owner_id):
                await asyncio.sleep(_POLL_SECONDS)
    refreshing = asyncio.create_task(_renew(pool, name, owner_id))
    try:
        yield True
    finally:
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing
        await pool.execute(_RELEASE, name, owner_id)


async def _claim(pool: Pool, name: str, owner_id: UUID) -> bool:
    now = wall_now()
    return await pool.fetchval(_CLAIM, name, owner_id, now, now + LASTS) is True


async def _renew(pool: Pool, name: str, owner_id: UUID) -> None:
    while True:
        await asyncio.sleep(LASTS.total_seconds() / _RENEWED_PER_CLAIM)
        with suppress(Exception):  # the work itself meets the error, too
            await _claim(pool, name, owner_id)
