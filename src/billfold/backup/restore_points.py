"""Restore points of a distributed bank: names by which all its nodes are restored to one moment (ADR 0165).

They are made by a function of an administrator, for which Citus wants a superuser. No name is used again: of two points
of one name, the first of each node would count, and one that was not made on every node cuts batches in two.
"""

from datetime import timedelta

from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import locked

SECONDS = 60.0
_EACH, _KEPT = timedelta(minutes=5), timedelta(days=40)
_LOCK = 0x706F696E  # "poin"
_LIMITS = "SET LOCAL lock_timeout = '2s'; SET LOCAL synchronous_commit = local"
"""Commits of other transactions wait from when the point is made until this one has ended."""
_CAN_BE_MADE = """
SELECT to_regclass('restore_point') IS NOT NULL AND to_regprocedure('create_restore_point(text)') IS NOT NULL
"""
_IS_NEW = "SELECT EXISTS (SELECT 1 FROM restore_point WHERE made_at > $1)"
_RECORD = "INSERT INTO restore_point (name, made_at) VALUES ($1, $2)"
_FORGET = "DELETE FROM restore_point WHERE made_at < $1"


async def make_restore_point(bank: Bank) -> int:
    """Make a point if the last is five minutes old; nothing on one server. Return how many."""
    async with locked(bank.pool, _LOCK) as conn:
        now = wall_now()
        if conn is None or not await conn.fetchval(_CAN_BE_MADE):
            return 0
        if await conn.fetchval(_IS_NEW, now - _EACH + timedelta(seconds=SECONDS / 2)):
            return 0
        name = f"billfold-{now:%Y%m%dT%H%M%SZ}"
        await conn.execute(_FORGET, now - _KEPT)
        async with conn.transaction():
            await conn.execute(_LIMITS)
            await conn.execute(_RECORD, name, now)
            await conn.fetchval("SELECT create_restore_point($1)", name)
    return 1
