"""`billfold bench documents`: files that grow with a customer, how long they take and in how much memory.

A process of its own writes each file, so that its peak memory is that of the file.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from datetime import date, time
from functools import partial
from typing import Any, Final

from benchmarks.dataset import (
    Location,
    OpenBank,
    create_bank,
    create_customers,
    customer_of,
    deposit,
    open_bank,
    pocket_of,
    submit_commands,
    vacuum_and_checkpoint,
)
from benchmarks.measurements import Log, Result, Timing, figure, peak_memory_of_server
from benchmarks.roots import bench_roots
from benchmarks.sizes import Sizes
from benchmarks.statements import bench_statements
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker
from billfold.platform.clock import monotonic
from billfold.platform.dates import et_date, et_instant
from billfold.reports.entries.reader import Wanted, list_entries, read_statement
from billfold.reports.entries.types import AccountType
from billfold.reports.formats.camt import write_camt053
from billfold.reports.formats.types import StatementFile
from billfold.sandbox.clock.stepper import ClockStepper

CAMT053_SECONDS_MAX: Final = 20
CAMT053_MIB_MAX: Final = 300
_ENTRIES: Final = 100_000
_CUSTOMER: Final = 0
_CENTS: Final = 1_000_00
_BATCH: Final = 2_000
_BEFORE_OPENING: Final = time(7)


class DocumentWorkload:
    """Fills a Pocket, or writes the files of it."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._day = date.min

    async def prepare(self, task: tuple[str, Any]) -> Any:
        """Receive payments on one day and return that day, or take the day whose statement `run` writes."""
        verb, argument = task
        if verb == "fill":
            return await self._fill(argument)
        self._day = argument
        return None

    async def run(self) -> Timing:
        """Write the bank statement of the day as camt.053; `done` are its entries."""
        started = monotonic()
        key = customer_of(_CUSTOMER), pocket_of(_CUSTOMER)
        wanted = Wanted(*key, AccountType.BANK, self._day, self._day, await self._bank.now())
        statement = await read_statement(self._bank, wanted)
        with tempfile.TemporaryFile() as output:
            await write_camt053(StatementFile((statement,), partial(list_entries, self._bank)), output)
        return Timing(statement.totals.credits + statement.totals.debits, started, monotonic())

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _fill(self, payments: int) -> date:
        portals = await create_customers(self._bank, (_CUSTOMER,))
        day = self._bank.calendars.next_settlement_day(et_date(await self._bank.now()))
        await ClockStepper(self._bank).set_to(et_instant(day, _BEFORE_OPENING))
        portal = portals[_CUSTOMER]
        await submit_commands(
            self._bank, [deposit(_CUSTOMER, portal, _CENTS + nth, occasion=str(nth)) for nth in range(payments)]
        )
        await vacuum_and_checkpoint(self._bank.pool)
        return day


async def open_empty_bank(location: Location) -> DocumentWorkload:
    """Found the bank of an empty database."""
    return DocumentWorkload(await create_bank(location, batch_limit=_BATCH))


async def open_filled_bank(location: Location) -> DocumentWorkload:
    """Open the bank that was filled."""
    return DocumentWorkload(await open_bank(location))


def bench_documents(database: Database, sizes: Sizes, log: Log) -> Result:
    """Write the files and return what they took."""
    location = database.location("documents")
    with ExitStack() as stack:
        log(f"receiving {sizes.entries // 2:,} payments in one day")
        filler = Worker(open_empty_bank, location=location)
        stack.callback(filler.close)
        day = filler.prepare(("fill", sizes.entries // 2))
        writer = Worker(open_filled_bank, location=location)
        stack.callback(writer.close)
        timings = []
        for number in range(1, sizes.runs + 1):
            log(f"run {number}: camt.053")
            timings.append(writer.run(("write", day)))
        memory = writer.peak_memory_mib()
        peaks = {"writer": memory, **peak_memory_of_server(database.pid)}
    statements, statements_peak = bench_statements(database, sizes, log)
    roots, roots_peak = bench_roots(database, sizes, log)
    seconds = [(each.ended - each.started) * _ENTRIES / each.done for each in timings]
    return Result(
        name="documents",
        setting={
            "entries of the statement": timings[0].done,
            "statements": sizes.statements,
            "customers of the daily root": sizes.root_customers,
        },
        figures=[
            figure("camt.053 of 100,000 entries", "seconds", seconds, at_most=CAMT053_SECONDS_MAX),
            figure("camt.053, peak memory", "MiB", [memory], at_most=CAMT053_MIB_MAX),
            *statements,
            *roots,
        ],
        peak_memory_mib=peaks | statements_peak | roots_peak,
    )
