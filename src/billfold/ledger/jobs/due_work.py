"""Customers for whom something is due, brought up to date in small batches.

Batches are small so that payments do not wait long behind due work. The bank's own customer is not
included: its day is closed after all others (`payments/clearing/worker.py`).
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.ledger.jobs.commands import CatchUp
from billfold.ledger.jobs.scheduler import WorkResults
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.ids import command_id, derive

BATCH_MAX = 100
"""How many customers are brought up to date in one batch."""
DUE_WORK_LOCK = 0x64756500  # "due"
"""The advisory lock under which one process at a time does due work or moves the clock."""

_PARALLEL_BATCHES = 2  # one batch is planned while the other commits
_DUE = """
SELECT customer_id FROM ledger_head
 WHERE due_at <= $1 AND customer_id <> ALL($2::uuid[]) ORDER BY due_at LIMIT $3
"""
_NEXT_DUE = "SELECT min(due_at) FROM ledger_head"


def bank_customer_id(seed: bytes) -> UUID:
    """Return the id of the customer that is the bank itself, derived from the seed."""
    return derive(seed, command_id("founding", "house"), 0)


async def next_due(conn: Connection | Pool) -> datetime | None:
    """Return the first instant at which anything is due, the end of the bank's own day included."""
    due: datetime | None = await conn.fetchval(_NEXT_DUE)
    return due


async def catch_up_due(bank: Bank, by: datetime, *, put_aside: Collection[str] = ()) -> WorkResults[UUID]:
    """Bring every customer with something due up to `by` to the bank's now, which is not earlier.

    A customer for whom it fails stays due and does not block the others. Those `put_aside` are left out.
    """
    result = WorkResults[UUID](Counter(), {})
    excluded = {bank_customer_id(bank.seed), *map(UUID, put_aside)}
    lock = asyncio.Lock()

    async def run_batches() -> None:
        while True:
            async with lock:
                rows = await bank.pool.fetch(_DUE, by, list(excluded), BATCH_MAX)
                customers = [row["customer_id"] for row in rows]
                excluded.update(customers)
            if not customers:
                return
            work = {each: bank.engine.submit(CatchUp(caller="due", key=each, customers=(each,))) for each in customers}
            for answer in (await result.gather(work)).values():
                result.happened.update(answer.outcome["happened"])
            excluded.difference_update(set(customers) - result.failed.keys())

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_PARALLEL_BATCHES):
            tasks.create_task(run_batches())
    return result
