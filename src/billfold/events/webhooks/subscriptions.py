"""Subscriptions: created, changed and deleted by their owner. `now` is wall time."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.events.schemas import Subscriber
from billfold.events.store import newest_sequence
from billfold.events.webhooks.signature import KEY_BYTES_MIN, OVERLAP
from billfold.events.webhooks.store import COLUMNS, RetryPolicy, Subscription, subscription_of
from billfold.http.raw_request import instant_in_body
from billfold.http.schemas import WallTime
from billfold.identity.partners.caller import Caller
from billfold.oauth.caller import AnyCaller
from billfold.platform import ids
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.pool import in_transaction
from billfold.platform.errors import NotFound

URL_CHARS_MAX, SECRET_CHARS_MAX, DESCRIPTION_CHARS_MAX = 2083, 256, 500
SECONDS_MIN, SECONDS_MAX = 30, 86_400
Url = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=URL_CHARS_MAX,
        extra_json_schema={"format": "uri"},
        description="Where events are sent: https, on the internet, without user name or password.",
    ),
]
_SEVERAL = msgspec.Meta(min_length=1, max_length=100, description="Types of `/api/v1/events/types/`.")
Secret = Annotated[
    str,
    msgspec.Meta(
        min_length=KEY_BYTES_MIN,
        max_length=SECRET_CHARS_MAX,
        description="The HMAC key of the deliveries, 24 bytes or more. After `whsec_` it is base64.",
    ),
]
Description = Annotated[str, msgspec.Meta(max_length=DESCRIPTION_CHARS_MAX)]
Code = Annotated[int, msgspec.Meta(ge=0, le=599)]
Interval = Annotated[float, msgspec.Meta(ge=SECONDS_MIN, le=SECONDS_MAX)]


class Retries(RetryPolicy, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The retry policy of failed deliveries. All five fields are required.

    An empty `retry_on_status_codes` means every response but a 2xx, and no response; in the list 0 stands for
    no response. `maximum_attempts` includes the first attempt.
    """

    retry_on_status_codes: Annotated[list[Code], msgspec.Meta(max_length=100)]
    backoff_coefficient: Annotated[float, msgspec.Meta(ge=1, le=1000)]
    maximum_attempts: Annotated[int, msgspec.Meta(ge=1, le=20)]
    initial_interval_seconds: Interval
    maximum_interval_seconds: Interval


class NewSubscription(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A subscription: a URL and the types of events to send to it. Without a retry policy there is one attempt."""

    url: Url
    events: list[str]
    shared_secret: Secret
    description: Description = ""
    retry_policy: Retries | None = None


class ChangedSubscription(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Changes of a subscription; omitted fields stay as they are. `retry_policy` null removes the policy."""

    url: Url | UnsetType = UNSET
    events: list[str] | UnsetType = UNSET
    shared_secret: Secret | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    retry_policy: Retries | UnsetType | None = UNSET
    status: Literal["enabled", "disabled"] | UnsetType = UNSET


def body_for(body: type, name: str, kinds: tuple[str, ...], *default: Any) -> Any:  # noqa: ANN401 - a type
    """Return the body as one API accepts it: with the event types of that API."""
    events = Annotated[list[Literal[kinds]], _SEVERAL]  # type: ignore[valid-type]
    field = ("events", events | UnsetType, *default) if default else ("events", events)
    namespace = {"__doc__": body.__doc__}
    return msgspec.defstruct(
        name, [field], bases=(body,), namespace=namespace, kw_only=True, forbid_unknown_fields=True
    )


class Resend(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The event to deliver again."""

    event_id: UUID


class Since(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The time from which events are delivered again. It is in the body because a query is not signed."""

    since: WallTime

    def instant(self) -> datetime:
        """Return the time in UTC. Raises InvalidInput if it has no offset."""
        return instant_in_body("since", self.since)


class Example(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The type of the example event; by default the first type of the subscription."""

    event_type: str | None = None


_CREATE = f"""
INSERT INTO subscription (subscription_id, partner_id, customer_id, url, description, events,
                          status, retry_policy, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, 'enabled', $7, $8, $8)
RETURNING {COLUMNS}
"""
_INSERT_QUEUE = """
INSERT INTO subscription_queue (subscription_id, sequence, queued_at) VALUES ($1, $2, $3)
"""
_LOCK = f"""
SELECT {COLUMNS} FROM subscription
 WHERE subscription_id = $1 AND partner_id = $2 AND customer_id IS NOT DISTINCT FROM $3
   AND deleted_at IS NULL
   FOR UPDATE
"""
_UPDATE = f"""
UPDATE subscription
   SET url = $2, description = $3, events = $4, retry_policy = $5, status = $6, updated_at = $7,
       disabled_because = CASE WHEN $6 = 'disabled' THEN disabled_because END
 WHERE subscription_id = $1 RETURNING {COLUMNS}
"""
_ENABLE = "UPDATE subscription SET enabled_since_xid = pg_current_xact_id() WHERE subscription_id = $1"
# Pending deliveries stay pending while a subscription is disabled, and are due at once afterwards.
_STOP = "UPDATE subscription_queue SET due_at = NULL WHERE subscription_id = $1"
_RESUME = """
UPDATE subscription_queue
   SET sequence = $2, failures = 0, paused_until = NULL,
       due_at = (SELECT min(due_at) FROM delivery WHERE subscription_id = $1 AND due_at IS NOT NULL)
 WHERE subscription_id = $1
"""
_DELETE = """
UPDATE subscription SET status = 'disabled', deleted_at = $2, updated_at = $2
 WHERE subscription_id = $1
"""
_DISABLE_ALL = """
UPDATE subscription SET status = 'disabled', disabled_because = $2, updated_at = $3
 WHERE customer_id = $1 AND status = 'enabled' AND deleted_at IS NULL RETURNING subscription_id
"""
# The newest valid secret gets the overlap; one that was already being replaced ends now.
_RETIRE = """
UPDATE subscription_secret
   SET expires_at = CASE WHEN expires_at IS NULL THEN $3::timestamptz ELSE $2 END
 WHERE subscription_id = $1 AND (expires_at IS NULL OR expires_at > $2)
"""
_NEXT_NO = "SELECT coalesce(max(secret_no), 0) + 1 FROM subscription_secret WHERE subscription_id = $1"
_INSERT_SECRET = """
INSERT INTO subscription_secret (subscription_id, secret_no, sealed, created_at)
VALUES ($1, $2, $3, $4)
"""  # noqa: S105 - a name, not a secret


async def create_subscription(
    conn: Db,
    vault: Vault,
    owner: Subscriber,
    *,
    url: str,
    events: Iterable[str],
    shared_secret: str,
    now: datetime,
    description: str = "",
    retry_policy: RetryPolicy | None = None,
    subscription_id: UUID | None = None,
) -> Subscription:
    """Subscribe to kinds of events raised from now on.

    Url, secret and policy must have been checked.
    """
    row = (
        subscription_id or ids.new(),
        owner.partner_id,
        owner.customer_id,
        url,
        description,
        _in_order(events),
        _as_json(retry_policy),
        now,
    )
    async with in_transaction(conn) as tx:
        subscription = subscription_of(await tx.fetchrow(_CREATE, *row))
        await _add_secret(tx, vault, subscription.id, secret=shared_secret, now=now)
        last_sequence = await newest_sequence(tx, owner)
        await tx.execute(_INSERT_QUEUE, subscription.id, last_sequence, now)
    return subscription


async def update_subscription(
    conn: Db,
    vault: Vault,
    owner: Subscriber,
    subscription_id: UUID,
    changes: ChangedSubscription,
    *,
    now: datetime,
) -> Subscription:
    """Change a subscription. A new secret signs at once, together with the old one for a day.

    A disabled subscription receives nothing, and nothing of that time later. Url, secret and policy must have
    been checked. Raises NotFound.
    """
    async with in_transaction(conn) as tx:
        before = await lock_subscription(tx, owner, subscription_id)
        if changes.shared_secret is not UNSET:
            await tx.execute(_RETIRE, subscription_id, now, now + OVERLAP)
            await _add_secret(tx, vault, subscription_id, secret=changes.shared_secret, now=now)
        updated = subscription_of(await tx.fetchrow(_UPDATE, *_merged_columns(before, changes), now))
        if updated.status != before.status:
            await _apply_status(tx, owner, updated)
    return updated


async def delete_subscription(conn: Db, owner: Subscriber, subscription_id: UUID, *, now: datetime) -> None:
    """Delete a subscription: no more events are delivered to it. Raises NotFound."""
    async with in_transaction(conn) as tx:
        await lock_subscription(tx, owner, subscription_id)
        await tx.execute(_DELETE, subscription_id, now)
        await tx.execute(_STOP, subscription_id)
        await tx.execute("DELETE FROM subscription_secret WHERE subscription_id = $1", subscription_id)


async def disable_subscriptions(conn: Connection, customer_id: UUID, *, because: str, now: datetime) -> int:
    """Disable all subscriptions of a customer; return how many were enabled."""
    disabled = await conn.fetch(_DISABLE_ALL, customer_id, because, now)
    for row in disabled:
        await conn.execute(_STOP, row["subscription_id"])
    return len(disabled)


async def lock_subscription(conn: Connection, owner: Subscriber, subscription_id: UUID) -> Subscription:
    """Lock a subscription until the transaction ends and return it. Raises NotFound."""
    row = await conn.fetchrow(_LOCK, subscription_id, owner.partner_id, owner.customer_id)
    if row is None:
        raise NotFound("There is no such subscription.")
    return subscription_of(row)


def secret_context(subscription_id: UUID, secret_no: int) -> bytes:
    """Return the only place where a subscription's secret opens."""
    return associated_data("subscription_secret", "sealed", secret_no, tenant_id=subscription_id)


async def _apply_status(conn: Connection, owner: Subscriber, updated: Subscription) -> None:
    if updated.status == "disabled":
        await conn.execute(_STOP, updated.id)
        return
    await conn.execute(_ENABLE, updated.id)
    last_sequence = await newest_sequence(conn, owner)
    await conn.execute(_RESUME, updated.id, last_sequence)


async def _add_secret(conn: Connection, vault: Vault, subscription_id: UUID, secret: str, now: datetime) -> None:
    number = await conn.fetchval(_NEXT_NO, subscription_id)
    sealed = vault.seal(secret.encode(), secret_context(subscription_id, number))
    await conn.execute(_INSERT_SECRET, subscription_id, number, sealed, now)


def _merged_columns(before: Subscription, changes: ChangedSubscription) -> tuple[Any, ...]:
    """The columns of a subscription after its changes, as parameters of the statement."""
    url, description, events, policy, status = (
        getattr(before if getattr(changes, name) is UNSET else changes, name)
        for name in ("url", "description", "events", "retry_policy", "status")
    )
    return before.id, url, description, _in_order(events), _as_json(policy), status


def _in_order(kinds: Iterable[str]) -> list[str]:
    """Each kind once, in the order in which they were first named."""
    return list(dict.fromkeys(kinds))


def _as_json(policy: RetryPolicy | None) -> str | None:
    return None if policy is None else msgspec.json.encode(policy).decode()


def subscriber_of(caller: AnyCaller) -> Subscriber:
    """Return whose events the caller can see: its customer's, or all of the partner's."""
    return Subscriber(caller.partner_id, None if isinstance(caller, Caller) else caller.customer_id)
