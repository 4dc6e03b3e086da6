"""Lanes: which courier walks which subscription, and what is to be delivered on it.

A lane has one courier at a time, so its events go out in order whoever works. A courier holds an
advisory lock of its number on a connection of its own: when its process ends, however that
happens, the lock is free, and so are its lanes. `now` is wall time.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.events.envelope import encode_envelope
from billfold.events.webhooks.store import policy_of
from billfold.events.webhooks.subscriptions import place_of_secret
from billfold.events.webhooks.types import Delivery, Lane
from billfold.platform.crypto import Vault

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

LOCKS = 0x63757272
"""The class of the couriers' advisory locks: "curr"."""
SILENCE = timedelta(seconds=30)
"""After how long without a sign a courier that still holds its lock is given up."""
_NUMBERS = 2**31

_SIGN_ON = "INSERT INTO courier (courier_no, seen_at) VALUES ($1, $2)"
_SIGNS_OFF = """
WITH gone AS (DELETE FROM courier WHERE courier_no = ANY($1::int[]) RETURNING courier_no)
UPDATE subscription_lane SET courier_no = NULL WHERE courier_no IN (SELECT courier_no FROM gone)
"""
_SEEN = "UPDATE courier SET seen_at = $2 WHERE courier_no = $1"
# Whose lock can be had is dead; the lock is let go with the statement's transaction.
_DEAD = """
SELECT courier_no FROM courier
 WHERE courier_no <> $1
   AND (seen_at < $2 OR pg_try_advisory_xact_lock($3, courier_no))
"""
# Lanes that fail have places of their own: however many hang, the others find room.
_CLAIM = """
UPDATE subscription_lane l SET courier_no = $1
  FROM (SELECT subscription_id FROM subscription_lane
         WHERE courier_no IS NULL AND due_at <= $2 AND (rests_until IS NULL OR rests_until <= $2)
           AND (failures > 0) = $3
         ORDER BY due_at LIMIT $4 FOR UPDATE SKIP LOCKED) free
 WHERE l.subscription_id = free.subscription_id
RETURNING l.subscription_id
"""
_LANE = """
SELECT s.subscription_id, s.customer_id, s.url, s.retry_policy, l.failures,
       array(SELECT p.secret_no FROM subscription_secret p
              WHERE p.subscription_id = $1 AND (p.expires_at IS NULL OR p.expires_at > $3)
              ORDER BY p.secret_no DESC) AS numbers,
       array(SELECT p.sealed FROM subscription_secret p
              WHERE p.subscription_id = $1 AND (p.expires_at IS NULL OR p.expires_at > $3)
              ORDER BY p.secret_no DESC) AS sealed
  FROM subscription s JOIN subscription_lane l USING (subscription_id)
 WHERE s.subscription_id = $1 AND s.status = 'enabled' AND l.courier_no = $2
   AND (l.rests_until IS NULL OR l.rests_until <= $3)
"""
_PAGE = """
SELECT d.event_id, d.tries, d.sequence, d.previous_sequence, d.event_no,
       coalesce(e.customer_id, m.customer_id) AS customer_id, coalesce(e.kind, m.kind) AS kind,
       coalesce(e.payload, m.payload) AS payload, coalesce(e.raised_at, m.raised_at) AS raised_at
  FROM (SELECT * FROM delivery WHERE subscription_id = $1 AND due_at <= $2
         ORDER BY due_at, sequence LIMIT $3) d
  LEFT JOIN event e ON e.customer_id = d.customer_id AND e.event_no = d.event_no
  LEFT JOIN simulated_event m ON m.serial = d.simulated
 ORDER BY d.due_at, d.sequence
"""
_HELD = """
SELECT true FROM subscription_lane WHERE subscription_id = $1 AND courier_no = $2 FOR UPDATE
"""
_LEAVE = """
UPDATE subscription_lane
   SET courier_no = NULL,
       due_at = (SELECT min(d.due_at) FROM delivery d JOIN subscription s USING (subscription_id)
                  WHERE d.subscription_id = $1 AND d.due_at IS NOT NULL AND s.status = 'enabled')
 WHERE subscription_id = $1
"""


async def sign_on(conn: Connection, now: datetime) -> int:
    """Become a courier for as long as this connection lasts; return its number."""
    number = secrets.randbelow(_NUMBERS)
    await conn.execute("SELECT pg_advisory_lock($1, $2)", LOCKS, number)
    await conn.execute(_SIGN_ON, number, now)
    return number


async def sign_off(conn: Connection | Pool, *numbers: int) -> None:
    """Let go of couriers and of their lanes."""
    await conn.execute(_SIGNS_OFF, list(numbers))


async def show_up(conn: Connection | Pool, courier_no: int, now: datetime) -> bool:
    """Give a sign of life; False when others have given this courier up."""
    return str(await conn.execute(_SEEN, courier_no, now)) == "UPDATE 1"


async def free_the_dead(conn: Connection | Pool, courier_no: int, now: datetime) -> int:
    """Let go of the lanes of couriers that are gone; return how many couriers that were."""
    rows = await conn.fetch(_DEAD, courier_no, now - SILENCE, LOCKS)
    if rows:
        await sign_off(conn, *(row["courier_no"] for row in rows))
    return len(rows)


async def claim_lanes(
    conn: Connection | Pool, courier_no: int, now: datetime, *, failing: bool, limit: int
) -> list[UUID]:
    """Return up to `limit` lanes on which something is due, held from now on by this courier."""
    if limit <= 0:
        return []
    rows = await conn.fetch(_CLAIM, courier_no, now, failing, limit)
    return [row["subscription_id"] for row in rows]


async def read_lane(
    conn: Connection | Pool, vault: Vault, subscription_id: UUID, courier_no: int, now: datetime
) -> Lane | None:
    """Return a lane as it is now; None when it is not this courier's, or nobody is to be called."""
    row = await conn.fetchrow(_LANE, subscription_id, courier_no, now)
    if row is None:
        return None
    return Lane(
        subscription_id=subscription_id,
        customer_id=row["customer_id"],
        url=row["url"],
        retry_policy=policy_of(row["retry_policy"]),
        failures=row["failures"],
        secrets=tuple(
            vault.open(sealed, place_of_secret(subscription_id, number)).decode()
            for number, sealed in zip(row["numbers"], row["sealed"], strict=True)
        ),
    )


async def read_page(
    conn: Connection | Pool, lane: Lane, now: datetime, *, limit: int
) -> list[Delivery]:
    """Return the next deliveries that are due on a lane, in the order in which they go out."""
    rows = await conn.fetch(_PAGE, lane.subscription_id, now, limit)
    return [
        Delivery(event_id=row["event_id"], body=_body(lane, row), tries=row["tries"])
        for row in rows
    ]


async def leave_lane(conn: Connection, subscription_id: UUID, courier_no: int) -> None:
    """Let go of a lane; whoever claims it next does so when its next delivery is due."""
    async with conn.transaction():
        # Two statements: what was queued while we waited for the row is seen by the second.
        if await conn.fetchval(_HELD, subscription_id, courier_no):
            await conn.execute(_LEAVE, subscription_id)


def _body(lane: Lane, row: Any) -> bytes:  # noqa: ANN401 - a record of asyncpg
    return encode_envelope(
        event_id=row["event_id"],
        kind=row["kind"],
        raised_at=row["raised_at"],
        payload_json=row["payload"],
        sequence=row["sequence"],
        previous_sequence=row["previous_sequence"],
        customer_id=None if lane.customer_id is None else row["customer_id"],
        resource_version=row["event_no"],
    )
