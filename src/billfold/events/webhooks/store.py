"""Reads of subscriptions and delivery attempts. One statement each, by index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.events.types import Subscriber
from billfold.events.webhooks.types import (RetryPolicy, Subscription)
from billfold.events.types import (DeliveryAttempt)
from billfold.platform.database.keyset import KeysetList
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

COLUMNS = """subscription_id AS id, url, description, events, status, disabled_because, retry_policy,
       created_at AS time_created, updated_at"""

_OWNED = "partner_id = $1 AND customer_id IS NOT DISTINCT FROM $2 AND deleted_at IS NULL"
_GET = f"SELECT {COLUMNS} FROM subscription WHERE {_OWNED} AND subscription_id = $3"
OWNED_BY = {"partner": "partner_id = $1 AND customer_id IS NULL", "customer": "customer_id = $1"}
"""Which subscriptions are a subscriber's, by its level; $1 is its key."""

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


async def get_subscription(conn: Connection | Pool, owner: Subscriber, subscription_id: UUID) -> Subscription:
    """Return the owner's subscription. Raises NotFound."""
    row = await conn.fetchrow(_GET, owner.partner_id, owner.customer_id, subscription_id)
    if row is None:
        raise NotFound("There is no such subscription.")
    return subscription_of(row)


async def list_attempts_of_events(
    conn: Connection | Pool, owner: Subscriber, event_ids: Iterable[UUID], subscription_id: UUID | None = None
) -> dict[UUID, list[DeliveryAttempt]]:
    """Return the attempts for the owner's subscriptions, or for one of them, oldest first.

    Attempts for deleted subscriptions are included.
    """
    wanted = list(event_ids)
    found: dict[UUID, list[DeliveryAttempt]] = {event_id: [] for event_id in wanted}
    for row in await conn.fetch(_OF_EVENTS, wanted, owner.partner_id, owner.customer_id, subscription_id):
        found[row["event_id"]].append(DeliveryAttempt(**row))
    return found
