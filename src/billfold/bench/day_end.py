"""`billfold bench day_end`: how long it takes to close the day of everybody who moved.

The clock walks to the close of business. Customers are brought up to date in the batches a
worker uses: a snapshot per pocket that moved, a roll of each head, then the house settles.
"""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import Any

from billfold.bench.bare import bare_child
from billfold.bench.ground import Ground
from billfold.bench.measure import (
    Chapter,
    Figure,
    Lap,
    Say,
    figure,
    peak_of_family,
    rate,
    seconds_of,
)
from billfold.bench.proof import check_sums
from billfold.bench.racers import Child
from billfold.bench.sizes import Sizes
from billfold.bench.town import (
    OpenBank,
    Place,
    deposit,
    found_bank,
    next_morning,
    put_away,
    settle,
    submit_everything,
)
from billfold.engine.stepping import Stepping
from billfold.kit.clock import monotonic
from billfold.kit.dates import et_date

BARE = "bare transfers"
SECONDS_MOST = 60.0
UNEVEN_MOST = 1.5
"""How much more a pocket may cost among many than among few, for the day end to be linear."""

_CENTS = 1_000_00
_SNAPSHOTS = "SELECT count(*) FROM snapshot WHERE business_date = $1"
_HOUSE_DAY = "SELECT business_date FROM head h JOIN bank b ON b.house_customer_id = h.customer_id"


class DayEnd:
    """A bank whose pockets move in the morning and whose day is closed in the evening."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._portals: dict[int, Any] = {}
        self._moved = 0
        self._mornings = 0

    async def prepare(self, orders: tuple[str, int]) -> None:
        """Settle a number of customers, or let the pockets of a number of them move."""
        verb, number = orders
        if verb == "settle":
            self._portals = await settle(self._bank, range(number))
            await put_away(self._bank.pool)
            return
        self._mornings += 1
        await next_morning(self._bank)
        occasion = f"morning {self._mornings}"
        await submit_everything(
            self._bank,
            [deposit(nth, self._portals[nth], _CENTS, occasion) for nth in range(number)],
        )
        self._moved = number
        self._bank.engine.forget_all()
        gc.collect()

    async def run(self) -> Lap:
        """Walk the clock to the close; every pocket that moved has a snapshot after it."""
        day = et_date(await self._bank.now())
        stepping = Stepping(self._bank)
        started = monotonic()
        await stepping.set_to(self._bank.calendars.closes_at(day))
        ended = monotonic()
        assert await self._bank.pool.fetchval(_SNAPSHOTS, day) == self._moved
        assert await self._bank.pool.fetchval(_HOUSE_DAY) > day, "the house's day is still open"
        return Lap(self._moved, started, ended)

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()


async def open_day_end(place: Place) -> DayEnd:
    """Found the bank of an empty database."""
    return DayEnd(await found_bank(place))


def bench_day_end(ground: Ground, sizes: Sizes, say: Say) -> Chapter:
    """Close days of each size in every round and return the figures."""
    with ExitStack() as stack:
        bare = bare_child(ground.empty_database("bare"), sizes.customers)
        stack.callback(bare.close)
        place = ground.place("day_end")
        bank = Child(open_day_end, place=place)
        stack.callback(bank.close)
        people = max(sizes.day_ends)
        say(f"settling {people:,} customers")
        bank.prepare(("settle", people))
        rates: list[float] = []
        laps: dict[int, list[Lap]] = {size: [] for size in sizes.day_ends}
        for number in range(1, sizes.runs + 1):
            say(f"run {number}: {BARE}")
            rates.append(rate(bare.run(sizes.bare_transfers)))
            for size in sizes.day_ends:
                say(f"run {number}: day end of {size:,} pockets")
                laps[size].append(bank.run(("move", size)))
        peaks = {"engine": bank.peak_memory_mib(), **peak_of_family(ground.pid)}
        say("folding the log against the balances")
        check_sums(place)
        return Chapter(
            name="day_end",
            setting={"pockets per customer": 1, "customers": people},
            figures=_figures(rates, laps),
            peak_memory_mib=peaks,
        )


def _figures(rates: list[float], laps: dict[int, list[Lap]]) -> list[Figure]:
    base = figure(BARE, "per second", rates)
    figures = [base]
    costs = []
    for size, runs in laps.items():
        seconds = [seconds_of([lap]) for lap in runs]
        most = SECONDS_MOST if size == max(laps) else None
        figures.append(figure(f"day end of {size:,} pockets", "s", seconds, at_most=most))
        closed = [rate([lap]) for lap in runs]
        figures.append(figure(f"pockets closed, of {size:,}", "per second", closed, against=base))
        costs.append([second / size * 1e6 for second in seconds])
    first = figure(f"per pocket, of {min(laps):,}", "us", costs[0])
    figures.append(first)
    for size, cost in list(zip(laps, costs, strict=True))[1:]:
        figures.append(
            figure(f"per pocket, of {size:,}", "us", cost, against=first, at_most=UNEVEN_MOST)
        )
    return figures
