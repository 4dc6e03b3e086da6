"""How long the garbage collector keeps a server waiting, by the server's own metric.

A server of its own counts, since counting costs time: the others are measured without. It serves transfers as fast as
they are answered, then at half of that rate, and rests, while customers are read that it did not know before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import sleep

from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from benchmarks.dataset import Location
from benchmarks.measurements import Figure, figure
from benchmarks.server import Server
from billfold.platform.garbage_collection import LOOK_SECONDS
from billfold.platform.telemetry.metrics import COLLECTOR_PAUSE_SECONDS

LONGEST_PAUSE_MS = 5.0
_REST_SECONDS = 3 * LOOK_SECONDS


def longest_pause(location: Location, use: Callable[[Server], None], *, times: int) -> Figure:
    """Return the longest pause of a server that is used and rests, so many times, as the bound that it does not pass.

    The bounds are the metric's: 1, 2, 5, 10, 20, 50 and 100 ms.
    """
    with tempfile.TemporaryDirectory(prefix="billfold-bench-") as folder:
        server = Server(location, workers=1, counts=Path(folder))
        try:
            server.open()
            for _ in range(times):
                use(server)
                sleep(_REST_SECONDS)
        finally:
            server.close()
        return figure("longest pause of the collector, at most", "ms", [_longest_ms(folder)], at_most=LONGEST_PAUSE_MS)


def _longest_ms(folder: str) -> float:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]
    bucket = f"{COLLECTOR_PAUSE_SECONDS.name}_bucket"
    samples = [each for family in registry.collect() for each in family.samples if each.name == bucket]
    counts = {float(each.labels["le"]): each.value for each in samples}
    assert any(counts.values()), "the collector did not look once"
    return min(bound for bound, count in counts.items() if count == max(counts.values())) * 1e3
