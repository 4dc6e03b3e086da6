"""Operations on the notifications of a member, and on the audiences of notification types."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from billfold.access.users.rules import PERMISSIONS
from billfold.audit import record as audit_record
from billfold.audit.record import AuditedAction
from billfold.events.notifications import audiences, payment_notifications
from billfold.events.notifications import notify as notification_notify
from billfold.events.notifications import store as notification_store
from billfold.events.notifications.audiences import RECIPIENTS_MAX
from billfold.events.notifications.schemas import (
    CustomerNotification,
    NotificationAudience,
    NotificationAudiences,
    render_audience,
    render_notification,
)
from billfold.events.notifications.types import NotificationReader
from billfold.http.caller import CustomerCaller
from billfold.http.list_params import ListQuery, page_of
from billfold.http.operations import delete, get, patch, put, with_scope
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank
from billfold.platform.dates import iso_z
from billfold.platform.errors import InvalidInput, Refused

READS = with_scope("notifications.read", "notifications")
WRITES = with_scope("notifications.write", "notifications")
_NEEDED_PERMISSION = "team.write"
ReadStatus = Literal["READ", "UNREAD"]


class UpdateCustomerNotificationStatus(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Whether it has been read."""

    status: Literal["READ", "UNREAD"]


@get("/api/v1/notifications/", READS, tag="notifications")
async def list_notifications(
    member: CustomerCaller, bank: Bank, wanted: ListQuery, status: ReadStatus | None = None
) -> CursorList[CustomerNotification]:
    """List notifications.

    They are the member's, newest first. Times are of the wall clock.
    """
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
        raise Refused("forbidden", "A service user cannot mark notifications as read.")
    details = {"status": data.status}
    async with _audited(member, bank, "notification.updated", resource_id=notification_id, details=details) as audited:
        if not await notification_notify.set_status(
            audited.conn,
            reader.customer_id,
            reader.user_id,
            notification_id=notification_id,
            status=data.status,
            now=member.wall,
        ):
            audited.skip()
    return render_notification(await notification_store.get_notification(bank.pool, reader, notification_id))


def _reader(member: CustomerCaller) -> NotificationReader:
    return NotificationReader(customer_id=member.customer_id, user_id=member.access.user_id)


class SetCustomerNotificationAudienceRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The new audience as a whole; a list that is left out is empty."""

    roles: Annotated[list[str], Meta(max_length=RECIPIENTS_MAX)] | UnsetType = UNSET
    user_ids: Annotated[list[UUID], Meta(max_length=RECIPIENTS_MAX)] | UnsetType = UNSET


@get("/api/v1/notification-audiences/", READS, tag="notifications")
async def list_notification_audiences(member: CustomerCaller, bank: Bank) -> NotificationAudiences:
    """List the audience of every type for which the team may choose one, chosen or not."""
    found = await audiences.list_audiences(bank.pool, member.customer_id)
    return NotificationAudiences(items=[render_audience(each) for each in found])


@get("/api/v1/notification-audiences/{notification_type}/", READS, tag="notifications")
async def get_notification_audience(member: CustomerCaller, bank: Bank, notification_type: str) -> NotificationAudience:
    """Get a notification audience.

    It is the one the team has chosen, or the default.
    """
    return render_audience(await audiences.get_audience(bank.pool, member.customer_id, notification_type))


@put(
    "/api/v1/notification-audiences/{notification_type}/",
    WRITES,
    tag="notifications",
    refuses=("notification-type-not-configurable",),
)
async def set_notification_audience(
    member: CustomerCaller, bank: Bank, notification_type: str, data: SetCustomerNotificationAudienceRequest
) -> NotificationAudience:
    """Set a notification audience.

    It replaces the one chosen before. Needs the role ADMIN.
    """
    audiences.get_notification_type(notification_type)
    roles, user_ids = data.roles or [], data.user_ids or []
    if data.roles is UNSET and data.user_ids is UNSET:
        raise InvalidInput.at("body", msg="names neither roles nor user_ids", kind="missing")
    details = {"roles": roles, "user_ids": user_ids}
    async with _audited(
        member, bank, "notification_audience.updated", resource_id=notification_type, details=details
    ) as audited:
        _check_role(member)
        chosen = await audiences.set_audience(
            audited.conn, member.customer_id, notification_type, roles=roles, user_ids=user_ids, now=member.wall
        )
    return render_audience(chosen)


@delete(
    "/api/v1/notification-audiences/{notification_type}/",
    WRITES,
    tag="notifications",
    refuses=("notification-type-not-configurable",),
)
async def clear_notification_audience(member: CustomerCaller, bank: Bank, notification_type: str) -> None:
    """Reset a notification audience.

    The default applies again, which is not the same as an empty audience. Needs the role ADMIN.
    """
    audiences.get_notification_type(notification_type)
    async with _audited(
        member, bank, "notification_audience.cleared", resource_id=notification_type, details={}
    ) as audited:
        _check_role(member)
        if not await audiences.clear_audience(audited.conn, member.customer_id, notification_type):
            audited.skip()


def _check_role(member: CustomerCaller) -> None:
    """Raise Refused `forbidden` unless the role may configure the notifications of others."""
    if _NEEDED_PERMISSION not in PERMISSIONS.get(member.access.role, frozenset()):
        raise Refused("forbidden", f"The role {member.access.role} does not include {_NEEDED_PERMISSION}.")


def _audited(
    member: CustomerCaller, bank: Bank, action: str, resource_id: UUID | str, details: dict[str, Any]
) -> AbstractAsyncContextManager[AuditedAction]:
    """Open the transaction of a change and its audit entry."""
    return audit_record.audited(
        bank.pool,
        bank.vault,
        member.customer_id,
        origin=member.origin,
        action=action,
        resource=(action.partition(".")[0], resource_id),
        details=details,
        now=member.wall,
    )
