"""What a process that opened the bank shows of itself every few seconds: its connections and its queue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from billfold.ledger.bank import Bank
from billfold.platform.telemetry.metrics import (
    COMMANDS_WAITING,
    POOL_CONNECTIONS,
    POOL_CONNECTIONS_MAX,
    start_metrics,
)
from billfold.platform.telemetry.tracing import start_tracing, tracing

NO_TRACES = "none"
SAMPLE_SECONDS = 2.0


@asynccontextmanager
async def telemetry(bank: Bank, role: str) -> AsyncIterator[None]:
    """Count and record spans in this process while the context lasts, as far as the settings want it."""
    if bank.settings.traces != NO_TRACES:
        start_tracing(role)
    try:
        async with _counted(bank):
            yield
    finally:
        await asyncio.to_thread(tracing.stop)


@asynccontextmanager
async def _counted(bank: Bank) -> AsyncIterator[None]:
    if bank.settings.management_port is None:
        yield
        return
    start_metrics()
    task = asyncio.create_task(_sample(bank))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _sample(bank: Bank) -> None:
    while True:
        open_, idle = bank.pool.get_size(), bank.pool.get_idle_size()
        POOL_CONNECTIONS.set(open_ - idle, "used")
        POOL_CONNECTIONS.set(idle, "idle")
        POOL_CONNECTIONS_MAX.set(bank.pool.get_max_size())
        COMMANDS_WAITING.set(bank.engine.waiting)
        await asyncio.sleep(SAMPLE_SECONDS)
