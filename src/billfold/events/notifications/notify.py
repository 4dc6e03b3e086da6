"""Notifications of users: who gets which, how they are raised with their cause, and how they are read. Wall time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.events.email import outbox
from billfold.events.email.templates import EmailContent
from billfold.events.notifications.kinds import (
    NOTIFICATION_TYPES,
    ROLES,
    CustomerNotification,
    NotificationAudience,
    NotificationType,
    Status,
    seal_description,
)
from billfold.identity.users.contact_details import USERS
from billfold.platform import ids
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import KeysetList
from billfold.platform.errors import FieldError, InvalidInput, InvariantError, NotFound, Refused
from billfold.platform.text import plain_text, without_links

RECIPIENTS_MAX = 1_000
"""Maximum number of users in an audience."""

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


async def list_audiences(conn: Db, customer_id: UUID) -> list[NotificationAudience]:
    """Return the audience of every type a team may choose one for, chosen or not."""
    chosen = {row["type"]: row for row in await conn.fetch(_CUSTOM, customer_id)}
    return [
        _default_audience(kind) if (row := chosen.get(kind.name)) is None else _chosen_audience(row)
        for kind in NOTIFICATION_TYPES.values()
        if kind.configurable
    ]


async def get_audience(conn: Db, customer_id: UUID, kind: str) -> NotificationAudience:
    """Return the audience of a type. Raises NotFound for an unknown one."""
    known = get_notification_type(kind)
    row = await conn.fetchrow(f"{_CUSTOM} AND type = $2", customer_id, kind)
    if row is None:
        return _default_audience(known)
    return _chosen_audience(row)


async def set_audience(
    conn: Connection, customer_id: UUID, kind: str, *, roles: Sequence[str], user_ids: Sequence[UUID], now: datetime
) -> NotificationAudience:
    """Choose the audience of a type, each member once. Raises like `check_configurable`, and InvalidInput."""
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
    """Go back to the platform's default; return whether a choice was removed.

    Raises like `check_configurable`.
    """
    check_configurable(kind)
    found = await conn.fetchval(
        "DELETE FROM notification_audience WHERE customer_id = $1 AND type = $2 RETURNING true", customer_id, kind
    )
    return found is True


async def list_recipients(
    conn: Db, vault: Vault, customer_id: UUID, *, audience: NotificationAudience
) -> list[Recipient]:
    """Return the current members of an audience: active members only."""
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


def _default_audience(kind: NotificationType) -> NotificationAudience:
    return NotificationAudience(notification_type=kind.name, roles=list(kind.roles), user_ids=[], is_default=True)


def _chosen_audience(row: Record) -> NotificationAudience:
    return NotificationAudience(
        notification_type=row["type"], roles=row["roles"], user_ids=row["user_ids"], is_default=False
    )


_WRITE = """
INSERT INTO notification (customer_id, notification_id, type, title, description, metadata,
                          created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
_INSERT_RECIPIENTS = """
INSERT INTO notification_recipient (customer_id, user_id, created_at, notification_id)
SELECT $1, user_id, $3, $4 FROM unnest($2::uuid[]) AS user_id
"""
_SET_READ = """
UPDATE notification_recipient SET read_at = $4
 WHERE customer_id = $1 AND user_id = $2 AND notification_id = $3
   AND created_at = (SELECT created_at FROM notification
                      WHERE customer_id = $1 AND notification_id = $3)
   AND (read_at IS NULL) <> ($4::timestamptz IS NULL)
RETURNING true
"""
_SET_ALL_READ = """
UPDATE notification_recipient SET read_at = $3 WHERE customer_id = $1 AND user_id = $2 AND read_at IS NULL
"""
_COUNTED_MAX = 1_000
_COUNT_UNREAD = f"""
SELECT count(*) FROM (
  SELECT 1 FROM notification_recipient
   WHERE customer_id = $1 AND user_id = $2 AND read_at IS NULL LIMIT {_COUNTED_MAX}) n
"""


async def notify(
    conn: Connection,
    vault: Vault,
    customer_id: UUID,
    kind: str,
    *,
    title: str,
    description: str,
    now: datetime,
    metadata: Mapping[str, Any] | None = None,
    except_user_id: UUID | None = None,
) -> int:
    """Notify everybody who is currently in the audience of a type; return how many.

    To be called in the transaction of the cause: it leaves a row and an e-mail for each of them,
    and none without recipients. Users in `informed` already get another e-mail, and no second one.
    Raises Broken for a type that is not in the table.
    """
    if kind not in NOTIFICATION_TYPES:
        raise InvariantError(f"{kind!r} is not a type of notification")
    audience = await get_audience(conn, customer_id, kind)
    recipients = await list_recipients(conn, vault, customer_id, audience=audience)
    if not recipients:
        return 0
    notification_id = ids.new()
    metadata_json = None if metadata is None else msgspec.json.encode(metadata).decode()
    sealed = seal_description(vault, customer_id, notification_id, description)
    await conn.execute(_WRITE, customer_id, notification_id, kind, title, sealed, metadata_json, now)
    await conn.execute(_INSERT_RECIPIENTS, customer_id, [each.user_id for each in recipients], now, notification_id)
    for each in recipients:
        if each.user_id == except_user_id:
            continue
        notice = _compose_email(each, title, description)
        await outbox.queue_email(conn, vault, each.email, notice=notice, now=now, is_awaited=False)
    return len(recipients)


async def set_status(
    conn: Db, customer_id: UUID, user_id: UUID, notification_id: UUID, *, status: Status, now: datetime
) -> bool:
    """Record that a user has read a notification, or marked it unread; return whether that changes anything."""
    read_at = now if status == "READ" else None
    found = await conn.fetchval(_SET_READ, customer_id, user_id, notification_id, read_at)
    return found is True


async def set_all_read(conn: Db, customer_id: UUID, user_id: UUID, *, now: datetime) -> int:
    """Record that a user has read every notification of a customer; return how many were unread."""
    done = await conn.execute(_SET_ALL_READ, customer_id, user_id, now)
    return int(done.rpartition(" ")[2])


async def count_unread(conn: Db, customer_id: UUID, user_id: UUID | None) -> int:
    """Return how many notifications of a customer a user has not read, at most a thousand."""
    found: int = await conn.fetchval(_COUNT_UNREAD, customer_id, user_id)
    return found


def _compose_email(reader: Recipient, title: str, description: str) -> EmailContent:
    text = (
        f"Hello {plain_text(reader.first_name)},\n\n{without_links(description)}\n\n"
        "Your team's administrators choose who gets this notification.\n"
    )
    return EmailContent(without_links(title), text)


_COLUMNS = "notification_id AS id, title, description, type, created_at, metadata AS notification_metadata"
_OF_USER = f"""
SELECT {_COLUMNS}, CASE WHEN r.read_at IS NULL THEN 'UNREAD' ELSE 'READ' END AS status
  FROM notification_recipient r JOIN notification USING (customer_id, notification_id, created_at)
 WHERE customer_id = $1 AND r.user_id = $2
"""
# A service user has no read status, so a filter by status finds nothing.
_OF_CUSTOMER = f"""
SELECT {_COLUMNS}, NULL AS status FROM notification WHERE customer_id = $1 AND $2::uuid IS NULL
"""
_CONDITIONS: dict[Status | None, tuple[str, str]] = {
    None: ("", ""),
    "READ": (" AND r.read_at IS NOT NULL", " AND false"),
    "UNREAD": (" AND r.read_at IS NULL", " AND false"),
}


def _notification(row: Record) -> CustomerNotification:
    fields = dict(row)
    if fields["notification_metadata"] is not None:
        fields["notification_metadata"] = msgspec.json.decode(fields["notification_metadata"])
    return msgspec.convert(fields, CustomerNotification)


_OF_TYPES = " AND ($3::text[] IS NULL OR type = ANY($3))"


def _list(statement: str) -> KeysetList[CustomerNotification]:
    return KeysetList(
        f"SELECT * FROM ({statement}{_OF_TYPES}) n WHERE {{page}}", _notification, created_at="timestamptz", id="uuid"
    )


NOTIFICATIONS = {
    (is_service, status): _list(_OF_CUSTOMER + of_customer if is_service else _OF_USER + of_user)
    for status, (of_user, of_customer) in _CONDITIONS.items()
    for is_service in (True, False)
}
"""The notifications of a customer ($1) and a user ($2) of some types ($3, NULL for all), by whether it is a service
user (NULL), and by status."""


async def get_notification(
    conn: Db, customer_id: UUID, user_id: UUID | None, notification_id: UUID
) -> CustomerNotification:
    """Return one notification. Raises NotFound, also if it belongs to someone else."""
    statement = (_OF_CUSTOMER if user_id is None else _OF_USER) + " AND notification_id = $3"
    row = await conn.fetchrow(statement, customer_id, user_id, notification_id)
    if row is None:
        raise NotFound("There is no such notification.")
    return _notification(row)
