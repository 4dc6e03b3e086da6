"""Telling users, in the transaction of the cause, and noting what they have read. Wall time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.events.email import outbox
from billfold.events.email.templates import EmailContent
from billfold.events.notifications.audiences import Recipient, get_audience, list_recipients
from billfold.events.notifications.kinds import NOTIFICATION_TYPES, Status, seal_description
from billfold.platform import ids
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import InvariantError
from billfold.platform.text import plain_text, without_links

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
    """Notify everybody who is in the audience of a type now; return how many are.

    To be called in the transaction of the cause: it leaves a row and an e-mail for each of them,
    and none without recipients. Users who are `informed` by another e-mail get no second one.
    Raises Broken for a type that is not in the table.
    """
    if kind not in NOTIFICATION_TYPES:
        raise InvariantError(f"{kind!r} is no type of notification")
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
        await outbox.queue_email(conn, vault, each.email, notice=notice, now=now)
    return len(recipients)


async def set_status(
    conn: Connection | Pool, customer_id: UUID, user_id: UUID, notification_id: UUID, *, status: Status, now: datetime
) -> bool:
    """Note that a user has read something, or has not; return whether that is news."""
    read_at = now if status == "READ" else None
    found = await conn.fetchval(_SET_READ, customer_id, user_id, notification_id, read_at)
    return found is True


def _compose_email(reader: Recipient, title: str, description: str) -> EmailContent:
    text = (
        f"Hello {plain_text(reader.first_name)},\n\n{without_links(description)}\n\n"
        "Your team's administrators choose who gets this notification.\n"
    )
    return EmailContent(without_links(title), text)
