"""Queues of a bank at rates that no machine here reaches, from the service times that were measured on one.

`python -m benchmarks.growth_simulation` first plays the measured points, then the target on some layouts. Transfers
arrive at random, evenly over the processes of `serve`; each has lanes that take what waits, up to a batch, and spend
time on a core of the process, of the coordinator and of each worker. Next to them processes of `worker` close the day.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from heapq import heappop, heappush, heapreplace
from random import Random
from typing import NamedTuple

from benchmarks.failover import say
from benchmarks.measurements import percentile

LANES, BATCH = 2, 300
DUE_BATCH = 100
SECONDS, WARM_UP = 20.0, 2.0
COMMIT = 0.001
"""Seconds until a log is on the disk; with two phases twice."""


class Cost(NamedTuple):
    """Seconds of processor time of a batch, and of each item in it."""

    batch: float
    item: float

    def of(self, items: int) -> float:
        """Return the time of a batch of so many."""
        return self.batch + self.item * items


class Costs(NamedTuple):
    """The cost of a kind of work to the bank's process, the coordinator or only server, and all workers together."""

    bank: Cost
    coordinator: Cost
    workers: Cost


class Layout(NamedTuple):
    """Machines, and the processes on them. Without workers the coordinator is the only server."""

    serve: int
    due: int
    coordinator_cores: int
    workers: int = 0
    worker_cores: int = 0


class Station:
    """Cores that take work in the order of its arrival."""

    def __init__(self, cores: int) -> None:
        self.busy, self._free = 0.0, [0.0] * cores

    def end_of(self, at: float, seconds: float) -> float:
        """Return when work that arrives at an instant is done."""
        self.busy += seconds
        end = max(at, self._free[0]) + seconds
        heapreplace(self._free, end)
        return end


class Simulation:
    """One run of a layout."""

    def __init__(self, layout: Layout, transfer: Costs, due: Costs, *, per_second: float) -> None:
        self._layout, self._transfer, self._due = layout, transfer, due
        self.coordinator = Station(layout.coordinator_cores)
        self.workers = [Station(layout.worker_cores) for _ in range(layout.workers)]
        self.serve = [Station(1) for _ in range(layout.serve)]
        self.latencies: list[float] = []
        self.batches: list[int] = []
        self.closed = 0
        draw = Random(1)
        self._waiting = [deque[float]() for _ in self.serve]
        at = 0.0
        while per_second and (at := at + draw.expovariate(per_second)) < SECONDS:
            self._waiting[draw.randrange(layout.serve)].append(at)

    def run(self) -> None:
        """Let every lane work until the end."""
        closing = [Station(1) for _ in range(self._layout.due)]
        lanes = [self._serve(*each) for each in zip(self.serve, self._waiting, strict=True) for _ in range(LANES)]
        lanes += [self._close(station) for station in closing for _ in range(LANES)]
        turns = [(0.0, nth, lane) for nth, lane in enumerate(lanes)]
        while turns and turns[0][0] < SECONDS:
            _, nth, lane = heappop(turns)
            if (again_at := next(lane, None)) is not None:
                heappush(turns, (again_at, nth, lane))

    def _serve(self, station: Station, waiting: deque[float]) -> Iterator[float]:
        at = 0.0
        while waiting:
            if waiting[0] > at:
                at = waiting[0]
                yield at
                continue
            taken = [waiting.popleft()]
            while waiting and waiting[0] <= at and len(taken) < BATCH:
                taken.append(waiting.popleft())
            at = yield from self._carry_out(at, station, self._transfer, len(taken))
            self.batches.append(len(taken))
            self.latencies += [at - arrived for arrived in taken if arrived > WARM_UP]

    def _close(self, station: Station) -> Iterator[float]:
        at = 0.0
        while True:
            at = yield from self._carry_out(at, station, self._due, DUE_BATCH)
            self.closed += DUE_BATCH

    def _carry_out(self, at: float, station: Station, costs: Costs, items: int) -> Generator[float, None, float]:
        """Plan a batch, write it, wait for the log, and answer; yield when each part is done."""
        planning = costs.bank.of(items) / 2
        at = station.end_of(at, planning)
        yield at
        at = self.coordinator.end_of(at, costs.coordinator.of(items))
        yield at
        if self.workers:
            each = costs.workers.of(items) / len(self.workers)
            at = max(worker.end_of(at, each) for worker in self.workers) + COMMIT
            yield at
        at += COMMIT
        yield at
        at = station.end_of(at, planning)
        yield at
        return at

    def row(self) -> str:
        """Return the figures of a run."""
        late = self.latencies or [0.0]
        machines = (
            (self.serve, 1),
            ([self.coordinator], self._layout.coordinator_cores),
            (self.workers, self._layout.worker_cores),
        )
        busy = [max((each.busy / SECONDS / cores for each in stations), default=0.0) for stations, cores in machines]
        return " | ".join(
            (
                f"{len(late) / (SECONDS - WARM_UP):,.0f}",
                f"{sum(self.batches) / max(1, len(self.batches)):.0f}",
                f"{percentile(late, 50) * 1e3:.0f} ms",
                f"{percentile(late, 99) * 1e3:.0f} ms",
                *(f"{each:.0%}" for each in busy),
                f"{self.closed / SECONDS:,.0f}",
            )
        )


def cost(batch_ms: float, item_ms: float) -> Cost:
    """Return a cost given in milliseconds."""
    return Cost(batch_ms / 1e3, item_ms / 1e3)


SHARDS = 16
TARGET = 5_000
NONE = cost(0, 0)
SIGNED = Costs(bank=cost(1.0, 0.53), coordinator=cost(0.95, 0.25), workers=NONE)
"""A signed transfer on one server: from the costs with 1 and 256 connections in docs/benchmarks.md."""
MEASURED = ((206, "7 ms"), (800, "29 ms"))
"""Transfers per second of one process on two cores, and the p99 that was measured, there too."""

SIGNED_SPREAD = Costs(bank=cost(1.0, 0.60), coordinator=cost(0.95, 0.07), workers=cost(0.9 * SHARDS, 0.24))
"""The same on a cluster: the ratio to one server is that of docs/operate/growth.md, and a batch touches each shard."""
CLOSED = Costs(bank=cost(0, 0.60), coordinator=cost(0, 0.50), workers=NONE)
"""A customer with ten Pockets whose day is closed, on one server: the costs in docs/operate/growth.md, ten times."""
CLOSED_SPREAD = Costs(bank=cost(0, 1.10), coordinator=cost(0, 0.50), workers=cost(0.9 * SHARDS, 0.96))
_NODES = {"coordinator_cores": 16, "workers": 4, "worker_cores": 8}
LAYOUTS = (
    ("one server of 16 cores, no day end", Layout(6, 0, 16), SIGNED, CLOSED),
    ("the same, one process closes", Layout(6, 1, 16), SIGNED, CLOSED),
    ("the same, 12 processes close", Layout(6, 12, 16), SIGNED, CLOSED),
    ("4 workers of 8 cores, no day end", Layout(6, 0, **_NODES), SIGNED_SPREAD, CLOSED_SPREAD),
    ("the same, one process closes", Layout(6, 1, **_NODES), SIGNED_SPREAD, CLOSED_SPREAD),
    ("the same, 20 processes close", Layout(6, 20, **_NODES), SIGNED_SPREAD, CLOSED_SPREAD),
)


def main() -> None:
    """Print the measured points, then the target."""
    say("| | Per second | Batch | p50 | p99 | `serve` | Coordinator | Workers | Customers closed per second |")
    say("|---|---|---|---|---|---|---|---|---|")
    for per_second, p99 in MEASURED:
        run = Simulation(Layout(serve=1, due=0, coordinator_cores=1), SIGNED, SIGNED, per_second=per_second)
        run.run()
        say(f"| one server, {per_second} a second: measured p99 {p99} | {run.row()} |")
    for name, layout, transfer, due in LAYOUTS:
        run = Simulation(layout, transfer, due, per_second=TARGET)
        run.run()
        say(f"| {name} | {run.row()} |")


if __name__ == "__main__":
    main()
