"""The monthly statements of `billfold bench documents`: of Pockets whose two statements have 50 lines on average."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import time
from typing import Any, Final

from benchmarks.dataset import (
    Location,
    OpenBank,
    create_bank,
    create_customers,
    deposit,
    open_bank,
    submit_commands,
    vacuum_and_checkpoint,
)
from benchmarks.measurements import Figure, Log, Timing, figure
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker
from billfold.platform.clock import monotonic
from billfold.platform.dates import et_instant
from billfold.reports.statements.types import Month
from billfold.reports.statements.worker import make_month
from billfold.sandbox.clock.stepper import ClockStepper

STATEMENTS_SECONDS_MAX: Final = 600
STATEMENTS: Final = 10_000
PAYMENTS: Final = 33
_CENTS: Final = 1_000_00
_BATCH: Final = 2_000
_OPENING: Final = time(9)


class StatementWorkload:
    """Fills Pockets, or makes their statements of the month that is over."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._month = Month.parse("2000-01")

    async def prepare(self, task: tuple[str, Any]) -> Any:
        """Receive 33 payments, each of them invested, in so many Pockets and return the month, or take it."""
        verb, argument = task
        if verb == "fill":
            return await self._fill(argument)
        self._month = Month.parse(argument)
        return None

    async def run(self) -> Timing:
        """Make the statements of the month; `done` is how many."""
        started, made = monotonic(), 0
        async for progress in make_month(self._bank, self._month):
            made = progress.made
        return Timing(made, started, monotonic())

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _fill(self, pockets: int) -> str:
        portals = await create_customers(self._bank, range(pockets))
        month = Month.of(await self._bank.now())
        for nth in range(PAYMENTS):
            commands = [
                deposit(number, portals[number], _CENTS + nth, occasion=f"{number}:{nth}") for number in range(pockets)
            ]
            await submit_commands(self._bank, commands)
        await ClockStepper(self._bank).set_to(et_instant(month.next.first_day, _OPENING))
        await vacuum_and_checkpoint(self._bank.pool)
        return month.key


def bench_statements(database: Database, sizes: Sizes, log: Log) -> tuple[list[Figure], dict[str, float]]:
    """Make statements and return how long 10,000 of them take, and in how much memory."""
    location = database.location("statements")
    with ExitStack() as stack:
        log(f"receiving payments in {sizes.statements // 2:,} Pockets")
        filler = Worker(open_empty_statements, location=location)
        stack.callback(filler.close)
        month = filler.prepare(("fill", sizes.statements // 2))
        maker = Worker(open_filled_statements, location=location)
        stack.callback(maker.close)
        log(f"making {sizes.statements:,} monthly statements")
        timing = maker.run(("make", month))
        memory = maker.peak_memory_mib()
    seconds = (timing.ended - timing.started) / timing.done * STATEMENTS
    name = f"{STATEMENTS:,} monthly statements"
    return [figure(name, "seconds", [seconds], at_most=STATEMENTS_SECONDS_MAX)], {"statements": memory}


async def open_empty_statements(location: Location) -> StatementWorkload:
    """Found the bank of an empty database."""
    return StatementWorkload(await create_bank(location, batch_limit=_BATCH))


async def open_filled_statements(location: Location) -> StatementWorkload:
    """Open the bank that was filled."""
    return StatementWorkload(await open_bank(location))
