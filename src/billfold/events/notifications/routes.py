"""Notifications: what a member was told, and whether they have read it."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.audit import record as audit_record
from billfold.events.notifications import notify as notification_notify
from billfold.events.notifications import payment_notifications
from billfold.events.notifications import store as notification_store
from billfold.events.notifications.schemas import CustomerNotification, render_notification
from billfold.events.notifications.types import NotificationReader
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import NOTIFICATIONS
from billfold.http.list_params import ListQuery, page_of
from billfold.http.operations import get, patch, with_scope
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank
from billfold.platform.dates import iso_z
from billfold.platform.errors import Refused

READS = with_scope("notifications.read", NOTIFICATIONS)
WRITES = with_scope("notifications.write", NOTIFICATIONS)
ReadStatus = Literal["READ", "UNREAD"]


class UpdateCustomerNotificationStatus(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Whether it has been read."""

    status: Literal["READ", "UNREAD"]


@get("/api/v1/notifications/", READS, tag="notifications")
async def list_notifications(
    member: CustomerCaller, bank: Bank, wanted: ListQuery, status: ReadStatus | None = None
) -> CursorList[CustomerNotification]:
    """List what the member was told, newest first. Times are of the wall clock."""
    reader = _reader(member)
    await payment_notifications.notify_of_payments(bank.pool, bank.vault, now=member.wall)
    scope = f"notifications:{reader.customer_id}:{reader.user_id}"
    page = await wanted.page(
        bank.pager,
        scope,
        {"status": status},
        read=lambda part: notification_store.list_notifications(
            bank.pool, reader, part.dated_place, status=status, descending=part.descending, limit=part.limit
        ),
        sort_key_of=lambda row: (iso_z(row.created_at), str(row.notification_id)),
    )
    return page_of(page, [render_notification(row) for row in page.items])


@get("/api/v1/notifications/{notification_id}/", READS, tag="notifications")
async def get_notification(member: CustomerCaller, bank: Bank, notification_id: UUID) -> CustomerNotification:
    """Read one notification. That alone does not mark it as read."""
    return render_notification(await notification_store.get_notification(bank.pool, _reader(member), notification_id))


@patch("/api/v1/notifications/{notification_id}/", WRITES, tag="notifications")
async def update_notification(
    member: CustomerCaller, bank: Bank, notification_id: UUID, data: UpdateCustomerNotificationStatus
) -> CustomerNotification:
    """Mark a notification as read, or as unread again, for this member alone."""
    reader = _reader(member)
    await notification_store.get_notification(bank.pool, reader, notification_id)
    if reader.user_id is None:
        raise Refused("forbidden", "The client acts by itself: nobody reads what it is told.")
    async with audit_record.audited(
        bank.pool,
        bank.vault,
        reader.customer_id,
        member.origin,
        "notification.updated",
        resource=("notification", notification_id),
        details={"status": data.status},
        now=member.wall,
    ) as audited:
        if not await notification_notify.set_status(
            audited.conn, reader.customer_id, reader.user_id, notification_id, status=data.status, now=member.wall
        ):
            audited.skip()
    return render_notification(await notification_store.get_notification(bank.pool, reader, notification_id))


def _reader(member: CustomerCaller) -> NotificationReader:
    return NotificationReader(customer_id=member.customer_id, user_id=member.access.user_id)
