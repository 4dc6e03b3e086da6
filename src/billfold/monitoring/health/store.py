"""What waits for the workers of a bank, and what they do now. Each figure is read from an index of what waits."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection)

COUNT_MAX = 10_000
"""More is not counted."""
_QUEUES = f"""
SELECT 'Customers with work due', (SELECT min(due_at) FROM ledger_head WHERE due_at <= $1),
       (SELECT count(*) FROM (SELECT FROM ledger_head WHERE due_at <= $1 LIMIT {COUNT_MAX}) q), $1::timestamptz
 UNION ALL
SELECT 'Scheduled jobs', (SELECT min(due_at) FROM scheduled_job WHERE due_at <= $1),
       (SELECT count(*) FROM (SELECT FROM scheduled_job WHERE due_at <= $1 LIMIT {COUNT_MAX}) q), $1
 UNION ALL
SELECT 'Webhook deliveries', (SELECT min(due_at) FROM subscription_queue WHERE due_at <= $2),
       (SELECT count(*) FROM (SELECT FROM delivery WHERE due_at IS NOT NULL LIMIT {COUNT_MAX}) q), $2
 UNION ALL
SELECT 'Files of the rails', (SELECT min(created_at) FROM rail_file WHERE done_at IS NULL),
       (SELECT count(*) FROM (SELECT FROM rail_file WHERE done_at IS NULL LIMIT {COUNT_MAX}) q), $1
"""
_CLAIMS = "SELECT name, until FROM work_claim WHERE until > $1 ORDER BY name"


class Lag(NamedTuple):
    """A queue: how much waits in it (at most COUNT_MAX is counted), and for how long the first has waited."""

    queue: str
    waiting: int
    waited: timedelta | None


async def read_lags(conn: Connection, *, now: datetime, wall: datetime) -> list[Lag]:
    """Return each queue of the bank; `now` is business time."""
    rows = await conn.fetch(_QUEUES, now, wall)
    return [
        Lag(name, count, None if since is None else max(at - since, timedelta())) for name, since, count, at in rows
    ]


async def list_claims(conn: Connection, wall: datetime) -> list[tuple[str, datetime]]:
    """Return the work that a process has claimed, and until when."""
    return [(row["name"], row["until"]) for row in await conn.fetch(_CLAIMS, wall)]
