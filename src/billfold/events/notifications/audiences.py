"""Audiences of notifications: chosen by the team, or the platform's default."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.events.notifications.kinds import NOTIFICATION_TYPES, ROLES, NotificationAudience, NotificationType
from billfold.identity.users.contact_details import USERS
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import FieldError, InvalidInput, NotFound, Refused

RECIPIENTS_MAX = 1_000
"""How many users an audience names at most."""

_CUSTOM = "SELECT type, roles, user_ids FROM notification_audience WHERE customer_id = $1"
_UPSERT = """
INSERT INTO notification_audience (customer_id, type, roles, user_ids, changed_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (customer_id, type) DO UPDATE
   SET roles = excluded.roles, user_ids = excluded.user_ids, changed_at = excluded.changed_at
"""
_ACTIVE_MEMBERS = """
SELECT user_id FROM membership WHERE customer_id = $1 AND user_id = ANY($2) AND status = 'ACTIVE'
"""


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient and their e-mail address."""

    user_id: UUID
    first_name: str
    email: str


_RECIPIENTS = """
SELECT p.user_id, p.first_name, p.email, p.phone_number
  FROM membership m JOIN user_account p USING (user_id)
 WHERE m.customer_id = $1 AND m.status = 'ACTIVE' AND p.status = 'ACTIVE'
   AND m.role <> 'SERVICE' AND (m.role = ANY($2) OR m.user_id = ANY($3))
 ORDER BY p.user_id
"""


async def list_audiences(conn: Connection | Pool, customer_id: UUID) -> list[NotificationAudience]:
    """Return the audience of every type a team may choose one for, chosen or not."""
    chosen = {row["type"]: row for row in await conn.fetch(_CUSTOM, customer_id)}
    return [
        _default(kind) if (row := chosen.get(kind.name)) is None else _chosen(row)
        for kind in NOTIFICATION_TYPES.values()
        if kind.configurable
    ]


async def get_audience(conn: Connection | Pool, customer_id: UUID, kind: str) -> NotificationAudience:
    """Return the audience of a type. Raises NotFound for an unknown one."""
    known = get_notification_type(kind)
    row = await conn.fetchrow(f"{_CUSTOM} AND type = $2", customer_id, kind)
    if row is None:
        return _default(known)
    return _chosen(row)


async def set_audience(
    conn: Connection, customer_id: UUID, kind: str, *, roles: Sequence[str], user_ids: Sequence[UUID], now: datetime
) -> NotificationAudience:
    """Choose the audience of a type, each member once. Raises as `check_configurable`, and InvalidInput."""
    check_configurable(kind)
    chosen = NotificationAudience(
        notification_type=kind,
        roles=list(dict.fromkeys(roles)),
        user_ids=list(dict.fromkeys(user_ids)),
        is_default=False,
    )
    wrong = [
        FieldError(("body", "roles", index), f"must be one of {', '.join(ROLES)}", "enum")
        for index, role in enumerate(roles)
        if role not in ROLES
    ]
    rows = await conn.fetch(_ACTIVE_MEMBERS, customer_id, chosen.user_ids)
    known = {row["user_id"] for row in rows}
    wrong += [
        FieldError(("body", "user_ids", index), "must be an active member of the team", "value_error")
        for index, user_id in enumerate(user_ids)
        if user_id not in known
    ]
    if wrong:
        raise InvalidInput(wrong)
    await conn.execute(_UPSERT, customer_id, kind, chosen.roles, chosen.user_ids, now)
    return chosen


async def clear_audience(conn: Connection, customer_id: UUID, kind: str) -> bool:
    """Go back to the platform's default; return whether anything else had been chosen.

    Raises as `check_configurable`.
    """
    check_configurable(kind)
    found = await conn.fetchval(
        "DELETE FROM notification_audience WHERE customer_id = $1 AND type = $2 RETURNING true", customer_id, kind
    )
    return found is True


async def list_recipients(
    conn: Connection | Pool, vault: Vault, customer_id: UUID, *, audience: NotificationAudience
) -> list[Recipient]:
    """Return who is in an audience now: active members only."""
    rows = await conn.fetch(_RECIPIENTS, customer_id, audience.roles, audience.user_ids)
    return [msgspec.convert(USERS.open(vault, row["user_id"], row), Recipient) for row in rows]


def get_notification_type(name: str) -> NotificationType:
    """Return a type by its name. Raises NotFound."""
    kind = NOTIFICATION_TYPES.get(name)
    if kind is None:
        raise NotFound("There is no such type of notification.")
    return kind


def check_configurable(name: str) -> None:
    """Raise NotFound or Refused `notification-type-not-configurable`."""
    if not get_notification_type(name).configurable:
        raise Refused(
            "notification-type-not-configurable", f"The audience of {name} is fixed: the team's administrators."
        )


def _default(kind: NotificationType) -> NotificationAudience:
    return NotificationAudience(notification_type=kind.name, roles=list(kind.roles), user_ids=[], is_default=True)


def _chosen(row: Record) -> NotificationAudience:
    return NotificationAudience(
        notification_type=row["type"], roles=row["roles"], user_ids=row["user_ids"], is_default=False
    )
