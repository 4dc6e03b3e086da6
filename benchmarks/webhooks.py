"""`billfold bench webhooks`: how fast events are delivered, and what that costs others.

One courier, as in a worker, and receivers on this machine over http, the engine idle; one of two
receivers hanging; a long queue and a short one; and the engine alone and beside 100 deliveries a
second, with everything the engine does numbered by the courier's sequencer.
"""

from __future__ import annotations

from contextlib import ExitStack
from random import Random

from benchmarks.engine_transfers import draw_pairs
from benchmarks.measurements import Figure, Log, Result, Timing, figure, peak_memory_of_server, rate
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.webhook_receivers import HANGING, receivers_process
from benchmarks.webhook_worker import SIMULATED_KIND, webhook_process

RECEIVERS = 8
DELIVERIES_LEAST = 500.0
HANGING_LEAST = 0.9
ENGINE_LEAST = 0.8
MEMORY_MOST = 1.1
SHORT_QUEUE = 50
"""How many times a short queue goes into a long one."""
SLOW_LANES, SLOW_MS = 4, 38
"""Receivers that together take a little under 100 deliveries a second."""


class WebhookComparison:
    """A bank in which things happen, and a courier in a process of its own."""

    def __init__(self, database: Database, sizes: Sizes, log: Log, stack: ExitStack) -> None:
        self._sizes, self._log = sizes, log
        self._draw, self._passes = Random(3), 0
        location = database.location("webhooks")
        receivers = receivers_process()
        stack.callback(receivers.close)
        self._origin = f"http://127.0.0.1:{receivers.prepare('open')}"
        self.engine = webhook_process(location, first=True)
        stack.callback(self.engine.close)
        log(f"creating {sizes.customers:,} customers")
        self.engine.prepare(("create", sizes.customers))
        self.courier = webhook_process(location)
        stack.callback(self.courier.close)
        self.memory: dict[int, float] = {}
        self.well: list[float] = []
        self.beside_hanging: list[float] = []
        self.alone: list[float] = []
        self.beside: list[float] = []
        self.delivered: list[float] = []

    def drain(self, undelivered: int) -> None:
        """Let the courier work off a queue, and keep the most memory it has taken by then."""
        self._log(f"{undelivered:,} undelivered")
        timing = self._timed_delivery(self._urls("/"), undelivered)
        assert timing.done == undelivered // RECEIVERS * RECEIVERS, "deliveries are missing"
        self.memory[undelivered] = self.courier.peak_memory_mib()

    def deliver(self, number: int) -> None:
        """Deliver to receivers that are well, then to those and as many that hang."""
        self._log(f"run {number}: {self._sizes.deliveries:,} deliveries")
        self.well.append(rate([self._timed_delivery(self._urls("/"), self._sizes.deliveries)]))
        self._log(f"run {number}: the same beside receivers that hang")
        urls = self._urls("/") + self._urls(HANGING)
        self.beside_hanging.append(rate([self._timed_delivery(urls, self._sizes.deliveries)]))

    def work(self, number: int) -> None:
        """Run the engine once alone, and once beside a courier that has enough to deliver."""
        self._log(f"run {number}: whole transfers alone")
        self.alone.append(rate([self._pass()]))
        self._log(f"run {number}: whole transfers beside deliveries")
        # Of a kind that is only simulated: the engine adds nothing to the queue.
        urls = self._urls(f"/after/{SLOW_MS}/", SLOW_LANES)
        self.engine.prepare(("subscribe", (urls, [SIMULATED_KIND])))
        self.engine.prepare(("simulate", self._sizes.customers // 20 + 20))
        self.engine.prepare(("sequence", None))
        before = self.courier.prepare(("end", None))
        self.courier.prepare(("begin", None))
        timing = self._pass()
        done = self.courier.prepare(("end", None)) - before
        self.beside.append(rate([timing]))
        self.delivered.append(done / (timing.ended - timing.started))

    def _urls(self, path: str, number: int = RECEIVERS) -> list[str]:
        """Return addresses of so many receivers that do what the path says."""
        return [f"{self._origin}{path}{nth}" for nth in range(number)]

    def _timed_delivery(self, urls: list[str], deliveries: int) -> Timing:
        self.engine.prepare(("subscribe", (urls, None)))
        self.engine.prepare(("happen", deliveries // RECEIVERS))
        timing: Timing = self.courier.run(("sequence", None))
        return timing

    def _pass(self) -> Timing:
        self._passes += 1
        self.engine.prepare(("morning", None))
        pairs = draw_pairs(self._draw, self._sizes.customers)
        timing: Timing = self.engine.prepare(("transfers", (f"pass {self._passes}", pairs)))
        return timing


def bench_webhooks(database: Database, sizes: Sizes, log: Log) -> Result:
    """Run everything and return the figures."""
    with ExitStack() as stack:
        comparison = WebhookComparison(database, sizes, log, stack=stack)
        for undelivered in (max(RECEIVERS, sizes.undelivered // SHORT_QUEUE), sizes.undelivered):
            comparison.drain(undelivered)
        for number in range(1, sizes.runs + 1):
            comparison.deliver(number)
            comparison.work(number)
        return Result(
            name="webhooks",
            setting={
                "receivers": RECEIVERS,
                "deliveries per run": sizes.deliveries,
                "undelivered": sizes.undelivered,
                "customers": sizes.customers,
            },
            figures=_figures(comparison),
            peak_memory_mib={
                "courier": comparison.courier.peak_memory_mib(),
                "engine": comparison.engine.peak_memory_mib(),
                **peak_memory_of_server(database.pid),
            },
        )


def _figures(comparison: WebhookComparison) -> list[Figure]:
    well = figure("deliveries", "per second", comparison.well, at_least=DELIVERIES_LEAST)
    (few, little), (many, much) = sorted(comparison.memory.items())
    short = figure(f"memory, {few:,} undelivered", "MiB", [little])
    alone = figure("whole transfers alone", "per second", comparison.alone)
    return [
        well,
        figure(
            f"deliveries, {RECEIVERS} more receivers hang",
            "per second",
            comparison.beside_hanging,
            against=well,
            at_least=HANGING_LEAST,
        ),
        short,
        figure(f"memory, {many:,} undelivered", "MiB", [much], against=short, at_most=MEMORY_MOST),
        alone,
        figure(
            "whole transfers beside deliveries", "per second", comparison.beside, against=alone, at_least=ENGINE_LEAST
        ),
        figure("deliveries beside them", "per second", comparison.delivered),
    ]
