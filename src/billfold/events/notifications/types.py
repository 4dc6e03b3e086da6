"""Notifications and audiences, as they are read and answered. Instants are wall time."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.events.notifications.kinds import NOTIFICATION_TYPES

TypeText = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(NOTIFICATION_TYPES)})]
Status = Literal["READ", "UNREAD"]


class CustomerNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification of a member. A service user has no `status`: it sees all of its customer's."""

    id: UUID
    title: str
    description: str
    type: TypeText
    status: Status | None
    created_at: datetime
    notification_metadata: dict[str, Any] | None
    object_type: Literal["CustomerNotification"] = "CustomerNotification"


class NotificationAudience(msgspec.Struct, frozen=True, kw_only=True):
    """All members with one of the roles, and the listed users. Both empty: no recipients."""

    notification_type: TypeText
    roles: list[str]
    user_ids: list[UUID]
    is_default: bool
    object_type: Literal["NotificationAudience"] = "NotificationAudience"


class NotificationAudiences(msgspec.Struct, frozen=True, kw_only=True):
    """The audience of every type for which a team may choose one."""

    items: list[NotificationAudience]
    object_type: Literal["List"] = "List"
