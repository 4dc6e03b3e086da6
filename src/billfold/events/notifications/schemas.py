"""Notifications and audiences as the API returns them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from billfold.events.notifications.types import Audience, Notification


class CustomerNotification(msgspec.Struct, kw_only=True):
    """A notification of a member. A service user has no `status`: it sees all of its customer's."""

    id: UUID
    title: str
    description: str
    type: str
    status: Literal["READ", "UNREAD"] | None
    created_at: datetime
    notification_metadata: dict[str, Any] | None
    object_type: Literal["CustomerNotification"] = "CustomerNotification"


class NotificationAudience(msgspec.Struct, kw_only=True):
    """All members with one of the roles, and the listed users. Both empty: no recipients."""

    notification_type: str
    roles: list[str]
    user_ids: list[UUID]
    is_default: bool
    object_type: Literal["NotificationAudience"] = "NotificationAudience"


class NotificationAudiences(msgspec.Struct, kw_only=True):
    """The audience of every type for which a team may choose one."""

    items: list[NotificationAudience]
    object_type: Literal["List"] = "List"


def render_notification(row: Notification) -> CustomerNotification:
    """Return a notification as the API shows it."""
    return CustomerNotification(
        id=row.notification_id,
        title=row.title,
        description=row.description,
        type=row.type,
        status=row.status,
        created_at=row.created_at,
        notification_metadata=row.metadata,
    )


def render_audience(audience: Audience) -> NotificationAudience:
    """Return an audience as the API shows it."""
    return NotificationAudience(
        notification_type=audience.type,
        roles=list(audience.roles),
        user_ids=list(audience.user_ids),
        is_default=audience.is_default,
    )
