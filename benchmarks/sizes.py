"""The sizes of each benchmark: the full ones, and a fraction of them for a quick run."""

from __future__ import annotations

import msgspec

RUNS = 5
QUICK_SCALE = 0.1

_FEWEST = 20


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of one session, all counts but `seconds`, the length of a run at half load."""

    runs: int
    customers: int
    bare_transfers: int
    ach_entries: int
    day_ends: tuple[int, ...]
    history: int
    requests: int
    deliveries: int
    undelivered: int
    applications: int
    seconds: float


def sizes_at(scale: float, *, runs: int = RUNS) -> Sizes:
    """Return the sizes at a scale; 1.0 is what the published figures were made with."""

    def scaled(full: int) -> int:
        return max(_FEWEST, round(full * scale))

    return Sizes(
        runs=runs,
        customers=scaled(10_000) // 2 * 2,
        bare_transfers=scaled(15_000),
        ach_entries=scaled(100_000),
        day_ends=(scaled(1_000), scaled(10_000), scaled(100_000)),
        history=scaled(1_000_000),
        requests=scaled(5_000),
        deliveries=scaled(10_000),
        undelivered=scaled(100_000),
        applications=scaled(500),
        seconds=max(0.5, 5.0 * scale),
    )
