"""The administrator who changes a team: rights, and the audited transaction of a change.

Administrators are named in e-mails, notifications and the audit log.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from billfold.approvals.routes import actor_fields
from billfold.approvals.store.approval_rules import requirement_for_change
from billfold.approvals.types import Actor, ApprovalRequirement
from billfold.audit import record
from billfold.audit.record import AuditedAction
from billfold.events.notifications import notify
from billfold.identity.members import rules
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.settings.usage_limits import USAGE_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Administrator(Actor):
    """A user or service user who may change the team of a customer.

    `pages` is where mailed links lead. `is_approved`: the change was requested before and has been approved.
    """

    customer_name: str
    pages: str
    is_approved: bool = False
    limits: Mapping[str, int] = field(default_factory=lambda: USAGE_LIMITS)

    @property
    def permissions(self) -> frozenset[str]:
        """The administrator's permissions, which are also the most that they may grant."""
        return rules.permissions_of(self.role, self.scopes)


async def calling_administrator(member: CustomerCaller, bank: Bank) -> Administrator:
    """Return the caller. The authenticator has checked that token and role include `team.write`."""
    return Administrator(
        **await actor_fields(member, bank),
        customer_name=(await member.customer(bank)).name,
        pages=bank.settings.auth_origin,
        limits=bank.settings.limits,
    )


@asynccontextmanager
async def audited(
    by: Administrator, action: str, resource: tuple[str, UUID | str | None], **details: Any
) -> AsyncIterator[AuditedAction]:
    """Open the transaction of a change; its audit entry is written even if the change is refused.

    Raises Refused `forbidden` for anyone who may not change the team.
    """
    async with record.audited(
        by,
        by.customer_id,
        by.origin,
        action,
        resource_type=resource[0],
        resource_id=resource[1],
        details=details,
        now=by.wall,
    ) as audited_action:
        rules.check_grant(by.permissions, ())
        yield audited_action


async def check_grant(
    audited_action: AuditedAction, by: Administrator, gift: Collection[str]
) -> ApprovalRequirement | None:
    """Refuse a grant that exceeds the granter's permissions; return the approvals it requires, or None.

    Every change that grants permissions begins here. If it requires approvals, a request is made instead.
    Raises Refused `forbidden`.
    """
    rules.check_grant(by.permissions, gift)
    if by.is_approved:
        return None
    terms = await requirement_for_change(audited_action.conn, by.customer_id, "MEMBER_ROLE")
    return terms if terms.required else None


async def notify_administrators(
    audited_action: AuditedAction, by: Administrator, kind: str, title: str, description: str
) -> None:
    """Notify the administrators, in the transaction of the change."""
    await notify.notify(
        audited_action.conn,
        by.vault,
        by.customer_id,
        kind=kind,
        title=title,
        description=description,
        metadata={"member_id": audited_action.resource_id},
        now=by.wall,
    )
