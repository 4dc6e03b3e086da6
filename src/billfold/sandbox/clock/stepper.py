"""The test clock: it never jumps, it walks from due instant to due instant.

At each instant customers are brought up to date first, then appointments are kept, then the house
closes its day if it is over, then the clock goes on. What is interrupted goes on where it stopped:
the clock shows the last instant reached, and what was due then is still due.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from billfold.ledger.jobs.due_work import DUE_WORK_LOCK, catch_up_due
from billfold.ledger.jobs.due_work import next_due as next_customer_due
from billfold.ledger.jobs.scheduler import keep_appointments, next_appointment
from billfold.platform.clock import ClockState, read_clock, wall_now, write_clock
from billfold.platform.dates import ET, et_date, et_instant
from billfold.platform.errors import Broken, Refused, Unavailable
from billfold.treasury.settlement.worker import close_house_days

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

HOUSE_DAY = "house-day"
"""The kind under which a closed day of the house is counted."""

_PATIENCE_SECONDS = 50.0
_ROUNDS_MAX = 100  # at one instant; more means that something due is never done


class ClockFace(msgspec.Struct, frozen=True, kw_only=True):
    """What the bank's clock shows, and what happened on the way there, counted by kind."""

    now: datetime
    frozen: bool
    settable: bool
    business_date: date
    next_event_at: datetime | None
    happened: dict[str, int]


class Stepping:
    """Moves the test clock of one bank. One process at a time moves it; the others wait."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._turn = asyncio.Lock()

    async def show(self) -> ClockFace:
        """Return what the clock shows, without touching it."""
        return await self._face(Counter())

    async def set_to(self, to: datetime) -> ClockFace:
        """Move the clock to an instant. Refused when it has been, or is too far away."""
        async with self._alone():
            state = await self._state()
            return await self._walk(state.set(to, wall_now()).business_anchor)

    async def advance(self, by: timedelta) -> ClockFace:
        """Move the clock forward by a duration. Refused as `set_to` is."""
        async with self._alone():
            state = await self._state()
            return await self._walk(state.advance(by, wall_now()).business_anchor)

    async def advance_business_days(self, days: int) -> ClockFace:
        """Move the clock to the same time of day, a number of settlement days later."""
        async with self._alone():
            state, wall = await self._state(), wall_now()
            now = state.at(wall)
            day = et_date(now)
            for _ in range(days):
                day = self._bank.calendars.next_settlement_day(day)
            to = et_instant(day, now.astimezone(ET).time())
            return await self._walk(state.set(max(now, to), wall).business_anchor)

    async def run_to_next_event(self) -> ClockFace:
        """Move the clock to the next instant at which something is due; stay when nothing is."""
        async with self._alone():
            due = await self._next_due()
            state, wall = await self._state(), wall_now()
            now = state.at(wall)
            return await self._walk(state.set(max(due or now, now), wall).business_anchor)

    async def freeze(self) -> ClockFace:
        """Let the clock stand still."""
        async with self._alone():
            state = await self._state()
            await self._keep(state.freeze(wall_now()))
            return await self._face(Counter())

    async def resume(self) -> ClockFace:
        """Let the clock run on."""
        async with self._alone():
            state = await self._state()
            await self._keep(state.resume(wall_now()))
            return await self._face(Counter())

    # -- on the way ------------------------------------------------------------------

    async def _walk(self, to: datetime) -> ClockFace:
        happened: Counter[str] = Counter()
        at, rounds = await self._time(), 0
        while (due := await self._next_due()) is not None and due <= to:
            instant = max(due, await self._time())
            rounds = rounds + 1 if instant == at else 0
            if rounds > _ROUNDS_MAX:
                raise Broken("Something stays due however often it is done.", due=due)
            at = instant
            await self._go(instant)
            happened += await self._live_through(instant)
        await self._go(to)
        return await self._face(happened)

    async def _live_through(self, instant: datetime) -> Counter[str]:
        """Do what is due by `instant`: customers first, then appointments, then the house."""
        caught = await catch_up_due(self._bank, instant)
        for error in caught.failed.values():
            raise error
        kept = await keep_appointments(self._bank, instant)
        for error in kept.failed.values():
            raise error
        days = await close_house_days(self._bank, instant)
        return caught.happened + kept.happened + Counter({HOUSE_DAY: days})

    async def _next_due(self) -> datetime | None:
        dues = (await next_customer_due(self._bank), await next_appointment(self._bank))
        return min((due for due in dues if due is not None), default=None)

    async def _go(self, to: datetime) -> None:
        """Show `to`, unless a running clock has passed it by itself."""
        state, wall = await self._state(), wall_now()
        if state.at(wall) < to:
            await self._keep(state.set(to, wall))

    async def _keep(self, state: ClockState) -> None:
        async with self._bank.pool.acquire() as conn:
            await write_clock(conn, state)

    async def _state(self) -> ClockState:
        async with self._bank.pool.acquire() as conn:
            state = await read_clock(conn)
        if state is None:
            raise Refused(
                "bad-request", "This bank runs on the real clock, which nobody sets or stops."
            )
        return state

    async def _time(self) -> datetime:
        return (await self._state()).at(wall_now())

    async def _face(self, happened: Counter[str]) -> ClockFace:
        async with self._bank.pool.acquire() as conn:
            state = await read_clock(conn)
        wall = wall_now()
        now = wall if state is None else state.at(wall)
        return ClockFace(
            now=now,
            frozen=state is not None and state.frozen,
            settable=state is not None,
            business_date=self._bank.calendars.business_date(now),
            next_event_at=await self._next_due(),
            happened={kind: count for kind, count in sorted(happened.items()) if count},
        )

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold off whoever else would move the clock or do due work."""
        async with self._turn, self._bank.pool.acquire() as conn:
            try:
                await conn.execute(
                    "SELECT pg_advisory_lock($1)", DUE_WORK_LOCK, timeout=_PATIENCE_SECONDS
                )
            except TimeoutError:
                raise Unavailable("The clock is being moved already.") from None
            try:
                yield
            finally:
                await conn.execute("SELECT pg_advisory_unlock($1)", DUE_WORK_LOCK)
