"""Who in the team hears of what."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from billfold.access.users.rules import PERMISSIONS
from billfold.audit import record as audit_record
from billfold.events.notifications import audiences
from billfold.events.notifications.audiences import RECIPIENTS_MAX
from billfold.events.notifications.schemas import NotificationAudience, NotificationAudiences, render_audience
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import NOTIFICATIONS
from billfold.http.operations import delete, get, put, with_scope
from billfold.ledger.bank import Bank
from billfold.platform.errors import InvalidInput, Refused

READS = with_scope("notifications.read", NOTIFICATIONS)
WRITES = with_scope("notifications.write", NOTIFICATIONS)
_NEEDED_PERMISSION = "team.write"


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

    It is the one the team has chosen, or the default."""
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

    It replaces the one chosen before. Needs the role ADMIN."""
    audiences.get_notification_type(notification_type)
    roles, user_ids = data.roles or [], data.user_ids or []
    if data.roles is UNSET and data.user_ids is UNSET:
        raise InvalidInput.at("body", msg="names neither roles nor user_ids", kind="missing")
    async with audit_record.audited(
        bank.pool,
        bank.vault,
        member.customer_id,
        member.origin,
        "notification_audience.updated",
        resource=("notification_audience", notification_type),
        details={"roles": roles, "user_ids": user_ids},
        now=member.wall,
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

    The default applies again, which is not the same as an empty audience. Needs the role ADMIN."""
    audiences.get_notification_type(notification_type)
    async with audit_record.audited(
        bank.pool,
        bank.vault,
        member.customer_id,
        member.origin,
        "notification_audience.cleared",
        resource=("notification_audience", notification_type),
        now=member.wall,
    ) as audited:
        _check_role(member)
        if not await audiences.clear_audience(audited.conn, member.customer_id, notification_type):
            audited.skip()


def _check_role(member: CustomerCaller) -> None:
    """Raise Refused `forbidden` unless the role may say what others hear of."""
    if _NEEDED_PERMISSION not in PERMISSIONS.get(member.access.role, frozenset()):
        raise Refused("forbidden", f"The role {member.access.role} does not include {_NEEDED_PERMISSION}.")
