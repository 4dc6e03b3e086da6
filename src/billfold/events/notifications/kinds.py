"""What people are told of: every type, who hears of it by default, and whether a team may choose.

The one table of the platform's defaults; `docs/reference/notifications.md` is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from billfold.access.users.types import Role

ROLES: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")
"""Roles that people have: a program in the role SERVICE reads no mail."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A type of notification: who hears of it by default, and whether a team may change that."""

    name: str
    told_when: str
    roles: tuple[Role, ...]
    configurable: bool = True


_DOERS: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "INITIATOR")
_READERS: Final[tuple[Role, ...]] = ("ADMIN", "MANAGER", "VIEWER")
_ADMIN: Final[tuple[Role, ...]] = ("ADMIN",)

KINDS: Final[Mapping[str, Kind]] = MappingProxyType({
    kind.name: kind
    for kind in (
        Kind(
            name="TRANSFER_REQUEST_PENDING_REVIEW",
            told_when="a transfer waits for somebody's approval",
            roles=("ADMIN", "MANAGER", "APPROVER"),
        ),
        Kind(
            name="TRANSFER_REQUEST_REVIEWED",
            told_when="a transfer was approved or denied",
            roles=_DOERS,
        ),
        Kind(name="TRANSFER_COMPLETED", told_when="a transfer was carried out", roles=_DOERS),
        Kind(name="TRANSFER_REJECTED", told_when="a transfer was rejected", roles=_DOERS),
        Kind(name="FUNDS_RECEIVED", told_when="money arrived", roles=("ADMIN", "MANAGER")),
        Kind(
            name="COUNTERPARTY_STATUS_CHANGED",
            told_when="a counterparty was linked, verified or unlinked",
            roles=_DOERS,
        ),
        Kind(
            name="STATEMENT_AVAILABLE", told_when="a statement can be downloaded", roles=_READERS
        ),
        Kind(name="REPORT_READY", told_when="a report can be downloaded", roles=_READERS),
        Kind(
            name="TEAM_MEMBER_CHANGED",
            told_when="somebody joined, left, or got another role",
            roles=_ADMIN,
            configurable=False,
        ),
        Kind(
            name="SECURITY_ALERT",
            told_when="a sign-in was locked, or a credential was changed",
            roles=_ADMIN,
            configurable=False,
        ),
        Kind(
            name="APPLICATION_STATUS_CHANGED",
            told_when="a business application was decided",
            roles=_ADMIN,
        ),
        Kind(
            name="SUBSCRIPTION_DELIVERY_FAILING",
            told_when="deliveries of a webhook subscription keep failing",
            roles=_ADMIN,
        ),
    )
})  # fmt: skip
"""Type -> what is said of it here, in the order in which they are listed."""
