"""The types of notifications: default audience of each, and whether a team may choose another.

The only table of the platform's defaults; `docs/reference/notifications.md` is generated from it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec

from billfold.identity.users.rules import Role
from billfold.platform.crypto import Vault, associated_data

ROLES: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")
"""Roles of users: a client in the role SERVICE reads no e-mail."""


class NotificationType(msgspec.Struct, frozen=True):
    """A type of notification, its default audience, and whether a team may choose another."""

    name: str
    raised_when: str
    roles: tuple[Role, ...]
    configurable: bool = True


_INITIATORS: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "INITIATOR")
_READERS: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "VIEWER")
_ADMIN: Final[tuple[Role, ...]] = ("ADMIN",)

NOTIFICATION_TYPES: Final[Mapping[str, NotificationType]] = {
    kind.name: kind
    for kind in (
        NotificationType(
            "TRANSFER_REQUEST_PENDING_REVIEW",
            "a transfer waits for an approval",
            ("ADMIN", "MANAGER", "APPROVER"),
        ),
        NotificationType("TRANSFER_REQUEST_REVIEWED", "a transfer was approved or denied", _INITIATORS),
        NotificationType(
            "TRANSFER_REQUEST_BLOCKED",
            "the team has changed, and nobody can approve a waiting transfer any more",
            _INITIATORS,
        ),
        NotificationType("REVERSAL_REQUESTED", "a payer requests a payment back", _INITIATORS),
        NotificationType("TRANSFER_COMPLETED", "a transfer was carried out", _INITIATORS),
        NotificationType("TRANSFER_REJECTED", "a transfer was rejected", _INITIATORS),
        NotificationType("FUNDS_RECEIVED", "money arrived", ("ADMIN", "MANAGER")),
        NotificationType("COUNTERPARTY_STATUS_CHANGED", "a counterparty was linked, verified or unlinked", _INITIATORS),
        NotificationType("CARD_STATUS_CHANGED", "a card was frozen or closed", _INITIATORS),
        NotificationType("STATEMENT_AVAILABLE", "a statement can be downloaded", _READERS),
        NotificationType("REPORT_READY", "a report can be downloaded", _READERS),
        NotificationType(
            "TEAM_MEMBER_CHANGED", "a member joined, left, or got another role", _ADMIN, configurable=False
        ),
        NotificationType(
            "SECURITY_ALERT", "a sign-in was locked, or a credential was changed", _ADMIN, configurable=False
        ),
        NotificationType("APPLICATION_STATUS_CHANGED", "a business application was decided", _ADMIN),
        NotificationType("SUBSCRIPTION_DELIVERY_FAILING", "deliveries of a webhook subscription keep failing", _ADMIN),
    )
}
"""Type -> its description, in the order in which they are listed."""


TypeText = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(NOTIFICATION_TYPES)})]
Status = Literal["READ", "UNREAD"]


class CustomerNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification of a member. For a service user it has no `status`: a service user sees all of its customer's."""

    id: UUID
    title: str
    description: str
    type: TypeText
    status: Status | None
    created_at: datetime
    notification_metadata: dict[str, Any] | None
    object_type: Literal["CustomerNotification"] = "CustomerNotification"


class UnreadNotifications(msgspec.Struct, frozen=True, kw_only=True):
    """The number of a member's unread notifications, counted up to 1,000."""

    count: int
    object_type: Literal["UnreadNotifications"] = "UnreadNotifications"


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


def seal_description(vault: Vault, customer_id: UUID, notification_id: UUID, /, plain: str) -> str:
    """Return the description of a notification, sealed."""
    return vault.seal_text(plain, _place(customer_id, notification_id))


def open_notifications(
    vault: Vault, customer_id: UUID, stored: Iterable[CustomerNotification]
) -> list[CustomerNotification]:
    """Return notifications of a customer with their descriptions opened."""
    return [
        msgspec.structs.replace(each, description=vault.open_text(each.description, _place(customer_id, each.id)))
        for each in stored
    ]


def _place(customer_id: UUID, notification_id: UUID) -> bytes:
    return associated_data("notification", "description", notification_id, tenant_id=customer_id)
