"""Assigns every committed event its sequences, for its partner and its customer, and its deliveries.

Only one transaction at a time does so in the whole bank: the one that holds the row of `event_reader`. One
statement does it all, so an event has its sequences and its deliveries together or not at all.

A transaction gets its id when it begins to write and becomes visible when it commits, so neither ids nor
times separate events that were read from events that were not. Two snapshots do: an event visible in this one and not
in the one before was committed between them. For one customer that is always its next event, because its commits
follow each other.
"""

from datetime import datetime

from billfold.events.kinds import CUSTOMER_KINDS, PARTNER_KINDS
from billfold.events.schemas import OBJECT_FIELDS
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.pool import in_transaction

SEQUENCER = "sequencer"
"""The row of `event_reader`."""
STATEMENT_TIMEOUT_SECONDS = 3_600.0
"""Timeout of one statement: after a time without a worker there is much to read."""

# Written so that each half is an index scan, whatever the planner's estimate of its size. A cluster reads the parts of
# one statement by several snapshots: what is committed after the one given is left to the next time.
_NEW_EVENTS = """
SELECT customer_id, event_no, event_id, kind, payload, raised_at, xid
  FROM event WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot) AND pg_visible_in_snapshot(xid, $8::text::pg_snapshot)
UNION ALL
SELECT customer_id, event_no, event_id, kind, payload, raised_at, xid
  FROM event WHERE xid = ANY(ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot)))
               AND pg_visible_in_snapshot(xid, $8::text::pg_snapshot)
"""
_ADVANCE = "UPDATE event_reader SET position = $8::text::pg_snapshot WHERE name = $2"
_HAS_NEW = """
SELECT coalesce((SELECT xid FROM event ORDER BY xid DESC LIMIT 1) >= pg_snapshot_xmax(position),
                false)
    OR EXISTS (SELECT 1 FROM event WHERE xid = ANY(ARRAY(SELECT pg_snapshot_xip(position))))
  FROM event_reader WHERE name = $1
"""
_POSITION = "SELECT position::text FROM event_reader WHERE name = $1 FOR UPDATE"
# Statistics lag behind the end of the log, and a plan for any position would read all of it.
_SNAPSHOT = """
SELECT pg_current_snapshot()::text,
       set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true)
"""
# A dump contains transaction ids of a server that had counted higher than the new one.
_IS_RESTORED = """
SELECT coalesce(bool_or(pg_snapshot_xmax(position) > pg_snapshot_xmax(pg_current_snapshot())),
                false)
  FROM event_reader
"""
_RESET_POSITIONS = """
UPDATE event_reader SET position = '4:4:';
UPDATE subscription SET enabled_since_xid = '3';
"""
_SEQUENCE = f"""
WITH moved AS ({_ADVANCE}), news AS MATERIALIZED ({_NEW_EVENTS}),
owners AS MATERIALIZED (
  SELECT customer_id, partner_id FROM customer WHERE customer_id = ANY(ARRAY(SELECT customer_id FROM news))
),
placed AS MATERIALIZED (
  SELECT n.customer_id, n.event_no, n.event_id, n.kind, n.raised_at, n.xid,
         c.partner_id, n.kind = ANY($3) AS for_partner, n.kind = ANY($4) AS for_customer,
         max(n.raised_at) OVER (PARTITION BY n.customer_id ORDER BY n.event_no) AS turn,
         (n.payload ->> ($7::text[])[array_position($6::text[], n.kind)])::uuid AS object_id
    FROM news n LEFT JOIN owners c USING (customer_id)
), partners AS MATERIALIZED (
  SELECT partner_id, coalesce((SELECT max(t.partner_sequence) FROM event_sequence t
                                WHERE t.partner_id = p.partner_id), 0) AS last
    FROM (SELECT DISTINCT partner_id FROM placed WHERE partner_id IS NOT NULL) p
), customers AS MATERIALIZED (
  SELECT customer_id, coalesce((SELECT max(t.customer_sequence) FROM event_sequence t
                                 WHERE t.customer_id = c.customer_id), 0) AS last
    FROM (SELECT DISTINCT customer_id FROM placed) c
), numbered AS MATERIALIZED (
  SELECT p.*,
         CASE WHEN for_partner THEN partners.last + row_number() OVER (
           PARTITION BY p.partner_id, for_partner ORDER BY turn, p.customer_id, event_no) END
           AS partner_sequence,
         CASE WHEN for_customer THEN customers.last + row_number() OVER (
           PARTITION BY p.customer_id, for_customer ORDER BY event_no) END AS customer_sequence
    FROM placed p JOIN partners USING (partner_id) JOIN customers USING (customer_id)
), written AS (
  INSERT INTO event_sequence (customer_id, event_no, event_id, partner_id, kind, raised_at, object_id,
                    partner_sequence, customer_sequence)
  SELECT customer_id, event_no, event_id, partner_id, kind, raised_at, object_id,
         partner_sequence, customer_sequence
    FROM numbered ORDER BY partner_id, partner_sequence
), due AS MATERIALIZED (
  SELECT s.subscription_id, n.customer_id, n.event_no, n.event_id, n.partner_sequence AS sequence,
         n.xid >= s.enabled_since_xid AS wanted
    FROM numbered n JOIN subscription s ON s.partner_id = n.partner_id AND s.customer_id IS NULL
   WHERE s.status = 'enabled' AND n.for_partner AND n.kind = ANY(s.events)
   UNION ALL
  SELECT s.subscription_id, n.customer_id, n.event_no, n.event_id, n.customer_sequence,
         n.xid >= s.enabled_since_xid
    FROM numbered n JOIN subscription s ON s.customer_id = n.customer_id
   WHERE s.status = 'enabled' AND n.for_customer AND n.kind = ANY(s.events)
), linked AS MATERIALIZED (
  SELECT d.*, greatest(l.queued_at, $5) AS at,
         coalesce(lag(d.sequence) OVER (PARTITION BY d.subscription_id ORDER BY d.sequence),
                  l.sequence) AS previous_sequence
    FROM due d JOIN subscription_queue l USING (subscription_id)
), queued AS (
  INSERT INTO delivery (subscription_id, event_id, customer_id, event_no, sequence,
                        previous_sequence, state, due_at, queued_at)
  SELECT subscription_id, event_id, customer_id, event_no, sequence, previous_sequence,
         'pending', at, at
    FROM linked WHERE wanted ORDER BY subscription_id, sequence
  ON CONFLICT DO NOTHING
), called AS (
  UPDATE subscription_queue l
     SET sequence = n.sequence, queued_at = n.at,
         due_at = CASE WHEN n.wanted THEN least(l.due_at, n.at) ELSE l.due_at END
    FROM (SELECT subscription_id, max(sequence) AS sequence, max(at) AS at,
                 bool_or(wanted) AS wanted
            FROM linked GROUP BY subscription_id) n
   WHERE l.subscription_id = n.subscription_id
)
SELECT count(*) FROM news
"""


async def sequence_events(conn: Connection | Pool, *, now: datetime, wait: bool = True) -> int:
    """Give committed events their sequences and deliveries; return how many events.

    Safe from anywhere at any time. Without `wait` it returns 0 while another transaction does it.
    """
    if not await has_new_events(conn):
        return 0
    async with in_transaction(conn) as tx:
        position = await tx.fetchval(_POSITION if wait else f"{_POSITION} SKIP LOCKED", SEQUENCER)
        if position is None:
            return 0
        snapshot = await tx.fetchval(_SNAPSHOT)
        objects = list(OBJECT_FIELDS), list(OBJECT_FIELDS.values())
        parameters = (position, SEQUENCER, PARTNER_KINDS, CUSTOMER_KINDS, now, *objects, snapshot)
        return int(await tx.fetchval(_SEQUENCE, *parameters, timeout=STATEMENT_TIMEOUT_SECONDS))


async def has_new_events(conn: Connection | Pool) -> bool:
    """Return whether there may be events without a sequence."""
    return bool(await conn.fetchval(_HAS_NEW, SEQUENCER))


async def repair_positions(conn: Connection) -> bool:
    """Repair the position of every reader in a restored database; return whether it was restored.

    To be called before any event is raised on the new server.
    """
    if not await conn.fetchval(_IS_RESTORED):
        return False
    async with conn.transaction():
        await conn.execute("SELECT 1 FROM event_reader FOR UPDATE")
        if not await conn.fetchval(_IS_RESTORED):
            return False
        await conn.execute("SELECT event_renumber($1)", SEQUENCER, timeout=STATEMENT_TIMEOUT_SECONDS)
        await conn.execute(_RESET_POSITIONS)
    return True
