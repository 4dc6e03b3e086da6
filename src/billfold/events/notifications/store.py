"""Reading notifications: a user their own, a client those of its customer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.events.notifications.types import Notification, NotificationReader, Status
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection, Pool

Place = tuple[datetime, UUID]
_COLUMNS = "n.notification_id, n.type, n.title, n.description, n.metadata, n.created_at"
_OWN = f"""
SELECT {_COLUMNS}, CASE WHEN r.read_at IS NULL THEN 'UNREAD' ELSE 'READ' END AS status
  FROM notification_recipient r JOIN notification n USING (customer_id, notification_id, created_at)
 WHERE r.customer_id = $1 AND r.user_id = $2
"""
_ALL = f"""
SELECT {_COLUMNS}, NULL AS status FROM notification n
 WHERE n.customer_id = $1 AND $2::uuid IS NULL
"""
_STATUS = {"READ": " AND r.read_at IS NOT NULL", "UNREAD": " AND r.read_at IS NULL"}


async def list_notifications(
    conn: Connection | Pool,
    reader: NotificationReader,
    place: Place | None = None,
    *,
    status: Status | None = None,
    descending: bool = True,
    limit: int,
) -> list[Notification]:
    """Return up to `limit` notifications on from a place, newest first unless not `descending`.

    A service user has no read status, so a filter by status finds nothing.
    """
    if reader.user_id is None and status is not None:
        return []
    table = "n" if reader.user_id is None else "r"
    values: list[Any] = [reader.customer_id, reader.user_id, limit]
    where = "" if status is None else _STATUS[status]
    if place is not None:
        sign = "<" if descending else ">"
        where += f" AND ({table}.created_at, {table}.notification_id) {sign} ($4, $5)"
        values += place
    direction = "DESC" if descending else "ASC"
    order = f" ORDER BY {table}.created_at {direction}, {table}.notification_id {direction} LIMIT $3"
    rows = await conn.fetch((_ALL if table == "n" else _OWN) + where + order, *values)
    return [_notification(row) for row in rows]


async def get_notification(conn: Connection | Pool, reader: NotificationReader, notification_id: UUID) -> Notification:
    """Return one notification. Raises NotFound, also when it is another owner's."""
    statement = (_ALL if reader.user_id is None else _OWN) + " AND n.notification_id = $3"
    row = await conn.fetchrow(statement, reader.customer_id, reader.user_id, notification_id)
    if row is None:
        raise NotFound("There is no such notification.")
    return _notification(row)


def _notification(row: Record) -> Notification:
    fields = dict(row)
    if fields["metadata"] is not None:
        fields["metadata"] = msgspec.json.decode(fields["metadata"])
    return msgspec.convert(fields, Notification)
