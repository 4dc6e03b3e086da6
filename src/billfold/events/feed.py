"""The log read as it grows: whoever reads keeps a snapshot, and what it does not show is news.

A transaction is numbered when it begins to write and seen when it commits, so no number and no
time parts what was read from what was not. Two snapshots do: what this one shows and the one
before did not was committed between them, whatever the order. Of one customer that is always the
next of his events, for his commits follow each other.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

SEQUENCER = "sequencer"
"""The reader that gives events their sequences."""
STATEMENT_TIMEOUT_SECONDS = 3_600.0
"""How long one statement may take: after a time without a worker there is much to read."""

# Written so that each half is a walk of the index, whatever the planner believes of its size.
NEW_EVENTS = """
SELECT customer_id, event_no, event_id, kind, payload, raised_at, xid
  FROM event WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot)
UNION ALL
SELECT customer_id, event_no, event_id, kind, payload, raised_at, xid
  FROM event WHERE xid = ANY(ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot)))
"""
"""What is new to a reader at position $1; a statement with it moves the reader on as well."""
ADVANCE_READER = "UPDATE event_reader SET position = pg_current_snapshot() WHERE name = $2"

_OPEN = "INSERT INTO event_reader VALUES ($1, pg_current_snapshot()) ON CONFLICT DO NOTHING"
_HAS_NEW = """
SELECT coalesce((SELECT xid FROM event ORDER BY xid DESC LIMIT 1) >= pg_snapshot_xmax(position),
                false)
    OR EXISTS (SELECT 1 FROM event WHERE xid = ANY(ARRAY(SELECT pg_snapshot_xip(position))))
  FROM event_reader WHERE name = $1
"""
_POSITION = "SELECT position::text FROM event_reader WHERE name = $1 FOR UPDATE"
# Statistics lag behind the end of the log, and a plan for any position would read all of it.
_PLANNER_SETTINGS = "SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_custom_plan"
_READ_NEW = f"""
WITH moved AS ({ADVANCE_READER}), news AS MATERIALIZED ({NEW_EVENTS})
SELECT n.customer_id, n.event_no, n.event_id, n.kind, n.payload, n.raised_at,
       (SELECT c.partner_id FROM customer c WHERE c.customer_id = n.customer_id) AS partner_id
  FROM news n
 ORDER BY max(n.raised_at) OVER (PARTITION BY n.customer_id ORDER BY n.event_no),
          n.customer_id, n.event_no
"""
# A dump takes the numbers of transactions along to a server that may count from one again.
_IS_RESTORED = """
SELECT coalesce(bool_or(pg_snapshot_xmax(position) > pg_snapshot_xmax(pg_current_snapshot())),
                false)
  FROM event_reader
"""
_RENUMBER_EVENTS = """
UPDATE event SET xid = CASE WHEN pg_visible_in_snapshot(xid, position) THEN xid8 '3'
                            ELSE pg_current_xact_id() END
  FROM event_reader WHERE name = $1
"""
_RESET_POSITIONS = """
UPDATE event_reader SET position = '4:4:';
UPDATE subscription SET since = '3';
"""


class EventRow(msgspec.Struct, frozen=True):
    """An event of the log; `payload` is JSON text. The house's own have no partner."""

    customer_id: UUID
    event_no: int
    event_id: UUID
    kind: str
    payload: str
    raised_at: datetime
    partner_id: UUID | None


async def create_reader(conn: Connection | Pool, name: str) -> None:
    """Let a reader begin with what is raised from now on; one that is known goes on."""
    await conn.execute(_OPEN, name)


async def repair_positions(conn: Connection) -> bool:
    """Find the place of every reader again in a database that came from a dump; tell if it did.

    To be called before anything is raised on the new server. Whoever reads beside the sequencer
    goes on where that one was.
    """
    if not await conn.fetchval(_IS_RESTORED):
        return False
    async with conn.transaction():
        await conn.execute("SELECT 1 FROM event_reader FOR UPDATE")
        if not await conn.fetchval(_IS_RESTORED):
            return False
        await conn.execute(_RENUMBER_EVENTS, SEQUENCER, timeout=STATEMENT_TIMEOUT_SECONDS)
        await conn.execute(_RESET_POSITIONS)
    return True


async def has_new_events(conn: Connection | Pool, name: str) -> bool:
    """Tell whether there may be something new to a reader."""
    return bool(await conn.fetchval(_HAS_NEW, name))


async def lock_reader(conn: Connection, name: str, *, wait: bool) -> str | None:
    """Hold a reader until the transaction ends and return its position.

    None when another transaction holds it and we do not `wait`, or there is no such reader.
    """
    position = await conn.fetchval(_POSITION if wait else f"{_POSITION} SKIP LOCKED", name)
    if position is not None:
        await conn.execute(_PLANNER_SETTINGS)
    return None if position is None else str(position)


async def read_new_events(conn: Connection, name: str, *, wait: bool = False) -> list[EventRow] | None:
    """Return what is new to a reader, in order; it is read when this transaction commits.

    None when another transaction reads right now and we do not `wait`.
    """
    position = await lock_reader(conn, name, wait=wait)
    if position is None:
        return None
    return [EventRow(*row) for row in await conn.fetch(_READ_NEW, position, name)]
