"""`billfold bench engine`: whole transfers through flows and engine against bare ones.

Everybody pays or is paid once per pass, on a business day of its own: every book is loaded
from the database, and whoever is paid buys a lot he did not have.
"""

from __future__ import annotations

from contextlib import ExitStack
from random import Random

import msgspec

from benchmarks.baseline import CONNECTIONS, baseline_process
from benchmarks.engine_transfers import Counts, Pair, draw_pairs, setup_process, transfer_process
from benchmarks.ledger_checks import check_sums
from benchmarks.measurements import Figure, Log, Result, Timing, figure, peak_memory_of_server, rate
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker, run_together

LANES = 2
BATCH_LIMIT = 300
BARE = "bare transfers"


class Variant(msgspec.Struct):
    """One way to run the engine, and what it reached in each run."""

    name: str
    engines: list[Worker]
    cold: bool = True
    transfers: list[float] = msgspec.field(default_factory=list)
    legs: list[float] = msgspec.field(default_factory=list)


class EngineComparison:
    """The processes of one comparison on one database each."""

    def __init__(self, database: Database, sizes: Sizes, log: Log, stack: ExitStack) -> None:
        self._sizes = sizes
        self._log = log
        self._draw = Random(2)
        self._passes = 0
        self.added: list[Counts] = []
        self.bare = baseline_process(database.empty_database("bare"), sizes.customers)
        stack.callback(self.bare.close)
        location = database.location("engine")
        self.location = location
        self.setup = setup_process(location)
        stack.callback(self.setup.close)
        log(f"creating {sizes.customers:,} customers")
        self.setup.prepare(("create", sizes.customers))
        self.engines = [transfer_process(location, lanes=LANES, batch_limit=BATCH_LIMIT) for _ in range(2)]
        for engine in self.engines:
            stack.callback(engine.close)
        self.variants = [
            Variant("1 process", self.engines[:1]),
            Variant("1 process, books cached", self.engines[:1], cold=False),
            Variant("2 processes", self.engines),
        ]

    def round(self, number: int) -> float:
        """Run the baseline and every way once; return bare transfers per second."""
        self._log(f"run {number}: {BARE}")
        bare = rate(self.bare.run(self._sizes.bare_transfers))
        for variant in self.variants:
            self._log(f"run {number}: whole transfers, {variant.name}")
            self._run(variant)
        return bare

    def _run(self, variant: Variant) -> None:
        timings, legs, seconds = [], 0, 0.0
        for _ in range(self._sizes.passes if variant.cold else 1):
            if variant.cold:
                self.setup.prepare(("morning", None))
            before: Counts = self.setup.prepare(("count", None))
            timing = self._pass(variant)
            added = self.setup.prepare(("count", None)).since(before)
            done = sum(each.done for each in timing)
            assert added.commands == added.transfers == done, "transfers are missing"
            if variant.cold:
                self.added.append(added)
            timings.append(done)
            legs += added.legs
            seconds += done / rate(timing)
        variant.transfers.append(sum(timings) / seconds)
        variant.legs.append(legs / seconds)

    def _pass(self, variant: Variant) -> list[Timing]:
        self._passes += 1
        pairs: list[Pair] = draw_pairs(self._draw, self._sizes.customers)
        for nth, engine in enumerate(variant.engines):
            share = pairs[nth :: len(variant.engines)]
            engine.prepare((f"pass {self._passes}.{nth}", share, variant.cold))
        return run_together(variant.engines)


def bench_engine(database: Database, sizes: Sizes, log: Log) -> Result:
    """Run the comparison and return its figures."""
    with ExitStack() as stack:
        comparison = EngineComparison(database, sizes, log, stack=stack)
        bare = [comparison.round(number) for number in range(1, sizes.runs + 1)]
        peaks = {
            "bare": comparison.bare.peak_memory_mib(),
            "engine": max(engine.peak_memory_mib() for engine in comparison.engines),
            **peak_memory_of_server(database.pid),
        }
        log("folding the log against the balances")
        check_sums(comparison.location)
        return Result(
            name="engine",
            setting=_setting(comparison, sizes),
            figures=_figures(comparison, bare),
            peak_memory_mib=peaks,
        )


def _figures(comparison: EngineComparison, bare: list[float]) -> list[Figure]:
    """The baseline, then transfers and ledger rows of every way; limits bind the best cold one."""
    base = figure(BARE, "per second", bare)
    best = max((variant for variant in comparison.variants if variant.cold), key=lambda variant: sum(variant.transfers))
    figures = [base]
    for variant in comparison.variants:
        mark = variant is best
        figures += [
            figure(
                f"whole transfers, {variant.name}",
                "per second",
                variant.transfers,
                against=base,
                at_least=0.6 if mark else None,
            ),
            figure(
                f"ledger rows, {variant.name}", "per second", variant.legs, against=base, at_least=5.0 if mark else None
            ),
        ]
    return figures


def _setting(comparison: EngineComparison, sizes: Sizes) -> dict[str, object]:
    transfers = sum(added.transfers for added in comparison.added)
    return {
        "customers": sizes.customers,
        "transfers per run": sizes.customers // 2 * sizes.passes,
        "bare transfers per run": sizes.bare_transfers,
        "bare connections": CONNECTIONS,
        "lanes x batch": f"{LANES} x {BATCH_LIMIT}",
        "ledger rows per transfer": round(sum(a.legs for a in comparison.added) / transfers, 2),
        "new lots per transfer": round(sum(a.lots for a in comparison.added) / transfers, 2),
    }
