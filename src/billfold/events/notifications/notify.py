"""Telling people, in the transaction of the cause, and noting what they have read. Wall time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.events.email import outbox as letters
from billfold.events.email.templates import Notice
from billfold.events.notifications.audiences import Recipient, get_audience, people_in
from billfold.events.notifications.kinds import KINDS
from billfold.events.notifications.types import Status
from billfold.platform import ids
from billfold.platform.errors import Broken

if TYPE_CHECKING:
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection, Pool

_WRITE = """
INSERT INTO notification (customer_id, notification_id, type, title, description, metadata,
                          created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
_ADDRESS = """
INSERT INTO notification_recipient (customer_id, user_id, created_at, notification_id)
SELECT $1, user_id, $3, $4 FROM unnest($2::uuid[]) AS user_id
"""
_MARK = """
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
    informed: UUID | None = None,
) -> int:
    """Tell everybody who is in the audience of a type now; return how many are.

    To be called in the transaction of the cause: it leaves a row and a letter for each of them,
    and nothing when there is nobody. Who is `informed` by another letter gets no second one.
    Raises Broken for a type that is not in the table.
    """
    if kind not in KINDS:
        raise Broken(f"{kind!r} is no type of notification")
    audience = await get_audience(conn, customer_id, kind)
    people = await people_in(conn, customer_id, audience)
    if not people:
        return 0
    notification_id = ids.new()
    told = None if metadata is None else msgspec.json.encode(metadata).decode()
    await conn.execute(_WRITE, customer_id, notification_id, kind, title, description, told, now)
    await conn.execute(
        _ADDRESS, customer_id, [each.user_id for each in people], now, notification_id
    )
    for each in people:
        if each.user_id == informed:
            continue
        notice = _letter(each, title, description)
        await letters.write_letter(conn, vault, each.email, notice, now=now)
    return len(people)


async def set_status(
    conn: Connection | Pool,
    customer_id: UUID,
    user_id: UUID,
    notification_id: UUID,
    *,
    status: Status,
    now: datetime,
) -> bool:
    """Note that a person has read something, or has not; tell whether that is news."""
    read_at = now if status == "READ" else None
    found = await conn.fetchval(_MARK, customer_id, user_id, notification_id, read_at)
    return found is True


def _letter(reader: Recipient, title: str, description: str) -> Notice:
    text = (
        f"Hello {reader.first_name},\n\n{description}\n\n"
        "Your team's administrators choose who is told of this.\n\nBillfold\n"
    )
    return Notice(title, text)
