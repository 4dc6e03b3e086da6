"""Who changes a team, and the transaction of a change with audit entry and notifications.

Administrators are named in e-mails, notifications and the audit log.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.access.team import store as team_store
from billfold.audit import record as audit_record
from billfold.audit.record import AuditedAction
from billfold.audit.types import Origin
from billfold.events.notifications import notify as notification_notify
from billfold.http.caller import CustomerCaller
from billfold.ledger.bank import Bank

if TYPE_CHECKING:
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Administrator:
    """A user or service user who may change the team of a customer.

    `scopes` are those of a service user, None for a user. `now` is the bank's time, `wall` wall time.
    `pages` is where mailed links lead.
    """

    pool: Pool
    vault: Vault
    customer_id: UUID
    customer_name: str
    name: str
    origin: Origin
    scopes: frozenset[str] | None
    pages: str
    now: datetime
    wall: datetime


async def calling_administrator(member: CustomerCaller, bank: Bank) -> Administrator:
    """Return the caller. The authenticator has checked that token and role include `team.write`."""
    access = member.access
    name = access.client_id
    if access.member_id is not None:
        found = await team_store.get_member(bank.pool, member.customer_id, access.member_id, now=member.now)
        name = found.name
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=member.customer_id,
        customer_name=(await member.customer(bank)).name,
        name=name,
        origin=member.origin,
        scopes=access.scopes if access.user_id is None else None,
        pages=bank.settings.auth_origin,
        now=member.now,
        wall=member.wall,
    )


def audited(
    by: Administrator, action: str, resource: tuple[str, UUID | str | None], **details: Any
) -> AbstractAsyncContextManager[AuditedAction]:
    """Open the transaction of a change; its audit entry is written also when it is refused."""
    return audit_record.audited(
        by.pool,
        by.vault,
        by.customer_id,
        origin=by.origin,
        action=action,
        resource=resource,
        now=by.wall,
        details=details,
    )


async def notify_administrators(
    audited_action: AuditedAction, by: Administrator, kind: str, title: str, description: str
) -> None:
    """Notify the administrators, in the transaction of the change."""
    await notification_notify.notify(
        audited_action.conn,
        by.vault,
        by.customer_id,
        kind=kind,
        title=title,
        description=description,
        metadata={"member_id": audited_action.resource_id},
        now=by.wall,
    )
