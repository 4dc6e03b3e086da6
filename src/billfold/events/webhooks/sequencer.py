"""The sequencer: gives every event its place for its partner and its customer, and its deliveries.

One at a time in the whole bank: whoever holds the reader's row. One statement does it all, so an
event has its sequences and its deliveries together or not at all.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from billfold.events import feed
from billfold.events.kinds import CUSTOMER_KINDS, PARTNER_KINDS
from billfold.platform.database.pool import in_transaction

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_TELL = f"""
WITH moved AS ({feed.ADVANCE_READER}), news AS MATERIALIZED ({feed.NEW_EVENTS}),
placed AS MATERIALIZED (
  SELECT n.customer_id, n.event_no, n.event_id, n.kind, n.raised_at, n.xid,
         (SELECT c.partner_id FROM customer c WHERE c.customer_id = n.customer_id) AS partner_id,
         n.kind = ANY($3) AS for_partner, n.kind = ANY($4) AS for_customer,
         max(n.raised_at) OVER (PARTITION BY n.customer_id ORDER BY n.event_no) AS turn
    FROM news n
), partners AS MATERIALIZED (
  SELECT partner_id, coalesce((SELECT max(t.partner_sequence) FROM told t
                                WHERE t.partner_id = p.partner_id), 0) AS last
    FROM (SELECT DISTINCT partner_id FROM placed WHERE partner_id IS NOT NULL) p
), customers AS MATERIALIZED (
  SELECT customer_id, coalesce((SELECT max(t.customer_sequence) FROM told t
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
  INSERT INTO told (customer_id, event_no, event_id, partner_id, kind, raised_at,
                    partner_sequence, customer_sequence)
  SELECT customer_id, event_no, event_id, partner_id, kind, raised_at,
         partner_sequence, customer_sequence
    FROM numbered ORDER BY partner_id, partner_sequence
), due AS MATERIALIZED (
  SELECT s.subscription_id, n.customer_id, n.event_no, n.event_id, n.partner_sequence AS sequence,
         n.xid >= s.since AS wanted
    FROM numbered n JOIN subscription s ON s.partner_id = n.partner_id AND s.customer_id IS NULL
   WHERE s.status = 'enabled' AND n.for_partner AND n.kind = ANY(s.events)
   UNION ALL
  SELECT s.subscription_id, n.customer_id, n.event_no, n.event_id, n.customer_sequence,
         n.xid >= s.since
    FROM numbered n JOIN subscription s ON s.customer_id = n.customer_id
   WHERE s.status = 'enabled' AND n.for_customer AND n.kind = ANY(s.events)
), linked AS MATERIALIZED (
  SELECT d.*, greatest(l.told_at, $5) AS at,
         coalesce(lag(d.sequence) OVER (PARTITION BY d.subscription_id ORDER BY d.sequence),
                  l.sequence) AS previous_sequence
    FROM due d JOIN subscription_lane l USING (subscription_id)
), queued AS (
  INSERT INTO delivery (subscription_id, event_id, customer_id, event_no, sequence,
                        previous_sequence, state, due_at, told_at)
  SELECT subscription_id, event_id, customer_id, event_no, sequence, previous_sequence,
         'pending', at, at
    FROM linked WHERE wanted ORDER BY subscription_id, sequence
  ON CONFLICT DO NOTHING
), called AS (
  UPDATE subscription_lane l
     SET sequence = n.sequence, told_at = n.at,
         due_at = CASE WHEN n.wanted THEN least(l.due_at, n.at) ELSE l.due_at END
    FROM (SELECT subscription_id, max(sequence) AS sequence, max(at) AS at,
                 bool_or(wanted) AS wanted
            FROM linked GROUP BY subscription_id) n
   WHERE l.subscription_id = n.subscription_id
)
SELECT count(*) FROM news
"""


async def sequence_events(conn: Connection | Pool, *, now: datetime, wait: bool = True) -> int:
    """Give what was committed its sequences and deliveries; return how many events that was.

    Safe from anywhere at any time. Without `wait` it leaves the work to whoever is at it.
    """
    if not await feed.has_new_events(conn, feed.SEQUENCER):
        return 0
    async with in_transaction(conn) as tx:
        position = await feed.lock_reader(tx, feed.SEQUENCER, wait=wait)
        if position is None:
            return 0
        return int(
            await tx.fetchval(
                _TELL,
                position,
                feed.SEQUENCER,
                PARTNER_KINDS,
                CUSTOMER_KINDS,
                now,
                timeout=feed.STATEMENT_TIMEOUT_SECONDS,
            )
        )
