"""Reads of subscriptions and of what was attempted. One statement each, by index."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.events.webhooks.types import AttemptRow, RetryPolicy, SubscriptionOwner, SubscriptionRow
from billfold.platform.errors import NotFound
from billfold.platform.paging import Position, SortKey

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

COLUMNS = """subscription_id, partner_id, customer_id, url, description, events, status,
       disabled_because, retry_policy, created_at, updated_at"""

_OWNED = "partner_id = $1 AND customer_id IS NOT DISTINCT FROM $2 AND deleted_at IS NULL"
_GET = f"SELECT {COLUMNS} FROM subscription WHERE {_OWNED} AND subscription_id = $3"
# Two lists, for an index serves the one whose owner it is told.
_LIST = f"""
SELECT {COLUMNS} FROM subscription
 WHERE {{owned}} AND deleted_at IS NULL
   AND ($2::timestamptz IS NULL OR (created_at, subscription_id) {{than}} ($2, $3::uuid))
 ORDER BY created_at {{way}}, subscription_id {{way}} LIMIT $4
"""
_OF_PARTNER = "partner_id = $1 AND customer_id IS NULL"
_OF_CUSTOMER = "customer_id = $1"

_ATTEMPT = """a.attempt_id, a.subscription_id, a.event_id, a.success, a.response_code,
       a.response_message, a.called_at, a.duration_ms"""
_OF_EVENTS = f"""
SELECT {_ATTEMPT} FROM delivery_attempt a JOIN subscription s USING (subscription_id)
 WHERE a.event_id = ANY($1) AND s.partner_id = $2 AND s.customer_id IS NOT DISTINCT FROM $3
   AND ($4::uuid IS NULL OR a.subscription_id = $4)
 ORDER BY a.called_at, a.attempt_id
"""
_ATTEMPTS = f"""
SELECT {_ATTEMPT} FROM delivery_attempt a
 WHERE subscription_id = $1 AND ($2::uuid IS NULL OR event_id = $2)
   AND ($3::timestamptz IS NULL OR (called_at, attempt_id) {{than}} ($3, $4::uuid))
 ORDER BY called_at {{way}}, attempt_id {{way}} LIMIT $5
"""
_NEWEST_FIRST = {"than": "<", "way": "DESC"}
_OLDEST_FIRST = {"than": ">", "way": "ASC"}


async def get_subscription(conn: Connection | Pool, owner: SubscriptionOwner, subscription_id: UUID) -> SubscriptionRow:
    """Return the owner's subscription. Raises NotFound."""
    row = await conn.fetchrow(_GET, owner.partner_id, owner.customer_id, subscription_id)
    if row is None:
        raise NotFound("There is no such subscription.")
    return subscription_of(row)


async def list_subscriptions(
    conn: Connection | Pool, owner: SubscriptionOwner, *, limit: int, position: Position | None = None
) -> list[SubscriptionRow]:
    """Return up to `limit` + 1 of the owner's subscriptions on from a place, newest first."""
    customers = owner.customer_id is not None
    sql = _LIST.format(owned=_OF_CUSTOMER if customers else _OF_PARTNER, **_direction(position))
    rows = await conn.fetch(sql, owner.customer_id or owner.partner_id, *_start(position), limit + 1)
    return [subscription_of(row) for row in rows]


async def list_attempts_of_events(
    conn: Connection | Pool, owner: SubscriptionOwner, event_ids: Iterable[UUID], subscription_id: UUID | None = None
) -> dict[UUID, list[AttemptRow]]:
    """Return what was attempted for the owner's subscriptions, or one of them, oldest first.

    Attempts for a subscription that was deleted are among them.
    """
    wanted = list(event_ids)
    found: dict[UUID, list[AttemptRow]] = {event_id: [] for event_id in wanted}
    for row in await conn.fetch(_OF_EVENTS, wanted, owner.partner_id, owner.customer_id, subscription_id):
        found[row["event_id"]].append(AttemptRow(**row))
    return found


async def list_attempts(
    conn: Connection | Pool,
    owner: SubscriptionOwner,
    subscription_id: UUID,
    *,
    limit: int,
    event_id: UUID | None = None,
    position: Position | None = None,
) -> list[AttemptRow]:
    """Return up to `limit` + 1 attempts for one subscription, newest first. Raises NotFound."""
    await get_subscription(conn, owner, subscription_id)
    sql = _ATTEMPTS.format(**_direction(position))
    rows = await conn.fetch(sql, subscription_id, event_id, *_start(position), limit + 1)
    return [AttemptRow(**row) for row in rows]


def sort_key_of(row: SubscriptionRow | AttemptRow) -> SortKey:
    """Return where a row stands in its list."""
    if isinstance(row, AttemptRow):
        return row.called_at.isoformat(), str(row.attempt_id)
    return row.created_at.isoformat(), str(row.subscription_id)


def subscription_of(row: Any) -> SubscriptionRow:  # noqa: ANN401 - a record of asyncpg
    """Return a subscription of the columns `RETURNED`."""
    return SubscriptionRow(**{**row, "events": tuple(row["events"]), "retry_policy": policy_of(row["retry_policy"])})


def policy_of(stored: str | None) -> RetryPolicy | None:
    """Return a retry policy as stored."""
    return None if stored is None else msgspec.json.decode(stored, type=RetryPolicy)


def _direction(position: Position | None) -> dict[str, str]:
    backwards = position is not None and position.direction == "prev"
    return _OLDEST_FIRST if backwards else _NEWEST_FIRST


def _start(position: Position | None) -> tuple[datetime | None, UUID | None]:
    if position is None:
        return None, None
    at, row_id = position.place
    return datetime.fromisoformat(str(at)), UUID(str(row_id))
