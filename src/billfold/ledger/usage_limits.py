"""Limits on what a customer has done: they count for the customer, for its partner, and for an account at any bank."""

from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.settings.usage_limits import USAGE_LIMITS


async def limit_usage(bank: Bank, what: str, customer_id: UUID, *, account: UUID | None = None, more: int = 1) -> None:
    """Count what a customer has done, once or so often, before it is done. Raises Refused `usage-limit-reached`.

    It counts whatever becomes of it. `account` is that of another bank.
    """
    entry = await bank.directory.find("customer", customer_id)
    partner_id = None if entry is None else entry.partner_id
    uses = uses_of(what, customer=customer_id, partner=partner_id, account=account, more=more)
    async with bank.pool.acquire() as conn:
        await count_usage(conn, bank.settings.limits, uses, wall_now())


def uses_of(what: str, *, more: int = 1, **subjects: UUID | None) -> dict[tuple[str, UUID], int]:
    """Return what is counted for whom; where there is no limit, nothing is."""
    return {
        (f"{what}.{whose}", subject): more
        for whose, subject in subjects.items()
        if subject is not None and f"{what}.{whose}" in USAGE_LIMITS
    }
