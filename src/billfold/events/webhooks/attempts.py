"""What resulted from attempts: written down many at once, with what follows, and later forgotten."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from billfold.events.webhooks.types import Attempt
from billfold.platform.database.connection import Connection, Pool

FAILURES_BEFORE_NOTIFICATION = 10
"""After how many failures in a row the team is notified."""
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
# A delivery's attempts go as a whole, once the last of them is old. That it has been delivered or
# has failed without a try says that they are gone. Whoever puts it into the queue again is not
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
    """A subscription to which nothing has arrived for a while, or that ended; of a customer's."""

    subscription_id: UUID
    customer_id: UUID | None
    ended: bool


OnFailing = Callable[["Connection", FailingSubscription], Awaitable[None]]
"""Called, in the transaction of the attempts, for a subscription that has begun to fail."""


async def record_attempts(conn: Connection, attempts: Sequence[Attempt], *, now: datetime) -> list[FailingSubscription]:
    """Write down attempts, in the order in which they were made; return who has begun to fail.

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
    # Subscriptions before queues: changes of a subscription lock in this order too.
    gone = [a.subscription_id for a in attempts if a.outcome.gone]
    ended = await _disable(conn, gone, now) if gone else []
    return ended + await _update_queues(conn, attempts)


async def purge_attempts(conn: Connection | Pool, before: datetime, *, limit: int) -> int:
    """Delete what was attempted for deliveries whose last attempt is older; return how many.

    Looks at up to `limit` attempts. Deliveries that wait to be tried again keep theirs.
    """
    return int((await conn.execute(_PURGE, before, limit)).split()[-1])


async def _update_queues(conn: Connection, attempts: Sequence[Attempt]) -> list[FailingSubscription]:
    """Count failures in a row per queue; return the queues that just had too many."""
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


async def _disable(conn: Connection, subscription_ids: list[UUID], now: datetime) -> list[FailingSubscription]:
    rows = await conn.fetch(_DISABLE, subscription_ids, RECEIVER_GONE, now)
    await conn.execute(_STOP_QUEUES, subscription_ids)
    return [FailingSubscription(row["subscription_id"], row["customer_id"], ended=True) for row in rows]
