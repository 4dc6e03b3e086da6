"""What is read and written of notifications. Instants are wall time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

Status = Literal["READ", "UNREAD"]


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    """Who hears of a type: everybody who has one of the roles or is one of the users.

    Both empty means no recipients. `is_default`: the team has not chosen.
    """

    type: str
    roles: tuple[str, ...]
    user_ids: tuple[UUID, ...]
    is_default: bool


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification; `status` is None for a service user, which reads none."""

    notification_id: UUID
    type: str
    title: str
    description: str
    metadata: dict[str, Any] | None
    created_at: datetime
    status: Status | None


class NotificationReader(msgspec.Struct, frozen=True, kw_only=True):
    """Whose notifications are read: a member of the customer's team, or a service user (None)."""

    customer_id: UUID
    user_id: UUID | None
