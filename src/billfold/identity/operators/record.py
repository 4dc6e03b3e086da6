"""What an operator does is recorded in the bank's own audit log, with who did it.

The log of a customer says that the bank changed something; the bank's says what was done and by whom.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.audit.record import record
from billfold.audit.types import NewEntry, Outcome
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError

if TYPE_CHECKING:
    from billfold.identity.operators.types import Operator
    from billfold.ledger.bank import Bank


@asynccontextmanager
async def recorded(
    bank: Bank, by: Operator, action: str, resource: tuple[str, UUID | str | None], **details: str
) -> AsyncIterator[None]:
    """Do something that has transactions of its own; who begins it is recorded before, what came of it when it ends.

    `action` is `<resource>.<verb>`. What is refused is recorded as FAILURE, and goes on. What ends in no way at all, as
    in a crash, leaves `<resource>.<verb>_begun` alone, which says who may have done it.
    """
    await _record(bank, by, f"{action}_begun", resource, outcome="SUCCESS", details=details)
    try:
        yield
    except BillfoldError as failure:
        await _record(bank, by, action, resource, outcome="FAILURE", details={**details, "refused": str(failure)})
        raise
    await _record(bank, by, action, resource, outcome="SUCCESS", details=details)


async def _record(
    bank: Bank,
    by: Operator,
    action: str,
    resource: tuple[str, UUID | str | None],
    *,
    outcome: Outcome,
    details: dict[str, str],
) -> None:
    entry = NewEntry(
        customer_id=bank_customer_id(bank.seed),
        origin=by.origin,
        action=action,
        resource_type=resource[0],
        resource_id=resource[1],
        outcome=outcome,
        details=details,
    )
    async with bank.pool.acquire() as conn, conn.transaction():
        await record(conn, bank.vault, entry, now=wall_now())
