"""Sign-ins of a partner's users, in the audit log of the partner's own customer. `now` is wall time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from billfold.audit import record as audit_record
from billfold.audit.types import (NewEntry)
from billfold.ledger.types import (Origin)
from billfold.http.raw_request import RawRequest
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.identity.partners.types import PartnerKey, PartnerUser
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)

LOGIN, LOCKED = "user.login", "user.locked"


async def record_login(
    bank: Bank, conn: Connection, user: PartnerUser | PartnerKey, request: RawRequest, *, now: datetime, **details: str
) -> None:
    """Record a sign-in, in the transaction that issues its token."""
    await audit_record.record(conn, bank.vault, _entry(user, request, LOGIN, details=details), now=now)


def record_failed_login(
    bank: Bank, user: PartnerUser | PartnerKey, request: RawRequest, *, locks: bool = False, **details: str
) -> None:
    """Record a failed sign-in, and that it locks the user, beside the response.

    The time of the response does not tell whether the user name is known.
    """
    entries = [_entry(user, request, LOGIN, failed=True, details=details)]
    if locks:
        entries.append(_entry(user, request, LOCKED, failed=True, details={}))
    bank.background.start(_record(bank, entries))


async def _record(bank: Bank, entries: list[NewEntry]) -> None:
    async with bank.pool.acquire() as conn, conn.transaction():
        await audit_record.record_all(conn, bank.vault, entries, now=wall_now())


def _entry(
    user: PartnerUser | PartnerKey,
    request: RawRequest,
    action: str,
    *,
    details: Mapping[str, str],
    failed: bool = False,
) -> NewEntry:
    return NewEntry(
        customer_id=user.own_customer_id,
        origin=Origin(
            kind="PARTNER",
            name=user.partner_slug,
            client_id=f"partner-user:{user.user_id}",
            ip_address=request.client,
            user_agent=request.header(b"user-agent"),
        ),
        action=action,
        resource_type="partner_user",
        resource_id=user.user_id,
        outcome="FAILURE" if failed else "SUCCESS",
        details={"username": user.username, **details},
    )
