"""Reading notifications as they are stored: a user their own, a client those of its customer."""

from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.events.notifications.kinds import CustomerNotification, Status
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.paging import KeysetList
from billfold.platform.errors import NotFound

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


def _list(statement: str) -> KeysetList[CustomerNotification]:
    return KeysetList(
        f"SELECT * FROM ({statement}) n WHERE {{page}}", _notification, created_at="timestamptz", id="uuid"
    )


NOTIFICATIONS = {
    (is_service, status): _list(_OF_CUSTOMER + of_customer if is_service else _OF_USER + of_user)
    for status, (of_user, of_customer) in _CONDITIONS.items()
    for is_service in (True, False)
}
"""The notifications of a customer ($1) and a user ($2), by whether it is a service user (NULL), and by status."""


async def get_notification(
    conn: Connection | Pool, customer_id: UUID, user_id: UUID | None, notification_id: UUID
) -> CustomerNotification:
    """Return one notification. Raises NotFound, also when it is another owner's."""
    statement = (_OF_CUSTOMER if user_id is None else _OF_USER) + " AND notification_id = $3"
    row = await conn.fetchrow(statement, customer_id, user_id, notification_id)
    if row is None:
        raise NotFound("There is no such notification.")
    return _notification(row)
