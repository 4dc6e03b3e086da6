"""Subscriptions: made, changed and ended by their owner. `now` is wall time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.events.webhooks import rules
from billfold.events.webhooks.store import RETURNED, subscription_of
from billfold.events.webhooks.types import Changes, Owner, RetryPolicy, SubscriptionRow
from billfold.platform import ids
from billfold.platform.crypto import Vault, place
from billfold.platform.database.pool import in_transaction
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_CREATE = f"""
INSERT INTO subscription (subscription_id, partner_id, customer_id, url, description, events,
                          status, retry_policy, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, 'enabled', $7, $8, $8)
RETURNING {RETURNED}
"""
# What it is told begins after whatever its feed has come to by now.
_PLACE = """
SELECT coalesce(CASE WHEN $2::uuid IS NULL
         THEN (SELECT max(partner_sequence) FROM told WHERE partner_id = $1)
         ELSE (SELECT max(customer_sequence) FROM told WHERE customer_id = $2) END, 0)
"""
_OPEN_LANE = """
INSERT INTO subscription_lane (subscription_id, sequence, told_at) VALUES ($1, $2, $3)
"""
_HELD = f"""
SELECT {RETURNED} FROM subscription
 WHERE subscription_id = $1 AND partner_id = $2 AND customer_id IS NOT DISTINCT FROM $3
   AND deleted_at IS NULL
   FOR UPDATE
"""
_UPDATE = f"""
UPDATE subscription
   SET url = $2, description = $3, events = $4, retry_policy = $5, status = $6, updated_at = $7,
       disabled_because = CASE WHEN $6 = 'disabled' THEN disabled_because END
 WHERE subscription_id = $1 RETURNING {RETURNED}
"""
_ENABLE = "UPDATE subscription SET since = pg_current_xact_id() WHERE subscription_id = $1"
# What waits goes on waiting while nobody is to be called, and is due at once afterwards.
_STOP = "UPDATE subscription_lane SET due_at = NULL WHERE subscription_id = $1"
_GO_ON = """
UPDATE subscription_lane
   SET sequence = $2, failures = 0, rests_until = NULL,
       due_at = (SELECT min(due_at) FROM delivery WHERE subscription_id = $1 AND due_at IS NOT NULL)
 WHERE subscription_id = $1
"""
_DELETE = """
UPDATE subscription SET status = 'disabled', deleted_at = $2, updated_at = $2
 WHERE subscription_id = $1
"""
# Of the secrets in force the newest gets the overlap; one that was already leaving leaves now.
_RETIRE = """
UPDATE subscription_secret
   SET expires_at = CASE WHEN expires_at IS NULL THEN $3::timestamptz ELSE $2 END
 WHERE subscription_id = $1 AND (expires_at IS NULL OR expires_at > $2)
"""
_NEXT_NO = (
    "SELECT coalesce(max(secret_no), 0) + 1 FROM subscription_secret WHERE subscription_id = $1"
)
_SEALED = """
INSERT INTO subscription_secret (subscription_id, secret_no, sealed, created_at)
VALUES ($1, $2, $3, $4)
"""


async def create_subscription(
    conn: Connection | Pool,
    vault: Vault,
    owner: Owner,
    *,
    url: str,
    events: Iterable[str],
    shared_secret: str,
    now: datetime,
    description: str = "",
    retry_policy: RetryPolicy | None = None,
    subscription_id: UUID | None = None,
) -> SubscriptionRow:
    """Subscribe to kinds of events raised from now on.

    The url is checked by `check_url`, before. Raises InvalidInput for the secret and the policy.
    """
    rules.check_secret(shared_secret)
    if retry_policy is not None:
        rules.check_policy(retry_policy)
    row = (
        subscription_id or ids.new(), owner.partner_id, owner.customer_id, url, description,
        _in_order(events), _as_json(retry_policy), now,
    )  # fmt: skip
    async with in_transaction(conn) as held:
        made = subscription_of(await held.fetchrow(_CREATE, *row))
        await _add_secret(held, vault, made.subscription_id, shared_secret, now)
        reached = await held.fetchval(_PLACE, owner.partner_id, owner.customer_id)
        await held.execute(_OPEN_LANE, made.subscription_id, reached, now)
    return made


async def update_subscription(
    conn: Connection | Pool,
    vault: Vault,
    owner: Owner,
    subscription_id: UUID,
    changes: Changes,
    *,
    now: datetime,
) -> SubscriptionRow:
    """Change a subscription. A new secret signs at once, the old one beside it for a day.

    One that is disabled is told nothing, and nothing of that time later. Raises NotFound,
    InvalidInput for the secret and the policy.
    """
    _check(changes)
    async with in_transaction(conn) as held:
        was = await hold(held, owner, subscription_id)
        if changes.shared_secret is not UNSET:
            await held.execute(_RETIRE, subscription_id, now, now + rules.OVERLAP)
            await _add_secret(held, vault, subscription_id, changes.shared_secret, now)
        changed = subscription_of(await held.fetchrow(_UPDATE, *_merged(was, changes), now))
        if changed.status != was.status:
            await _switch(held, owner, changed)
    return changed


async def delete_subscription(
    conn: Connection | Pool, owner: Owner, subscription_id: UUID, *, now: datetime
) -> None:
    """End a subscription: nothing is delivered to it any more. Raises NotFound."""
    async with in_transaction(conn) as held:
        await hold(held, owner, subscription_id)
        await held.execute(_DELETE, subscription_id, now)
        await held.execute(_STOP, subscription_id)
        await held.execute(
            "DELETE FROM subscription_secret WHERE subscription_id = $1", subscription_id
        )


async def hold(conn: Connection, owner: Owner, subscription_id: UUID) -> SubscriptionRow:
    """Lock a subscription until the transaction ends and return it. Raises NotFound."""
    row = await conn.fetchrow(_HELD, subscription_id, owner.partner_id, owner.customer_id)
    if row is None:
        raise NotFound("There is no such subscription.")
    return subscription_of(row)


def place_of_secret(subscription_id: UUID, secret_no: int) -> bytes:
    """Return the one place where a subscription's secret opens."""
    return place("subscription_secret", "sealed", secret_no, subscription_id)


async def _switch(conn: Connection, owner: Owner, changed: SubscriptionRow) -> None:
    if changed.status == "disabled":
        await conn.execute(_STOP, changed.subscription_id)
        return
    await conn.execute(_ENABLE, changed.subscription_id)
    reached = await conn.fetchval(_PLACE, owner.partner_id, owner.customer_id)
    await conn.execute(_GO_ON, changed.subscription_id, reached)


async def _add_secret(
    conn: Connection, vault: Vault, subscription_id: UUID, secret: str, now: datetime
) -> None:
    number = await conn.fetchval(_NEXT_NO, subscription_id)
    sealed = vault.seal(secret.encode(), place_of_secret(subscription_id, number))
    await conn.execute(_SEALED, subscription_id, number, sealed, now)


def _check(changes: Changes) -> None:
    if changes.shared_secret is not UNSET:
        rules.check_secret(changes.shared_secret)
    if changes.retry_policy is not UNSET and changes.retry_policy is not None:
        rules.check_policy(changes.retry_policy)


def _merged(was: SubscriptionRow, changes: Changes) -> tuple[Any, ...]:
    """The columns of a subscription after its changes, as the statement takes them."""
    wanted = {
        name: getattr(was if getattr(changes, name) is UNSET else changes, name)
        for name in ("url", "description", "events", "retry_policy", "status")
    }
    return (
        was.subscription_id, wanted["url"], wanted["description"], _in_order(wanted["events"]),
        _as_json(wanted["retry_policy"]), wanted["status"],
    )  # fmt: skip


def _in_order(kinds: Iterable[str]) -> list[str]:
    """Each kind once, in the order in which they were named."""
    return list(dict.fromkeys(kinds))


def _as_json(policy: RetryPolicy | None) -> str | None:
    return None if policy is None else msgspec.json.encode(policy).decode()
