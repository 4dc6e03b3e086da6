"""Restore points of a distributed bank: names by which all its nodes are restored to one moment (ADR 0165).

One has a name for each five minutes. It is made by a function of an administrator, for which Citus wants a superuser.
"""

from datetime import timedelta

from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

SECONDS = 60.0
_MINUTES = 5
_LIMITS = "SET LOCAL lock_timeout = '2s'; SET LOCAL synchronous_commit = local"
"""Commits of other transactions wait from when the point is made until this one has ended."""
_KEPT = timedelta(days=40)
_CAN_BE_MADE = """
SELECT to_regclass('restore_point') IS NOT NULL AND to_regprocedure('create_restore_point(text)') IS NOT NULL
"""
_EXISTS = "SELECT EXISTS (SELECT 1 FROM restore_point WHERE name = $1)"
_RECORD = "INSERT INTO restore_point (name, made_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name"
_FORGET = "DELETE FROM restore_point WHERE made_at < $1"


async def make_restore_point(bank: Bank) -> int:
    """Make the point of these five minutes unless a worker has made it; nothing on one server. Return how many."""
    async with bank.pool.acquire() as conn:
        if not await conn.fetchval(_CAN_BE_MADE):
            return 0
        now = wall_now()
        name = f"billfold-{now.replace(minute=now.minute // _MINUTES * _MINUTES):%Y%m%dT%H%MZ}"
        if await conn.fetchval(_EXISTS, name):
            return 0
        await conn.execute(_FORGET, now - _KEPT)
        async with conn.transaction():
            await conn.execute(_LIMITS)
            if not await conn.fetchval(_RECORD, name, now):
                return 0
            await conn.fetchval("SELECT create_restore_point($1)", name)
    return 1
