"""What users receive: every type, who hears of it by default, and whether a team may choose.

The one table of the platform's defaults; `docs/reference/notifications.md` is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from billfold.access.users.types import Role

ROLES: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")
"""Roles that users have: a client in the role SERVICE reads no mail."""


class NotificationType(msgspec.Struct, frozen=True, kw_only=True):
    """A type of notification: who hears of it by default, and whether a team may change that."""

    name: str
    raised_when: str
    roles: tuple[Role, ...]
    configurable: bool = True


_DOERS: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "INITIATOR")
_READERS: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "VIEWER")
_ADMIN: Final[tuple[Role, ...]] = ("ADMIN",)

NOTIFICATION_TYPES: Final[Mapping[str, NotificationType]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            NotificationType(
                name="TRANSFER_REQUEST_PENDING_REVIEW",
                raised_when="a transfer waits for an approval",
                roles=("ADMIN", "MANAGER", "APPROVER"),
            ),
            NotificationType(
                name="TRANSFER_REQUEST_REVIEWED", raised_when="a transfer was approved or denied", roles=_DOERS
            ),
            NotificationType(name="TRANSFER_COMPLETED", raised_when="a transfer was carried out", roles=_DOERS),
            NotificationType(name="TRANSFER_REJECTED", raised_when="a transfer was rejected", roles=_DOERS),
            NotificationType(name="FUNDS_RECEIVED", raised_when="money arrived", roles=("ADMIN", "MANAGER")),
            NotificationType(
                name="COUNTERPARTY_STATUS_CHANGED",
                raised_when="a counterparty was linked, verified or unlinked",
                roles=_DOERS,
            ),
            NotificationType(name="STATEMENT_AVAILABLE", raised_when="a statement can be downloaded", roles=_READERS),
            NotificationType(name="REPORT_READY", raised_when="a report can be downloaded", roles=_READERS),
            NotificationType(
                name="TEAM_MEMBER_CHANGED",
                raised_when="a member joined, left, or got another role",
                roles=_ADMIN,
                configurable=False,
            ),
            NotificationType(
                name="SECURITY_ALERT",
                raised_when="a sign-in was locked, or a credential was changed",
                roles=_ADMIN,
                configurable=False,
            ),
            NotificationType(
                name="APPLICATION_STATUS_CHANGED", raised_when="a business application was decided", roles=_ADMIN
            ),
            NotificationType(
                name="SUBSCRIPTION_DELIVERY_FAILING",
                raised_when="deliveries of a webhook subscription keep failing",
                roles=_ADMIN,
            ),
        )
    }
)
"""Type -> what is said of it here, in the order in which they are listed."""
