"""`billfold bench webhooks`: how fast events are told, and what telling them costs others.

One courier, as in a worker, and receivers on this machine over http, the engine idle; one of two
receivers hanging; a long queue and a short one; and the engine alone and beside 100 deliveries a
second, with everything the engine does numbered by the courier's sequencer.
"""

from __future__ import annotations

from contextlib import ExitStack
from random import Random

from billfold.bench.ground import Ground
from billfold.bench.listeners import HANGING, listeners_child
from billfold.bench.measure import Chapter, Figure, Lap, Say, figure, peak_of_family, rate
from billfold.bench.sizes import Sizes
from billfold.bench.telling import SIMULATED_KIND, teller_child
from billfold.bench.whole import draw_pairs, warden_child, whole_child

RECEIVERS = 8
CUSTOMERS = 200
DELIVERIES_LEAST = 500.0
HANGING_LEAST = 0.9
ENGINE_LEAST = 0.8
MEMORY_MOST = 1.1
SHORT_QUEUE = 50
"""How many times a short queue goes into a long one."""
SLOW_LANES, SLOW_MS = 4, 38
"""Receivers that together take a little under 100 deliveries a second."""


class Telling:
    """The part without the engine: rates and memory of one courier."""

    def __init__(self, ground: Ground, sizes: Sizes, say: Say, stack: ExitStack) -> None:
        self._sizes, self._say, self._stack = sizes, say, stack
        self.place = ground.place("webhooks")
        self.listeners = listeners_child()
        stack.callback(self.listeners.close)
        self._origin = f"http://127.0.0.1:{self.listeners.prepare('open')}"
        self.teller = teller_child(self.place, first=True)
        stack.callback(self.teller.close)
        self.teller.prepare(("settle", CUSTOMERS))
        self.well: list[float] = []
        self.beside_hanging: list[float] = []
        self.memory: dict[int, float] = {}

    def urls(self, path: str = "/", number: int = RECEIVERS) -> list[str]:
        """Return addresses of so many receivers that do what the path says."""
        return [f"{self._origin}{path}{nth}" for nth in range(number)]

    def round(self, number: int) -> None:
        """Deliver to receivers that are well, then to those and as many that hang."""
        self._say(f"run {number}: {self._sizes.deliveries:,} deliveries")
        self.well.append(rate([self._told(self.urls(), self._sizes.deliveries)]))
        self._say(f"run {number}: the same beside receivers that hang")
        urls = self.urls() + self.urls(HANGING)
        self.beside_hanging.append(rate([self._told(urls, self._sizes.deliveries)]))

    def drain(self, undelivered: int) -> None:
        """Let a courier that has done nothing yet work off a queue; keep the memory it took."""
        self._say(f"{undelivered:,} undelivered")
        self._queue(self.urls(), undelivered)
        with ExitStack() as stack:
            fresh = teller_child(self.place)
            stack.callback(fresh.close)
            lap: Lap = fresh.run(("sequence", None))
            assert lap.done == undelivered // RECEIVERS * RECEIVERS, "deliveries are missing"
            self.memory[undelivered] = fresh.peak_memory_mib()

    def _told(self, urls: list[str], deliveries: int) -> Lap:
        self._queue(urls, deliveries)
        lap: Lap = self.teller.run(("sequence", None))
        return lap

    def _queue(self, urls: list[str], deliveries: int) -> None:
        self.teller.prepare(("subscribe", (urls, None)))
        self.teller.prepare(("happen", deliveries // RECEIVERS))


class Beside:
    """The part with the engine: whole transfers alone, and while a courier works."""

    def __init__(self, ground: Ground, sizes: Sizes, say: Say, stack: ExitStack) -> None:
        self._sizes, self._say = sizes, say
        self._draw = Random(3)
        self._passes = 0
        place = ground.place("engine")
        self._warden = warden_child(place)
        stack.callback(self._warden.close)
        say(f"settling {sizes.customers:,} customers")
        self._warden.prepare(("settle", sizes.customers))
        self.engine = whole_child(place, lanes=2, batch_limit=300)
        stack.callback(self.engine.close)
        self._teller = teller_child(place)
        stack.callback(self._teller.close)
        self.alone: list[float] = []
        self.beside: list[float] = []
        self.delivered: list[float] = []

    def subscribe(self, urls: list[str]) -> None:
        """Let receivers subscribe to what is simulated: the engine adds nothing to it."""
        self._teller.prepare(("subscribe", (urls, [SIMULATED_KIND])))

    def round(self, number: int) -> None:
        """Run the engine once alone and once beside a courier."""
        self._say(f"run {number}: whole transfers alone")
        self.alone.append(rate([self._pass()]))
        self._say(f"run {number}: whole transfers beside deliveries")
        self._teller.prepare(("simulate", self._sizes.customers // 20 + 20))
        self._teller.prepare(("sequence", None))
        before = self._teller.prepare(("end", None))
        self._teller.prepare(("begin", None))
        lap = self._pass()
        done = self._teller.prepare(("end", None)) - before
        self.beside.append(rate([lap]))
        self.delivered.append(done / (lap.ended - lap.started))

    def _pass(self) -> Lap:
        self._passes += 1
        self._warden.prepare(("morning", None))
        pairs = draw_pairs(self._draw, self._sizes.customers)
        lap: Lap = self.engine.run((f"pass {self._passes}", pairs, True))
        return lap


def bench_webhooks(ground: Ground, sizes: Sizes, say: Say) -> Chapter:
    """Run everything and return the figures."""
    with ExitStack() as stack:
        telling = Telling(ground, sizes, say, stack)
        for number in range(1, sizes.runs + 1):
            telling.round(number)
        for undelivered in (sizes.undelivered // SHORT_QUEUE, sizes.undelivered):
            telling.drain(undelivered)
        courier = telling.teller.peak_memory_mib()
        telling.teller.close()
        beside = Beside(ground, sizes, say, stack)
        beside.subscribe(telling.urls(f"/after/{SLOW_MS}/", SLOW_LANES))
        for number in range(1, sizes.runs + 1):
            beside.round(number)
        return Chapter(
            name="webhooks",
            setting={
                "receivers": RECEIVERS,
                "deliveries per run": sizes.deliveries,
                "undelivered": sizes.undelivered,
                "customers of the engine": sizes.customers,
            },
            figures=_figures(telling, beside),
            peak_memory_mib={
                "courier": courier,
                "engine": beside.engine.peak_memory_mib(),
                **peak_of_family(ground.pid),
            },
        )


def _figures(telling: Telling, beside: Beside) -> list[Figure]:
    well = figure("deliveries", "per second", telling.well, at_least=DELIVERIES_LEAST)
    (few, little), (many, much) = sorted(telling.memory.items())
    short = figure(f"memory, {few:,} undelivered", "MiB", [little])
    alone = figure("whole transfers alone", "per second", beside.alone)
    return [
        well,
        figure(
            f"deliveries, {RECEIVERS} more receivers hang",
            "per second",
            telling.beside_hanging,
            against=well,
            at_least=HANGING_LEAST,
        ),
        short,
        figure(f"memory, {many:,} undelivered", "MiB", [much], against=short, at_most=MEMORY_MOST),
        alone,
        figure(
            "whole transfers beside deliveries",
            "per second",
            beside.beside,
            against=alone,
            at_least=ENGINE_LEAST,
        ),
        figure("deliveries beside them", "per second", beside.delivered),
    ]
