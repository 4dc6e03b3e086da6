"""`billfold bench engine`: whole transfers through flows and engine against bare ones.

Everybody pays or is paid once per pass, on a business day of its own: every book is loaded
from the database, and whoever is paid buys a lot he did not have.
"""

from __future__ import annotations

from contextlib import ExitStack
from random import Random

import msgspec

from billfold.bench.bare import CONNECTIONS, bare_child
from billfold.bench.ground import Ground
from billfold.bench.measure import Chapter, Figure, Lap, Say, figure, peak_of_family, rate
from billfold.bench.proof import check_sums
from billfold.bench.racers import Child, run_together
from billfold.bench.sizes import Sizes
from billfold.bench.whole import Counts, Pair, draw_pairs, warden_child, whole_child

LANES = 2
BATCH_LIMIT = 300
BARE = "bare transfers"


class Way(msgspec.Struct):
    """One way to run the engine, and what it reached in each run."""

    name: str
    engines: list[Child]
    cold: bool = True
    transfers: list[float] = msgspec.field(default_factory=list)
    legs: list[float] = msgspec.field(default_factory=list)


class Race:
    """The processes of one comparison on one database each."""

    def __init__(self, ground: Ground, sizes: Sizes, say: Say, stack: ExitStack) -> None:
        self._sizes = sizes
        self._say = say
        self._draw = Random(2)
        self._passes = 0
        self.added: list[Counts] = []
        self.bare = bare_child(ground.empty_database("bare"), sizes.customers)
        stack.callback(self.bare.close)
        place = ground.place("engine")
        self.place = place
        self.warden = warden_child(place)
        stack.callback(self.warden.close)
        say(f"settling {sizes.customers:,} customers")
        self.warden.prepare(("settle", sizes.customers))
        self.engines = [whole_child(place, lanes=LANES, batch_limit=BATCH_LIMIT) for _ in range(2)]
        for engine in self.engines:
            stack.callback(engine.close)
        self.ways = [
            Way("1 process", self.engines[:1]),
            Way("1 process, books cached", self.engines[:1], cold=False),
            Way("2 processes", self.engines),
        ]

    def round(self, number: int) -> float:
        """Run the baseline and every way once; return bare transfers per second."""
        self._say(f"run {number}: {BARE}")
        bare = rate(self.bare.run(self._sizes.bare_transfers))
        for way in self.ways:
            self._say(f"run {number}: whole transfers, {way.name}")
            self._run(way)
        return bare

    def _run(self, way: Way) -> None:
        laps, legs, seconds = [], 0, 0.0
        for _ in range(self._sizes.passes if way.cold else 1):
            if way.cold:
                self.warden.prepare(("morning", None))
            before: Counts = self.warden.prepare(("count", None))
            lap = self._pass(way)
            added = self.warden.prepare(("count", None)).since(before)
            done = sum(each.done for each in lap)
            assert added.commands == added.transfers == done, "transfers are missing"
            if way.cold:
                self.added.append(added)
            laps.append(done)
            legs += added.legs
            seconds += done / rate(lap)
        way.transfers.append(sum(laps) / seconds)
        way.legs.append(legs / seconds)

    def _pass(self, way: Way) -> list[Lap]:
        self._passes += 1
        pairs: list[Pair] = draw_pairs(self._draw, self._sizes.customers)
        for nth, engine in enumerate(way.engines):
            share = pairs[nth :: len(way.engines)]
            engine.prepare((f"pass {self._passes}.{nth}", share, way.cold))
        return run_together(way.engines)


def bench_engine(ground: Ground, sizes: Sizes, say: Say) -> Chapter:
    """Run the comparison and return its figures."""
    with ExitStack() as stack:
        race = Race(ground, sizes, say, stack)
        bare = [race.round(number) for number in range(1, sizes.runs + 1)]
        peaks = {
            "bare": race.bare.peak_memory_mib(),
            "engine": max(engine.peak_memory_mib() for engine in race.engines),
            **peak_of_family(ground.pid),
        }
        say("folding the log against the balances")
        check_sums(race.place)
        return Chapter(
            name="engine",
            setting=_setting(race, sizes),
            figures=_figures(race, bare),
            peak_memory_mib=peaks,
        )


def _figures(race: Race, bare: list[float]) -> list[Figure]:
    """The baseline, then transfers and ledger rows of every way; limits bind the best cold one."""
    base = figure(BARE, "per second", bare)
    best = max((way for way in race.ways if way.cold), key=lambda way: sum(way.transfers))
    figures = [base]
    for way in race.ways:
        mark = way is best
        figures += [
            figure(
                f"whole transfers, {way.name}",
                "per second",
                way.transfers,
                against=base,
                at_least=0.6 if mark else None,
            ),
            figure(
                f"ledger rows, {way.name}",
                "per second",
                way.legs,
                against=base,
                at_least=5.0 if mark else None,
            ),
        ]
    return figures


def _setting(race: Race, sizes: Sizes) -> dict[str, object]:
    transfers = sum(added.transfers for added in race.added)
    return {
        "customers": sizes.customers,
        "transfers per run": sizes.customers // 2 * sizes.passes,
        "bare transfers per run": sizes.bare_transfers,
        "bare connections": CONNECTIONS,
        "lanes x batch": f"{LANES} x {BATCH_LIMIT}",
        "ledger rows per transfer": round(sum(a.legs for a in race.added) / transfers, 2),
        "new lots per transfer": round(sum(a.lots for a in race.added) / transfers, 2),
    }
