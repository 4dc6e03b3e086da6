"""Python's garbage collector, set for a long-lived server full of small, acyclic records.

Requests and commands leave no cycles behind: there is next to nothing to find, and a look in the midst of a batch
keeps everybody waiting while all its rows are walked through. So the collector looks at what is new when little is
under way, and puts what is left aside. What filled the caches in a time of full load is put aside without a look, as it
would take too long, up to a limit. Once a day, when nothing is under way, the collector looks at everything.
"""

import asyncio
import gc
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from billfold.platform.clock import monotonic
from billfold.platform.telemetry.metrics import COLLECTOR_PAUSE_SECONDS

AUTOMATIC_THRESHOLD = 250_000
"""So many more objects than there were are cycles that leak, in a process that is never at rest."""
LOOK_SECONDS = 1.0
FEW_UNDER_WAY = 30
FEW_OBJECTS, MANY_OBJECTS = 2_500, 7_500
"""So many new objects are worth a look; a look at more may take longer than 5 ms on a busy machine."""
UNSEEN_OBJECTS_MAX = 200_000
"""So many objects are put aside without a look until the next full one: 25 MB, were they all garbage."""
FULL_LOOK_SECONDS = 86_400.0
_PAUSES_KEPT = 1_000


class _Stopwatch:
    """Times what the collector takes. Nothing is counted meanwhile: whoever counts may be held up at a lock."""

    def __init__(self) -> None:
        self.pauses: deque[float] = deque(maxlen=_PAUSES_KEPT)
        self._began = 0.0

    def __call__(self, phase: str, _: object) -> None:
        if phase == "start":
            self._began = monotonic()
        else:
            self.pauses.append(monotonic() - self._began)


_stopwatch = _Stopwatch()


def tune_garbage_collector() -> None:
    """Call once a process has loaded what it keeps: that is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(AUTOMATIC_THRESHOLD, 50, 100)
    if _stopwatch not in gc.callbacks:
        gc.callbacks.append(_stopwatch)


@asynccontextmanager
async def collecting_at_rest(under_way: Callable[[], int]) -> AsyncIterator[None]:
    """Look for garbage while the context lasts, whenever at most FEW_UNDER_WAY commands are under way."""
    task = asyncio.create_task(collect_at_rest(under_way))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def collect_at_rest(under_way: Callable[[], int]) -> None:
    """Look for garbage for ever, and count how long each look took."""
    full_look_at = monotonic() + FULL_LOOK_SECONDS
    unseen = 0
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        while _stopwatch.pauses:
            COLLECTOR_PAUSE_SECONDS.observe(_stopwatch.pauses.popleft())
        commands = under_way()
        if not commands and monotonic() >= full_look_at:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            full_look_at = monotonic() + FULL_LOOK_SECONDS
            unseen = 0
        elif commands <= FEW_UNDER_WAY and gc.get_count()[0] >= FEW_OBJECTS:
            unseen += _put_aside(UNSEEN_OBJECTS_MAX - unseen)


def _put_aside(unseen_max: int) -> int:
    """Put new objects aside after a look at them; return how many were put aside without one."""
    # The collector's own count goes down with old objects, too.
    new_objects = len(gc.get_objects(generation=0))
    is_unseen = MANY_OBJECTS < new_objects <= unseen_max
    if not is_unseen:
        gc.collect(0)
    gc.freeze()
    return new_objects if is_unseen else 0
