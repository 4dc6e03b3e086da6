"""Makes the statements of months that are over, customer by customer, one process at a time.

A process that dies leaves nothing half made: statements of a customer are written down together, and what a month
still lacks is what the next process makes.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.failed_work import PutAside, read_put_aside
from billfold.platform.database.shortage import error_summary
from billfold.reports.statements import store
from billfold.reports.statements.making import make_statements
from billfold.reports.statements.types import Month

log = structlog.get_logger(__name__)

STATEMENTS_LOCK: Final = 0x57A7_E3E7
"""The advisory lock of the process that makes statements."""
PAUSE_SECONDS: Final = 5.0
_BATCH_SIZE: Final = 200
_KIND: Final = "statements"


class Progress(NamedTuple):
    """How many statements of a month were made, and for how many customers that failed."""

    made: int
    failed: int


class StatementMaker:
    """A task of the worker. It looks for a month that is over now and then."""

    def __init__(self) -> None:
        self._next_at = 0.0

    async def __call__(self, bank: Bank) -> int:
        """Make what is due; return how many statements."""
        if monotonic() < self._next_at:
            return 0
        made = 0
        for month in await store.list_unfinished(bank.pool, await bank.now()):
            async with claimed(bank) as is_ours:
                if not is_ours:
                    break
                async for progress in make_month(bank, month):
                    made = max(made, progress.made)
        self._next_at = monotonic() + PAUSE_SECONDS
        return made


@asynccontextmanager
async def claimed(bank: Bank) -> AsyncIterator[bool]:
    """Tell whether this process is the one that makes statements, and stay it until the end."""
    async with bank.pool.acquire() as conn:
        is_ours: bool = await conn.fetchval("SELECT pg_try_advisory_lock($1)", STATEMENTS_LOCK)
        try:
            yield is_ours
        finally:
            if is_ours:
                await conn.execute("SELECT pg_advisory_unlock($1)", STATEMENTS_LOCK)


async def make_month(bank: Bank, month: Month) -> AsyncIterator[Progress]:
    """Make the statements that a month lacks, and say after each customer how far it is.

    A customer whose statements fail is put aside and tried again later; the others are not held up.
    """
    aside = await read_put_aside(bank.pool, _KIND, wall_now())
    made, failed, after = 0, dict[str, Exception](), UUID(int=0)
    turns = asyncio.Semaphore(max(2, os.cpu_count() or 1))  # printing takes a core, without the interpreter's lock

    async def make(customer_id: UUID) -> int:
        async with turns:
            try:
                return await make_statements(bank, customer_id, month)
            except Exception as error:  # noqa: BLE001 - whatever it is, the other customers get theirs
                failed[_item(customer_id, month)] = error
                return 0

    while batch := await store.list_due_customers(bank.pool, month, after, _BATCH_SIZE):
        after = batch[-1]
        for each in asyncio.as_completed([make(one) for one in batch if _item(one, month) not in aside.waiting]):
            made += await each
            yield Progress(made, len(failed))
    await _finish(bank, month, aside, failed=failed)
    if made or failed:
        log.info("statements_made", month=month.key, made=made, failed=len(failed))


async def _finish(bank: Bank, month: Month, aside: PutAside, *, failed: dict[str, Exception]) -> None:
    of_month = {item: tries for item, tries in aside.due.items() if item.endswith(month.key)}
    await aside._replace(due=of_month).record(bank.pool, failed, wall_now())
    for item, error in failed.items():
        log.error("statements_failed", item=item, error=error_summary(error))
    if not await store.count_due(bank.pool, month):
        await store.finish(bank.pool, month, await bank.now())


def _item(customer_id: UUID, month: Month) -> str:
    return f"{customer_id} {month.key}"
