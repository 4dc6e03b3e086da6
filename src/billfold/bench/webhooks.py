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
from billfold.bench.whole import draw_pairs

RECEIVERS = 8
DELIVERIES_LEAST = 500.0
HANGING_LEAST = 0.9
ENGINE_LEAST = 0.8
MEMORY_MOST = 1.1
SHORT_QUEUE = 50
"""How many times a short queue goes into a long one."""
SLOW_LANES, SLOW_MS = 4, 38
"""Receivers that together take a little under 100 deliveries a second."""


class Telling:
    """A bank in which things happen, and a courier in a process of its own."""

    def __init__(self, ground: Ground, sizes: Sizes, say: Say, stack: ExitStack) -> None:
        self._sizes, self._say = sizes, say
        self._draw, self._passes = Random(3), 0
        place = ground.place("webhooks")
        listeners = listeners_child()
        stack.callback(listeners.close)
        self._origin = f"http://127.0.0.1:{listeners.prepare('open')}"
        self.town = teller_child(place, first=True)
        stack.callback(self.town.close)
        say(f"settling {sizes.customers:,} customers")
        self.town.prepare(("settle", sizes.customers))
        self.courier = teller_child(place)
        stack.callback(self.courier.close)
        self.memory: dict[int, float] = {}
        self.well: list[float] = []
        self.beside_hanging: list[float] = []
        self.alone: list[float] = []
        self.beside: list[float] = []
        self.delivered: list[float] = []

    def drain(self, undelivered: int) -> None:
        """Let the courier work off a queue, and keep the most memory it has taken by then."""
        self._say(f"{undelivered:,} undelivered")
        lap = self._told(self._urls("/"), undelivered)
        assert lap.done == undelivered // RECEIVERS * RECEIVERS, "deliveries are missing"
        self.memory[undelivered] = self.courier.peak_memory_mib()

    def tell(self, number: int) -> None:
        """Deliver to receivers that are well, then to those and as many that hang."""
        self._say(f"run {number}: {self._sizes.deliveries:,} deliveries")
        self.well.append(rate([self._told(self._urls("/"), self._sizes.deliveries)]))
        self._say(f"run {number}: the same beside receivers that hang")
        urls = self._urls("/") + self._urls(HANGING)
        self.beside_hanging.append(rate([self._told(urls, self._sizes.deliveries)]))

    def work(self, number: int) -> None:
        """Run the engine once alone, and once beside a courier that has enough to deliver."""
        self._say(f"run {number}: whole transfers alone")
        self.alone.append(rate([self._pass()]))
        self._say(f"run {number}: whole transfers beside deliveries")
        # Of a kind that is only simulated: the engine adds nothing to the queue.
        urls = self._urls(f"/after/{SLOW_MS}/", SLOW_LANES)
        self.town.prepare(("subscribe", (urls, [SIMULATED_KIND])))
        self.town.prepare(("simulate", self._sizes.customers // 20 + 20))
        self.town.prepare(("sequence", None))
        before = self.courier.prepare(("end", None))
        self.courier.prepare(("begin", None))
        lap = self._pass()
        done = self.courier.prepare(("end", None)) - before
        self.beside.append(rate([lap]))
        self.delivered.append(done / (lap.ended - lap.started))

    def _urls(self, path: str, number: int = RECEIVERS) -> list[str]:
        """Return addresses of so many receivers that do what the path says."""
        return [f"{self._origin}{path}{nth}" for nth in range(number)]

    def _told(self, urls: list[str], deliveries: int) -> Lap:
        self.town.prepare(("subscribe", (urls, None)))
        self.town.prepare(("happen", deliveries // RECEIVERS))
        lap: Lap = self.courier.run(("sequence", None))
        return lap

    def _pass(self) -> Lap:
        self._passes += 1
        self.town.prepare(("morning", None))
        pairs = draw_pairs(self._draw, self._sizes.customers)
        lap: Lap = self.town.prepare(("transfers", (f"pass {self._passes}", pairs)))
        return lap


def bench_webhooks(ground: Ground, sizes: Sizes, say: Say) -> Chapter:
    """Run everything and return the figures."""
    with ExitStack() as stack:
        telling = Telling(ground, sizes, say, stack)
        for undelivered in (
            max(RECEIVERS, sizes.undelivered // SHORT_QUEUE),
            sizes.undelivered,
        ):
            telling.drain(undelivered)
        for number in range(1, sizes.runs + 1):
            telling.tell(number)
            telling.work(number)
        return Chapter(
            name="webhooks",
            setting={
                "receivers": RECEIVERS,
                "deliveries per run": sizes.deliveries,
                "undelivered": sizes.undelivered,
                "customers": sizes.customers,
            },
            figures=_figures(telling),
            peak_memory_mib={
                "courier": telling.courier.peak_memory_mib(),
                "engine": telling.town.peak_memory_mib(),
                **peak_of_family(ground.pid),
            },
        )


def _figures(telling: Telling) -> list[Figure]:
    well = figure("deliveries", "per second", telling.well, at_least=DELIVERIES_LEAST)
    (few, little), (many, much) = sorted(telling.memory.items())
    short = figure(f"memory, {few:,} undelivered", "MiB", [little])
    alone = figure("whole transfers alone", "per second", telling.alone)
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
            telling.beside,
            against=alone,
            at_least=ENGINE_LEAST,
        ),
        figure("deliveries beside them", "per second", telling.delivered),
    ]
