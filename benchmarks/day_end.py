"""`billfold bench day_end`: how long it takes to close the day of everybody who moved.

The clock walks to the close of business. Customers are brought up to date in the batches a
worker uses: a snapshot per pocket that moved, a roll of each head, then the house settles.
"""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import Any

from benchmarks.baseline import baseline_process
from benchmarks.dataset import (
    Location,
    OpenBank,
    advance_to_next_morning,
    create_bank,
    create_customers,
    deposit,
    submit_commands,
    vacuum_and_checkpoint,
)
from benchmarks.ledger_checks import check_sums
from benchmarks.measurements import Figure, Log, Result, Timing, figure, peak_memory_of_server, rate, seconds_of
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker
from billfold.platform.clock import monotonic
from billfold.platform.dates import et_date
from billfold.sandbox.clock.stepper import ClockStepper

BARE = "bare transfers"
MAX_SECONDS = 60.0
MAX_UNEVENNESS = 1.5
"""How much more a pocket may cost among many than among few, for the day end to be linear."""

_CENTS = 1_000_00
_SNAPSHOTS = "SELECT count(*) FROM snapshot WHERE business_date = $1"
_HOUSE_DAY = "SELECT business_date FROM ledger_head h JOIN bank b ON b.bank_customer_id = h.customer_id"


class DayEnd:
    """A bank whose pockets move in the morning and whose day is closed in the evening."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._portals: dict[int, Any] = {}
        self._moved = 0
        self._mornings = 0

    async def prepare(self, task: tuple[str, int]) -> None:
        """Settle a number of customers, or let the pockets of a number of them move."""
        verb, number = task
        if verb == "create":
            self._portals = await create_customers(self._bank, range(number))
            await vacuum_and_checkpoint(self._bank.pool)
            return
        self._mornings += 1
        await advance_to_next_morning(self._bank)
        occasion = f"morning {self._mornings}"
        await submit_commands(
            self._bank, [deposit(nth, self._portals[nth], _CENTS, occasion=occasion) for nth in range(number)]
        )
        self._moved = number
        self._bank.engine.forget_all()
        gc.collect()

    async def run(self) -> Timing:
        """Walk the clock to the close; every pocket that moved has a snapshot after it."""
        day = et_date(await self._bank.now())
        stepping = ClockStepper(self._bank)
        started = monotonic()
        await stepping.set_to(self._bank.calendars.closes_at(day))
        ended = monotonic()
        assert await self._bank.pool.fetchval(_SNAPSHOTS, day) == self._moved
        assert await self._bank.pool.fetchval(_HOUSE_DAY) > day, "the house's day is still open"
        return Timing(self._moved, started, ended)

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()


async def open_day_end(location: Location) -> DayEnd:
    """Found the bank of an empty database."""
    return DayEnd(await create_bank(location))


def bench_day_end(database: Database, sizes: Sizes, log: Log) -> Result:
    """Close days of each size in every round and return the figures."""
    with ExitStack() as stack:
        bare = baseline_process(database.empty_database("bare"), sizes.customers)
        stack.callback(bare.close)
        location = database.location("day_end")
        bank = Worker(open_day_end, location=location)
        stack.callback(bank.close)
        people = max(sizes.day_ends)
        log(f"creating {people:,} customers")
        bank.prepare(("create", people))
        rates: list[float] = []
        timings: dict[int, list[Timing]] = {size: [] for size in sizes.day_ends}
        for number in range(1, sizes.runs + 1):
            log(f"run {number}: {BARE}")
            rates.append(rate(bare.run(sizes.bare_transfers)))
            for size in sizes.day_ends:
                log(f"run {number}: day end of {size:,} pockets")
                timings[size].append(bank.run(("move", size)))
        peaks = {"engine": bank.peak_memory_mib(), **peak_memory_of_server(database.pid)}
        log("folding the log against the balances")
        check_sums(location)
        return Result(
            name="day_end",
            setting={"pockets per customer": 1, "customers": people},
            figures=_figures(rates, timings),
            peak_memory_mib=peaks,
        )


def _figures(rates: list[float], timings: dict[int, list[Timing]]) -> list[Figure]:
    base = figure(BARE, "per second", rates)
    figures = [base]
    costs = []
    for size, runs in timings.items():
        seconds = [seconds_of([timing]) for timing in runs]
        most = MAX_SECONDS if size == max(timings) else None
        figures.append(figure(f"day end of {size:,} pockets", "s", seconds, at_most=most))
        closed = [rate([timing]) for timing in runs]
        figures.append(figure(f"pockets closed, of {size:,}", "per second", closed, against=base))
        costs.append([second / size * 1e6 for second in seconds])
    first = figure(f"per pocket, of {min(timings):,}", "us", costs[0])
    figures.append(first)
    for size, cost in list(zip(timings, costs, strict=True))[1:]:
        figures.append(figure(f"per pocket, of {size:,}", "us", cost, against=first, at_most=MAX_UNEVENNESS))
    return figures
