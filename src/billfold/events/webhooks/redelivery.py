"""Deliveries on request: redelivered events and simulated events. `now` is wall time.

A delivery that is queued again gets its full number of attempts.
"""

from datetime import datetime
from uuid import UUID

from billfold.events.schemas import Subscriber
from billfold.events.webhooks.store import OWNED_BY, EventSimulation, Subscription
from billfold.events.webhooks.subscriptions import lock_subscription
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.pool import in_transaction
from billfold.platform.errors import NotFound, Refused

REPLAYED_MAX = 100_000
"""Maximum number of missing events that one call queues, oldest first."""

_RESEND = """
UPDATE delivery SET state = 'pending', attempts = 0, due_at = $3
 WHERE subscription_id = $1 AND event_id = $2 RETURNING true
"""
_RECOVER = """
UPDATE delivery SET state = 'pending', attempts = 0, due_at = $3
 WHERE subscription_id = $1 AND state = 'failed' AND queued_at >= $2
"""
# Events of its owner since then that match its types and were never queued for it.
_REPLAY = """
WITH missing AS (
  SELECT t.customer_id, t.event_no, t.event_id, t.{level}_sequence AS sequence
    FROM event_sequence t
   WHERE t.{level}_id = $2 AND t.raised_at >= $3 AND t.{level}_sequence IS NOT NULL AND t.kind = ANY($4)
     AND NOT EXISTS (SELECT 1 FROM delivery d
                      WHERE d.subscription_id = $1 AND d.event_id = t.event_id)
   ORDER BY t.{level}_sequence LIMIT $6
)
INSERT INTO delivery (subscription_id, event_id, customer_id, event_no, sequence,
                      previous_sequence, state, due_at, queued_at)
SELECT $1, m.event_id, m.customer_id, m.event_no, m.sequence,
       coalesce((SELECT max(t.{level}_sequence) FROM event_sequence t
                  WHERE t.{level}_id = $2 AND t.{level}_sequence < m.sequence AND t.kind = ANY($4)), 0),
       'pending', $5, $5
  FROM missing m
"""
_WAKE_QUEUE = "UPDATE subscription_queue SET due_at = least(due_at, $2) WHERE subscription_id = ANY($1)"
_SIMULATE = """
INSERT INTO simulated_event (event_id, partner_id, customer_id, subscription_id, kind, payload,
                             raised_at, queued_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING serial
"""
_SAME = """
SELECT kind = $4 AND payload::text = $5 FROM simulated_event
 WHERE event_id = $1 AND partner_id = $2 AND customer_id IS NOT DISTINCT FROM $3
"""
_SUBSCRIBED = """
SELECT subscription_id FROM subscription
 WHERE {owned} AND status = 'enabled' AND deleted_at IS NULL AND $2 = ANY(events)
"""
_QUEUE_SIMULATED = """
INSERT INTO delivery (subscription_id, event_id, simulated, state, due_at, queued_at)
SELECT wanted, $2, $3, 'pending', $4, $4 FROM unnest($1::uuid[]) wanted
ON CONFLICT DO NOTHING
"""


async def resend(conn: Db, owner: Subscriber, subscription_id: UUID, event_id: UUID, *, now: datetime) -> None:
    """Deliver one event again, whatever the result of its earlier attempts.

    Raises NotFound for an event that was never for this subscription, and Refused
    `subscription-disabled`.
    """
    async with in_transaction(conn) as tx:
        await _lock_enabled(tx, owner, subscription_id)
        if not await tx.fetchval(_RESEND, subscription_id, event_id, now):
            raise NotFound("There is no such event for this subscription.")
        await tx.execute(_WAKE_QUEUE, [subscription_id], now)


async def redeliver_failed(
    conn: Db, owner: Subscriber, subscription_id: UUID, since: datetime, *, now: datetime
) -> int:
    """Deliver again the events that failed since a wall time; return how many."""
    async with in_transaction(conn) as tx:
        await _lock_enabled(tx, owner, subscription_id)
        done = _affected_rows(await tx.execute(_RECOVER, subscription_id, since, now))
        await tx.execute(_WAKE_QUEUE, [subscription_id], now)
    return done


async def replay_missing(conn: Db, owner: Subscriber, subscription_id: UUID, since: datetime, *, now: datetime) -> int:
    """Deliver events that were raised since then (`timestamp` of events) and never queued; return how many.

    These were raised before it subscribed, or while it was disabled or had other types.
    """
    async with in_transaction(conn) as tx:
        row = await _lock_enabled(tx, owner, subscription_id)
        sql = _REPLAY.format(level=owner.level)
        status = await tx.execute(sql, subscription_id, owner.key, since, list(row.events), now, REPLAYED_MAX)
        await tx.execute(_WAKE_QUEUE, [subscription_id], now)
    return _affected_rows(status)


async def simulate_event(conn: Db, owner: Subscriber, event: EventSimulation, *, now: datetime) -> int:
    """Queue a simulated event for the owner's subscriptions to its kind; return how many.

    Repeating the same event changes nothing. Raises Refused `duplicate-id` for another event with its id.
    """
    async with in_transaction(conn) as tx:
        serial = await _insert_simulated(tx, owner, event, subscription_id=None, now=now)
        if serial is None:
            return 0
        rows = await tx.fetch(_SUBSCRIBED.format(owned=OWNED_BY[owner.level]), owner.key, event.kind)
        subscription_ids = [row["subscription_id"] for row in rows]
        await _queue_event(tx, subscription_ids, event, serial=serial, now=now)
    return len(subscription_ids)


async def send_example(
    conn: Db, owner: Subscriber, subscription_id: UUID, event: EventSimulation, *, now: datetime
) -> None:
    """Queue a simulated event for one subscription, regardless of its types."""
    async with in_transaction(conn) as tx:
        await _lock_enabled(tx, owner, subscription_id)
        serial = await _insert_simulated(tx, owner, event, subscription_id=subscription_id, now=now)
        if serial is not None:
            await _queue_event(tx, [subscription_id], event, serial=serial, now=now)


async def _lock_enabled(conn: Connection, owner: Subscriber, subscription_id: UUID) -> Subscription:
    row = await lock_subscription(conn, owner, subscription_id)
    if row.status == "disabled":
        raise Refused("subscription-disabled", "The subscription is disabled.")
    return row


async def _insert_simulated(
    conn: Connection, owner: Subscriber, event: EventSimulation, subscription_id: UUID | None, now: datetime
) -> int | None:
    """Store a simulated event and return its serial; None if it exists already."""
    owner_key = owner.partner_id, owner.customer_id
    serial: int | None = await conn.fetchval(
        _SIMULATE, event.event_id, *owner_key, subscription_id, event.kind, event.payload, event.raised_at, now
    )
    if serial is None and not await conn.fetchval(_SAME, event.event_id, *owner_key, event.kind, event.payload):
        raise Refused("duplicate-id", "Another event was simulated under this id.")
    return serial


async def _queue_event(
    conn: Connection, subscription_ids: list[UUID], event: EventSimulation, serial: int, now: datetime
) -> None:
    await conn.execute(_QUEUE_SIMULATED, subscription_ids, event.event_id, serial, now)
    await conn.execute(_WAKE_QUEUE, subscription_ids, now)


def _affected_rows(status: str) -> int:
    return int(status.rsplit(" ", 1)[-1])
