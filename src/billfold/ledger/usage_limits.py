"""Limits on what a customer has done: they count for the customer, for its partner, and for an account at any bank."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.platform.clock import wall_now
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.settings.usage_limits import USAGE_LIMITS

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection


async def limit_usage(
    bank: Bank,
    what: str,
    customer_id: UUID,
    *,
    conn: Connection | None = None,
    account: UUID | None = None,
    of_partner: bool = False,
    more: int = 1,
    wall: datetime | None = None,
) -> None:
    """Count what a customer has done, once or so often, before it is done. Raises Refused `usage-limit-reached`.

    It counts whatever becomes of it, or with the transaction of `conn`. `account` is that of another bank; what is
    `of_partner` its own customer does for all others.
    """
    own_id = None if of_partner else customer_id
    subjects = {"customer": own_id, "partner": await _partner_of(bank, customer_id), "account": account}
    uses = {
        (f"{what}.{whose}", subject): more
        for whose, subject in subjects.items()
        if subject is not None and f"{what}.{whose}" in USAGE_LIMITS
    }
    wall = wall or wall_now()
    if conn is not None:
        await count_usage(conn, bank.settings.limits, uses, wall)
        return
    async with bank.pool.acquire() as own:
        await count_usage(own, bank.settings.limits, uses, wall)


async def _partner_of(bank: Bank, customer_id: UUID) -> UUID | None:
    entry = await bank.directory.find("customer", customer_id)
    return None if entry is None else entry.partner_id
