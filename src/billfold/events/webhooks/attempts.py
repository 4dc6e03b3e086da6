"""Results of delivery attempts: recorded in batches with their consequences, and purged later."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKeys
from billfold.events.store import envelope_of, event_of, with_notes
from billfold.events.webhooks.store import Attempt, Delivery, SubscriptionQueue, policy_of
from billfold.events.webhooks.subscriptions import secret_context
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db

FAILURES_BEFORE_NOTIFICATION = 10
"""Number of consecutive failures after which the team is notified."""
RECEIVER_GONE = "The receiver answered 410: it does not want to be called any more."

_COLUMNS = (
    "event_id",
    "subscription_id",
    "attempt_id",
    "success",
    "response_code",
    "response_message",
    "called_at",
    "duration_ms",
)
# A delivery that was queued again in the meantime counts one attempt less.
_DELIVERIES = """
UPDATE delivery d
   SET state = n.state, due_at = n.due_at, attempts = d.attempts + 1
  FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[])
    AS n(subscription_id, event_id, state, due_at)
 WHERE d.subscription_id = n.subscription_id AND d.event_id = n.event_id AND d.state = 'pending'
"""
_UPDATE_QUEUES = """
UPDATE subscription_queue l
   SET failures = CASE WHEN n.reset THEN 0 ELSE l.failures END + n.failures,
       paused_until = greatest(l.paused_until, n.paused_until)
  FROM unnest($1::uuid[], $2::boolean[], $3::int[], $4::timestamptz[])
    AS n(subscription_id, reset, failures, paused_until)
 WHERE l.subscription_id = n.subscription_id
   AND (n.failures > 0 OR l.failures > 0 OR n.paused_until IS NOT NULL)
RETURNING l.subscription_id, l.failures - n.failures AS before, l.failures
"""
_DISABLE = """
UPDATE subscription SET status = 'disabled', disabled_because = $2, updated_at = $3
 WHERE subscription_id = ANY($1) AND status = 'enabled' RETURNING subscription_id, customer_id
"""
_STOP_QUEUES = "UPDATE subscription_queue SET due_at = NULL WHERE subscription_id = ANY($1)"
# The attempts of a delivery are purged together, once the last of them is old. A delivery that has been delivered or
# has failed without tries has been purged. A transaction that queues it again is not
# waited for.
_PURGE = """
WITH old AS MATERIALIZED (
  SELECT DISTINCT a.subscription_id, a.event_id
    FROM subscription s CROSS JOIN LATERAL (
         SELECT a.subscription_id, a.event_id
           FROM delivery_attempt a JOIN delivery d USING (subscription_id, event_id)
          WHERE a.subscription_id = s.subscription_id AND a.called_at < $1
            AND d.state <> 'pending'
            AND NOT EXISTS (SELECT 1 FROM delivery_attempt later
                             WHERE later.event_id = a.event_id
                               AND later.subscription_id = a.subscription_id
                               AND later.called_at >= $1)
          ORDER BY a.called_at LIMIT $2) a
   LIMIT $2
), held AS MATERIALIZED (
  SELECT d.subscription_id, d.event_id FROM delivery d JOIN old USING (subscription_id, event_id)
   WHERE d.state <> 'pending' FOR UPDATE OF d SKIP LOCKED
), marked AS (
  UPDATE delivery d SET attempts = 0 FROM held
   WHERE d.subscription_id = held.subscription_id AND d.event_id = held.event_id
)
DELETE FROM delivery_attempt a USING held
 WHERE a.event_id = held.event_id AND a.subscription_id = held.subscription_id
"""
_CUSTOMERS = """
SELECT subscription_id, customer_id FROM subscription WHERE subscription_id = ANY($1)
"""


class FailingSubscription(msgspec.Struct, frozen=True):
    """A subscription to which nothing was delivered for a while, or that ended; a customer's."""

    subscription_id: UUID
    customer_id: UUID | None
    ended: bool


OnFailing = Callable[["Connection", FailingSubscription], Awaitable[None]]
"""Called, in the transaction of the attempts, for a subscription that has begun to fail."""


async def record_attempts(conn: Connection, attempts: Sequence[Attempt], *, now: datetime) -> list[FailingSubscription]:
    """Record attempts, in the order in which they were made; return the subscriptions that have begun to fail.

    Runs in the caller's transaction.
    """
    await conn.copy_records_to_table(
        "delivery_attempt",
        columns=_COLUMNS,
        records=[
            (
                a.event_id,
                a.subscription_id,
                a.attempt_id,
                a.outcome.state == "delivered",
                a.response_code,
                a.response_message,
                a.called_at,
                a.duration_ms,
            )
            for a in attempts
        ],
    )
    await conn.execute(
        _DELIVERIES,
        [a.subscription_id for a in attempts],
        [a.event_id for a in attempts],
        [a.outcome.state for a in attempts],
        [a.outcome.due_at for a in attempts],
    )
    # Subscriptions before queues: changes of a subscription lock in the same order.
    gone = [a.subscription_id for a in attempts if a.outcome.gone]
    ended = await _disable_subscriptions(conn, gone, now) if gone else []
    return ended + await _update_queues(conn, attempts)


async def purge_attempts(conn: Db, before: datetime, *, limit: int) -> int:
    """Delete the attempts of deliveries whose last attempt is older; return how many.

    Examines up to `limit` attempts. Deliveries that wait for a retry keep theirs.
    """
    return int((await conn.execute(_PURGE, before, limit)).split()[-1])


async def _update_queues(conn: Connection, attempts: Sequence[Attempt]) -> list[FailingSubscription]:
    """Count consecutive failures per queue; return the queues that just had too many."""
    by_subscription: dict[UUID, tuple[bool, int, datetime | None]] = {}
    for a in attempts:
        reset, count, paused_until = by_subscription.get(a.subscription_id, (False, 0, None))
        if a.outcome.state == "delivered":
            reset, count = True, 0
        else:
            count += 1
        by_subscription[a.subscription_id] = reset, count, a.outcome.paused_until or paused_until
    resets, failures, pauses = map(list, zip(*by_subscription.values(), strict=True))
    rows = await conn.fetch(_UPDATE_QUEUES, list(by_subscription), resets, failures, pauses)
    failing = [r["subscription_id"] for r in rows if r["before"] < FAILURES_BEFORE_NOTIFICATION <= r["failures"]]
    found = await conn.fetch(_CUSTOMERS, failing) if failing else []
    return [FailingSubscription(row["subscription_id"], row["customer_id"], ended=False) for row in found]


async def _disable_subscriptions(
    conn: Connection, subscription_ids: list[UUID], now: datetime
) -> list[FailingSubscription]:
    rows = await conn.fetch(_DISABLE, subscription_ids, RECEIVER_GONE, now)
    await conn.execute(_STOP_QUEUES, subscription_ids)
    return [FailingSubscription(row["subscription_id"], row["customer_id"], ended=True) for row in rows]


WORKER_LOCK_CLASS = 0x63757272
"""The class of the workers' advisory locks: "curr"."""
WORKER_TIMEOUT = timedelta(seconds=30)
"""Time without a heartbeat after which a worker that still holds its lock is considered dead."""
_NUMBERS = 2**31
_encode = msgspec.json.Encoder().encode

_REGISTER = "INSERT INTO webhook_worker (worker_no, last_seen_at) VALUES ($1, $2)"
_UNREGISTER = """
WITH gone AS (DELETE FROM webhook_worker WHERE worker_no = ANY($1::int[]) RETURNING worker_no)
UPDATE subscription_queue SET worker_no = NULL WHERE worker_no IN (SELECT worker_no FROM gone)
"""
_HEARTBEAT = "UPDATE webhook_worker SET last_seen_at = $2 WHERE worker_no = $1"
# A worker whose lock can be acquired is dead; the lock is released with the statement's transaction.
_DEAD = """
SELECT worker_no FROM webhook_worker
 WHERE worker_no <> $1
   AND (last_seen_at < $2 OR pg_try_advisory_xact_lock($3, worker_no))
"""
# Failing queues have slots of their own: however many hang, the others find a slot. So do the queues of
# each subscriber: however many it has, and however slowly it answers, others find a slot.
_CLAIM = """
WITH walked AS (
  SELECT coalesce(s.customer_id, s.partner_id) AS subscriber, count(*) AS queues
    FROM subscription_queue q JOIN subscription s USING (subscription_id)
   WHERE q.worker_no = $1 AND (q.failures > 0) = $3
   GROUP BY 1
), due AS (
  SELECT q.subscription_id, q.due_at, coalesce(s.customer_id, s.partner_id) AS subscriber,
         row_number() OVER (PARTITION BY coalesce(s.customer_id, s.partner_id) ORDER BY q.due_at) AS place
    FROM subscription_queue q JOIN subscription s USING (subscription_id)
   WHERE q.worker_no IS NULL AND q.due_at <= $2 AND (q.paused_until IS NULL OR q.paused_until <= $2)
     AND (q.failures > 0) = $3
)
UPDATE subscription_queue l SET worker_no = $1
  FROM (SELECT q.subscription_id
          FROM subscription_queue q JOIN due USING (subscription_id) LEFT JOIN walked USING (subscriber)
         WHERE q.worker_no IS NULL AND due.place + coalesce(walked.queues, 0) <= $5
         ORDER BY due.due_at LIMIT $4 FOR UPDATE OF q SKIP LOCKED) free
 WHERE l.subscription_id = free.subscription_id
RETURNING l.subscription_id
"""
_QUEUE = """
SELECT s.subscription_id, s.customer_id, s.url, s.retry_policy, l.failures,
       array(SELECT p.secret_no FROM subscription_secret p
              WHERE p.subscription_id = $1 AND (p.expires_at IS NULL OR p.expires_at > $3)
              ORDER BY p.secret_no DESC) AS numbers,
       array(SELECT p.sealed FROM subscription_secret p
              WHERE p.subscription_id = $1 AND (p.expires_at IS NULL OR p.expires_at > $3)
              ORDER BY p.secret_no DESC) AS sealed
  FROM subscription s JOIN subscription_queue l USING (subscription_id)
 WHERE s.subscription_id = $1 AND s.status = 'enabled' AND l.worker_no = $2
   AND (l.paused_until IS NULL OR l.paused_until <= $3)
"""
_PAGE = """
SELECT d.event_id, d.attempts, d.sequence, d.previous_sequence, d.event_no,
       coalesce(e.customer_id, m.customer_id) AS customer_id, coalesce(e.kind, m.kind) AS kind,
       coalesce(e.payload, m.payload) AS payload, coalesce(e.raised_at, m.raised_at) AS raised_at
  FROM (SELECT * FROM delivery WHERE subscription_id = $1 AND due_at <= $2
         ORDER BY due_at, sequence LIMIT $3) d
  LEFT JOIN event e ON e.customer_id = d.customer_id AND e.event_no = d.event_no
  LEFT JOIN simulated_event m ON m.serial = d.simulated
 ORDER BY d.due_at, d.sequence
"""
_LOCK = """
SELECT true FROM subscription_queue WHERE subscription_id = $1 AND worker_no = $2 FOR UPDATE
"""
_RELEASE = """
UPDATE subscription_queue
   SET worker_no = NULL,
       due_at = (SELECT min(d.due_at) FROM delivery d JOIN subscription s USING (subscription_id)
                  WHERE d.subscription_id = $1 AND d.due_at IS NOT NULL AND s.status = 'enabled')
 WHERE subscription_id = $1
"""

_PAUSE = """
UPDATE subscription_queue SET worker_no = NULL, paused_until = greatest(paused_until, $3)
 WHERE subscription_id = $1 AND worker_no = $2
"""


async def register_worker(conn: Connection, now: datetime) -> int:
    """Become a worker for as long as this connection lasts; return its number."""
    number = secrets.randbelow(_NUMBERS)
    await conn.execute("SELECT pg_advisory_lock($1, $2)", WORKER_LOCK_CLASS, number)
    await conn.execute(_REGISTER, number, now)
    return number


async def unregister_workers(conn: Db, *numbers: int) -> None:
    """Remove workers and release their queues."""
    await conn.execute(_UNREGISTER, list(numbers))


async def record_heartbeat(conn: Db, worker_no: int, now: datetime) -> bool:
    """Send a heartbeat; False if others have declared this worker dead."""
    return str(await conn.execute(_HEARTBEAT, worker_no, now)) == "UPDATE 1"


async def release_dead_workers(conn: Db, worker_no: int, now: datetime) -> int:
    """Release the queues of dead workers; return how many workers there were."""
    rows = await conn.fetch(_DEAD, worker_no, now - WORKER_TIMEOUT, WORKER_LOCK_CLASS)
    if rows:
        await unregister_workers(conn, *(row["worker_no"] for row in rows))
    return len(rows)


async def claim_queues(
    conn: Db, worker_no: int, now: datetime, *, failing: bool, limit: int, per_subscriber: int
) -> list[UUID]:
    """Return up to `limit` queues with due deliveries, now claimed by this worker.

    Including those that it already processes, no subscriber has more than `per_subscriber`.
    """
    if limit <= 0:
        return []
    rows = await conn.fetch(_CLAIM, worker_no, now, failing, limit, per_subscriber)
    return [row["subscription_id"] for row in rows]


async def read_queue(
    conn: Db, vault: Vault, subscription_id: UUID, worker_no: int, now: datetime
) -> SubscriptionQueue | None:
    """Return the current state of a queue; None if it is not this worker's, or the subscription is disabled."""
    row = await conn.fetchrow(_QUEUE, subscription_id, worker_no, now)
    if row is None:
        return None
    return SubscriptionQueue(
        subscription_id=subscription_id,
        customer_id=row["customer_id"],
        url=row["url"],
        retry_policy=policy_of(row["retry_policy"]),
        failures=row["failures"],
        secrets=tuple(
            vault.open(sealed, secret_context(subscription_id, number)).decode()
            for number, sealed in zip(row["numbers"], row["sealed"], strict=True)
        ),
    )


async def list_due_deliveries(
    conn: Db, keys: DataKeys, queue: SubscriptionQueue, now: datetime, *, limit: int
) -> list[Delivery]:
    """Return the next due deliveries of a queue, in sending order."""
    rows = await conn.fetch(_PAGE, queue.subscription_id, now, limit)
    events = await with_notes(conn, keys, [event_of(row) for row in rows], by_customer=queue.customer_id is not None)
    return [
        Delivery(event_id=event.event_id, body=_encode(envelope_of(event, queue.customer_id)), tries=row["attempts"])
        for row, event in zip(rows, events, strict=True)
    ]


async def pause_queue(conn: Db, subscription_id: UUID, worker_no: int, until: datetime) -> None:
    """Release a queue that cannot be processed; it is not claimed until then."""
    await conn.execute(_PAUSE, subscription_id, worker_no, until)


async def release_queue(conn: Connection, subscription_id: UUID, worker_no: int) -> None:
    """Release a queue; it can be claimed when its next delivery is due."""
    async with conn.transaction():
        # Two statements: the second sees deliveries that were queued while we waited for the row.
        if await conn.fetchval(_LOCK, subscription_id, worker_no):
            await conn.execute(_RELEASE, subscription_id)
