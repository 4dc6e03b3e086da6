"""Reads of subscriptions and delivery attempts. One statement each, by index."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.events.schemas import DeliveryAttempt, Subscriber
from billfold.platform.database.connection import Db
from billfold.platform.database.paging import KeysetList
from billfold.platform.errors import NotFound


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The retry policy of failed attempts. `maximum_attempts` counts the first one.

    An empty list of status codes means every answer but a 2xx, and no answer at all; 0 stands for no answer.
    """

    retry_on_status_codes: list[int]
    backoff_coefficient: float
    maximum_attempts: int
    initial_interval_seconds: float
    maximum_interval_seconds: float


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver and the event types sent to it. The shared secret is never shown."""

    id: UUID
    url: str
    description: str
    events: list[str]
    status: Literal["enabled", "disabled"]
    disabled_because: str | None
    retry_policy: RetryPolicy | None
    time_created: datetime
    updated_at: datetime
    object_type: Literal["Subscription"] = "Subscription"


class EventSimulation(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated event: delivered like any other, but not in the log. `payload` is JSON text."""

    event_id: UUID
    kind: str
    raised_at: datetime
    payload: str


class SubscriptionQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription as its worker sees it, with the valid secrets, the newest first."""

    subscription_id: UUID
    customer_id: UUID | None
    url: str
    retry_policy: RetryPolicy | None
    failures: int
    secrets: tuple[str, ...]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One event that is due now: its body, and the number of tries."""

    event_id: UUID
    body: bytes
    tries: int


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt and its consequences."""

    attempt_id: UUID
    subscription_id: UUID
    event_id: UUID
    response_code: int
    response_message: str
    called_at: datetime
    duration_ms: int
    outcome: DeliveryOutcome


class DeliveryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The consequence of an answer: the new state of the delivery, and when it and its queue continue.

    `due_at` is the next attempt of a pending delivery. `gone` is true if the receiver answered 410.
    """

    state: Literal["pending", "delivered", "failed"]
    due_at: datetime | None = None
    paused_until: datetime | None = None
    gone: bool = False


COLUMNS = """subscription_id AS id, url, description, events, status, disabled_because, retry_policy,
       created_at AS time_created, updated_at"""

_OWNED = "partner_id = $1 AND customer_id IS NOT DISTINCT FROM $2 AND deleted_at IS NULL"
_GET = f"SELECT {COLUMNS} FROM subscription WHERE {_OWNED} AND subscription_id = $3"
OWNED_BY = {"partner": "partner_id = $1 AND customer_id IS NULL", "customer": "customer_id = $1"}
"""The condition that selects a subscriber's subscriptions, by its level; $1 is its key."""

_ATTEMPT = """a.attempt_id AS delivery_attempt_id, a.subscription_id, a.event_id, a.success, a.response_code,
       a.response_message, a.called_at, a.duration_ms"""
_OF_EVENTS = f"""
SELECT {_ATTEMPT} FROM delivery_attempt a JOIN subscription s USING (subscription_id)
 WHERE a.event_id = ANY($1) AND s.partner_id = $2 AND s.customer_id IS NOT DISTINCT FROM $3
   AND ($4::uuid IS NULL OR a.subscription_id = $4)
 ORDER BY a.called_at, a.attempt_id
"""
_ATTEMPTS = f"""
SELECT * FROM (SELECT {_ATTEMPT} FROM delivery_attempt a WHERE subscription_id = $1) a
 WHERE ($2::uuid IS NULL OR event_id = $2) AND {{page}}
"""


def policy_of(stored: str | None) -> RetryPolicy | None:
    """Return the retry policy of stored JSON."""
    return None if stored is None else msgspec.json.decode(stored, type=RetryPolicy)


def subscription_of(row: Any) -> Subscription:  # noqa: ANN401 - a record of asyncpg
    """Return the subscription of a row of `COLUMNS`."""
    return Subscription(**{**row, "retry_policy": policy_of(row["retry_policy"])})


def _attempt(row: Any) -> DeliveryAttempt:  # noqa: ANN401 - a record of asyncpg
    return DeliveryAttempt(**row)


SUBSCRIPTIONS = {
    level: KeysetList(
        f"SELECT * FROM (SELECT {COLUMNS} FROM subscription WHERE {owned} AND deleted_at IS NULL) s WHERE {{page}}",
        subscription_of,
        time_created="timestamptz",
        id="uuid",
    )
    for level, owned in OWNED_BY.items()
}
"""The subscriptions of a subscriber ($1 is its key), by its level, so that an index serves each."""
ATTEMPTS = KeysetList(_ATTEMPTS, _attempt, called_at="timestamptz", delivery_attempt_id="uuid")
"""The attempts of a subscription ($1), or those for one event ($2)."""


async def get_subscription(conn: Db, owner: Subscriber, subscription_id: UUID) -> Subscription:
    """Return the owner's subscription. Raises NotFound."""
    row = await conn.fetchrow(_GET, owner.partner_id, owner.customer_id, subscription_id)
    if row is None:
        raise NotFound("There is no such subscription.")
    return subscription_of(row)


async def list_attempts_of_events(
    conn: Db, owner: Subscriber, event_ids: Iterable[UUID], subscription_id: UUID | None = None
) -> dict[UUID, list[DeliveryAttempt]]:
    """Return the attempts for the owner's subscriptions, or for one of them, oldest first.

    Attempts for deleted subscriptions are included.
    """
    wanted = list(event_ids)
    found: dict[UUID, list[DeliveryAttempt]] = {event_id: [] for event_id in wanted}
    for row in await conn.fetch(_OF_EVENTS, wanted, owner.partner_id, owner.customer_id, subscription_id):
        found[row["event_id"]].append(DeliveryAttempt(**row))
    return found


_SUMMARY = """
SELECT s.id,
       (SELECT count(*) FROM (SELECT 1 FROM delivery d WHERE d.subscription_id = s.id AND d.due_at IS NOT NULL
                               LIMIT $3) p) AS waiting,
       (SELECT count(*) FROM (SELECT 1 FROM delivery d WHERE d.subscription_id = s.id AND d.state = 'failed'
                               AND d.queued_at > $2 LIMIT $3) f) AS failed,
       (SELECT ARRAY[count(*), count(*) FILTER (WHERE r.success), avg(r.duration_ms)::bigint]
          FROM (SELECT a.success, a.duration_ms FROM delivery_attempt a
                 WHERE a.subscription_id = s.id AND a.called_at > $2 ORDER BY a.called_at DESC LIMIT $3) r) AS attempts
  FROM unnest($1::uuid[]) AS s(id)
"""


class DeliverySummary(NamedTuple):
    """Deliveries of a subscription: those that wait, and the failed ones and the attempts since a time."""

    waiting: int
    failed: int
    attempts: int
    succeeded: int
    average_ms: int | None


SUMMARY_MAX = 1_000
"""The most deliveries and attempts of a subscription that are counted."""


async def summarize_deliveries(
    conn: Db, subscription_ids: Iterable[UUID], since: datetime
) -> dict[UUID, DeliverySummary]:
    """Return the state of deliveries by subscription; counts end at `SUMMARY_MAX`."""
    rows = await conn.fetch(_SUMMARY, list(subscription_ids), since, SUMMARY_MAX)
    return {key: DeliverySummary(waiting, failed, *attempts) for key, waiting, failed, attempts in rows}
