"""Operations on the notifications of a member, and on the audiences of notification types."""

from contextlib import suppress
from functools import partial
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from billfold.audit.record import audited_by
from billfold.events.notifications import kinds, notify, payment_notifications
from billfold.events.notifications.kinds import NOTIFICATION_TYPES, CustomerNotification
from billfold.events.notifications.notify import RECIPIENTS_MAX
from billfold.http.operations import delete, get, patch, post, put, with_scope
from billfold.http.parameters import ListQuery, Query, page_of, parse_choice
from billfold.http.schemas import CursorList
from billfold.identity.users.rules import PERMISSIONS
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.errors import InvalidInput, Refused, Unavailable

READS = with_scope("notifications.read", "notifications")
WRITES = with_scope("notifications.write", "notifications")
_NEEDED_PERMISSION = "team.write"
Types = Annotated[
    list[str] | None,
    Query(
        name="type[]",
        parse=partial(parse_choice, list(NOTIFICATION_TYPES)),
        schema={"type": "string", "enum": list(NOTIFICATION_TYPES)},
    ),
]


class UpdateCustomerNotificationStatus(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """True if the notification has been read."""

    status: kinds.Status


@get("/api/v1/notifications/", READS, tag="notifications")
async def list_notifications(
    member: CustomerCaller, bank: Bank, wanted: ListQuery, status: kinds.Status | None = None, types: Types = None
) -> CursorList[CustomerNotification]:
    """List notifications.

    They are the member's, newest first. Times are of the wall clock.
    """
    await _notify_of_payments(member, bank)
    user_id = member.access.user_id
    listed = notify.NOTIFICATIONS[user_id is None, status]
    values = (member.customer_id, user_id, types)
    page = await wanted.read(bank, listed, *values, scope="notifications", filters=(*values, status))
    return page_of(page, kinds.open_notifications(bank.vault, member.customer_id, page.items))


@get("/api/v1/notifications/unread/", READS, tag="notifications")
async def count_unread_notifications(member: CustomerCaller, bank: Bank) -> kinds.UnreadNotifications:
    """Count unread notifications.

    They are the member's; a service user has none.
    """
    await _notify_of_payments(member, bank)
    count = await notify.count_unread(bank.pool, member.customer_id, member.access.user_id)
    return kinds.UnreadNotifications(count=count)


@post("/api/v1/notifications/mark-all-read/", WRITES, status=200, tag="notifications")
async def mark_all_notifications_read(member: CustomerCaller, bank: Bank) -> kinds.UnreadNotifications:
    """Mark all notifications as read.

    Only for this member. Returns how many are unread afterwards.
    """
    user_id = _reader(member)
    details = {"status": "READ"}
    async with audited_by(
        member, bank, member.customer_id, "notification.updated", resource_id=None, details=details
    ) as audited:
        if not await notify.set_all_read(audited.conn, member.customer_id, user_id, now=member.wall):
            audited.skip()
    return kinds.UnreadNotifications(count=await notify.count_unread(bank.pool, member.customer_id, user_id))


@get("/api/v1/notifications/{notification_id}/", READS, tag="notifications")
async def get_notification(member: CustomerCaller, bank: Bank, notification_id: UUID) -> CustomerNotification:
    """Read one notification. Reading does not mark it as read."""
    return await _get(member, bank, notification_id)


@patch("/api/v1/notifications/{notification_id}/", WRITES, tag="notifications")
async def update_notification(
    member: CustomerCaller, bank: Bank, notification_id: UUID, data: UpdateCustomerNotificationStatus
) -> CustomerNotification:
    """Mark a notification as read, or as unread again, only for this member."""
    await _get(member, bank, notification_id)
    user_id = _reader(member)
    details = {"status": data.status}
    async with audited_by(
        member, bank, member.customer_id, "notification.updated", resource_id=notification_id, details=details
    ) as audited:
        if not await notify.set_status(
            audited.conn,
            member.customer_id,
            user_id,
            notification_id=notification_id,
            status=data.status,
            now=member.wall,
        ):
            audited.skip()
    return await _get(member, bank, notification_id)


async def _notify_of_payments(member: CustomerCaller, bank: Bank) -> None:
    with suppress(Unavailable):  # a node of a cluster does not answer: the worker does it later
        await payment_notifications.notify_of_payments(bank.pool, bank.vault, now=member.wall, wait=False)


def _reader(member: CustomerCaller) -> UUID:
    """Return the user who reads. Raises Refused `forbidden` for a service user."""
    if member.access.user_id is None:
        raise Refused("forbidden", "A service user cannot mark notifications as read.")
    return member.access.user_id


async def _get(member: CustomerCaller, bank: Bank, notification_id: UUID) -> CustomerNotification:
    stored = await notify.get_notification(
        bank.pool, member.customer_id, member.access.user_id, notification_id=notification_id
    )
    return kinds.open_notifications(bank.vault, member.customer_id, [stored])[0]


class SetCustomerNotificationAudienceRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The complete new audience; an omitted list is empty."""

    roles: Annotated[list[str], Meta(max_length=RECIPIENTS_MAX)] | UnsetType = UNSET
    user_ids: Annotated[list[UUID], Meta(max_length=RECIPIENTS_MAX)] | UnsetType = UNSET


@get("/api/v1/notification-audiences/", READS, tag="notifications")
async def list_notification_audiences(member: CustomerCaller, bank: Bank) -> kinds.NotificationAudiences:
    """List the audience of every type for which the team may choose one, chosen or not."""
    return kinds.NotificationAudiences(items=await notify.list_audiences(bank.pool, member.customer_id))


@get("/api/v1/notification-audiences/{notification_type}/", READS, tag="notifications")
async def get_notification_audience(
    member: CustomerCaller, bank: Bank, notification_type: str
) -> kinds.NotificationAudience:
    """Get a notification audience.

    It is the one the team has chosen, or the default.
    """
    return await notify.get_audience(bank.pool, member.customer_id, notification_type)


@put(
    "/api/v1/notification-audiences/{notification_type}/",
    WRITES,
    tag="notifications",
    refuses=("notification-type-not-configurable",),
)
async def set_notification_audience(
    member: CustomerCaller, bank: Bank, notification_type: str, data: SetCustomerNotificationAudienceRequest
) -> kinds.NotificationAudience:
    """Set a notification audience.

    It replaces the one chosen before. Needs the role ADMIN.
    """
    notify.get_notification_type(notification_type)
    roles, user_ids = data.roles or [], data.user_ids or []
    if data.roles is UNSET and data.user_ids is UNSET:
        raise InvalidInput.at("body", msg="names neither roles nor user_ids", kind="missing")
    details = {"roles": roles, "user_ids": user_ids}
    async with audited_by(
        member,
        bank,
        member.customer_id,
        "notification_audience.updated",
        resource_id=notification_type,
        details=details,
    ) as audited:
        _check_role(member)
        return await notify.set_audience(
            audited.conn, member.customer_id, notification_type, roles=roles, user_ids=user_ids, now=member.wall
        )


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
    notify.get_notification_type(notification_type)
    async with audited_by(
        member, bank, member.customer_id, "notification_audience.cleared", resource_id=notification_type
    ) as audited:
        _check_role(member)
        if not await notify.clear_audience(audited.conn, member.customer_id, notification_type):
            audited.skip()


def _check_role(member: CustomerCaller) -> None:
    """Raise Refused `forbidden` unless the role may configure the notifications of others."""
    if _NEEDED_PERMISSION not in PERMISSIONS.get(member.access.role, frozenset()):
        raise Refused("forbidden", f"The role {member.access.role} does not include {_NEEDED_PERMISSION}.")
