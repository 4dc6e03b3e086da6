"""What users are notified of: every type, its default audience, and whether a team may choose another.

The one table of the platform's defaults; `docs/reference/notifications.md` is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from billfold.identity.users.types import Role

ROLES: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")
"""Roles that users have: a client in the role SERVICE reads no mail."""


class NotificationType(msgspec.Struct, frozen=True):
    """A type of notification, its default audience, and whether a team may choose another."""

    name: str
    raised_when: str
    roles: tuple[Role, ...]
    configurable: bool = True


_INITIATORS: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "INITIATOR")
_READERS: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "VIEWER")
_ADMIN: Final[tuple[Role, ...]] = ("ADMIN",)

NOTIFICATION_TYPES: Final[Mapping[str, NotificationType]] = MappingProxyType(
    {
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
            NotificationType("TRANSFER_COMPLETED", "a transfer was carried out", _INITIATORS),
            NotificationType("TRANSFER_REJECTED", "a transfer was rejected", _INITIATORS),
            NotificationType("FUNDS_RECEIVED", "money arrived", ("ADMIN", "MANAGER")),
            NotificationType(
                "COUNTERPARTY_STATUS_CHANGED", "a counterparty was linked, verified or unlinked", _INITIATORS
            ),
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
            NotificationType(
                "SUBSCRIPTION_DELIVERY_FAILING", "deliveries of a webhook subscription keep failing", _ADMIN
            ),
        )
    }
)
"""Type -> what is said of it here, in the order in which they are listed."""
