"""`billfold bench day_end`: how long it takes to close the day of everybody who moved.

The clock walks to the close of business. Customers are brought up to date in the batches a
worker uses: a snapshot per pocket that moved, a roll of each head, then the house settles.
"""

from __future__ import annotations

import asyncio

from benchmarks.bank_workload import BankWorkload, check_sums
from benchmarks.baseline import BARE
from benchmarks.dataset import deposit, submit_commands
from benchmarks.measurements import Figure, Result, Timing, figure, rate, seconds_of
from benchmarks.session import Session
from billfold.ledger.scheduler import catch_up_due
from billfold.platform.clock import monotonic
from billfold.platform.dates import et_date
from billfold.sandbox.control.clock_stepper import ClockStepper

MAX_SECONDS = 60.0
MAX_UNEVENNESS = 1.5
"""The factor by which a pocket may cost more among many than among few, for the day end to count as linear."""

_CENTS = 1_000_00
_LOOK_SECONDS = 0.05
_SNAPSHOTS = "SELECT count(*) FROM snapshot WHERE business_date = $1"
_HOUSE_DAY = "SELECT business_date FROM ledger_head h JOIN bank b ON b.bank_customer_id = h.customer_id"


class DayEnd(BankWorkload):
    """A bank whose pockets move in the morning and whose day is closed in the evening."""

    async def move(self, moved: int) -> None:
        """Let so many pockets move."""
        await self.morning()
        day = et_date(await self._bank.now())
        people = list(self._portals.items())[:moved]
        await submit_commands(self._bank, [deposit(nth, portal, _CENTS, f"{day}") for nth, portal in people])
        self._forget_books()

    async def close_day(self, moved: int) -> Timing:
        """Time the walk to the close; each pocket that has moved has a snapshot after it."""
        day, stepping = et_date(await self._bank.now()), ClockStepper(self._bank)
        started = monotonic()
        await stepping.set_to(self._bank.calendars.closes_at(day))
        ended = monotonic()
        assert await self.fetch(_SNAPSHOTS, day) == moved
        assert await self.fetch(_HOUSE_DAY) > day, "the house's day is still open"
        return Timing(moved, started, ended)

    async def help(self) -> int:
        """Bring customers up to date, as a second worker does, until the day is closed; return how many pockets."""
        day, closed = await self.fetch(_HOUSE_DAY), 0
        while await self.fetch(_HOUSE_DAY) == day:
            work = await catch_up_due(self._bank, await self._bank.now(), ahead=1)
            closed += work.happened["close"]
            await asyncio.sleep(_LOOK_SECONDS)
        return closed


def bench_day_end(session: Session) -> Result:
    """Close days of each size in every round and return the figures."""
    sizes, bare, location = session.sizes, session.baseline(), session.database.location("day_end")
    bank = session.bank(location, DayEnd)
    people = max(sizes.day_ends)
    session.log(f"creating {people:,} customers")
    bank.call("create", people, 0)
    helper = session.bank(location, DayEnd, first=False)
    rates, helped, shares = list[float](), list[Timing](), list[float]()
    timings: dict[int, list[Timing]] = {size: [] for size in sizes.day_ends}
    for number in range(1, sizes.runs + 1):
        session.log(f"run {number}: {BARE}")
        rates.append(bare.call("per_second", sizes.bare_transfers))
        for size in sizes.day_ends:
            session.log(f"run {number}: day end of {size:,} pockets")
            bank.call("move", size)
            timings[size].append(bank.call("close_day", size))
        session.log(f"run {number}: with a second process")
        bank.call("move", people)
        helper.start("help")
        helped.append(bank.call("close_day", people))
        shares.append(helper.finish() / people)
    peaks = session.peaks(engine=bank.peak_memory_mib())
    session.log("folding the log against the balances")
    check_sums(location)
    setting = {"pockets per customer": 1, "customers": people}
    return Result(
        name="day_end", setting=setting, figures=_figures(rates, timings, helped, shares), peak_memory_mib=peaks
    )


def _figures(
    rates: list[float], timings: dict[int, list[Timing]], helped: list[Timing], shares: list[float]
) -> list[Figure]:
    base = figure(BARE, "per second", rates)
    figures = [base]
    costs = []
    for size, runs in timings.items():
        seconds = [seconds_of([timing]) for timing in runs]
        most = MAX_SECONDS if size == max(timings) else None
        figures.append(figure(f"day end of {size:,} pockets", "s", seconds, at_most=most))
        closed = [rate([timing]) for timing in runs]
        figures.append(figure(f"pockets closed, of {size:,}", "per second", closed, against=base))
        costs.append([second / size * 1e6 for second in seconds])
    first = figure(f"per pocket, of {min(timings):,}", "us", costs[0])
    figures.append(first)
    for size, cost in list(zip(timings, costs, strict=True))[1:]:
        figures.append(figure(f"per pocket, of {size:,}", "us", cost, against=first, at_most=MAX_UNEVENNESS))
    figures.append(figure("all, with a second process", "s", [seconds_of([timing]) for timing in helped]))
    if all(shares):  # of fewer than a thousand customers it leaves all to the first
        figures.append(figure("share of the second process", "of pockets", shares))
    return figures
