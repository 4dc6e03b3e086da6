"""The test clock: it never jumps, it moves from due instant to due instant.

At each instant customers are brought up to date first, then scheduled jobs run, then the bank closes
its day if it is over, then the clock moves further. An interrupted walk resumes where it stopped: the
clock shows the last instant reached, and work due then is still due. Freezing the clock
ends a walk in progress, in any process.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date, datetime, timedelta
from enum import StrEnum

import msgspec

from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import next_due as next_customer_due
from billfold.payments.clearing.worker import close_bank_days
from billfold.platform.clock import LATEST, ClockState, ClockTooFar, wall_now
from billfold.platform.database.business_clock import read_clock, write_clock
from billfold.platform.dates import ET, et_date, et_instant, iso_z
from billfold.platform.errors import InvariantError, Refused, Unavailable
from billfold.sandbox.dealers.launch import cover_and_wait

_HELD_BILLS = "SELECT DISTINCT asset FROM account WHERE live AND kind = 'lot' AND credits > debits"
_NEXT_TRADE = "SELECT min(settles_on) FROM trade WHERE settles_on > $1"
_NEXT_PAYMENT = "SELECT min(settles_at) FROM transaction WHERE settles_at > $1 AND swept"
# A Pocket that holds nothing is not charged; its fee date moves when money arrives.
_NEXT_FEE = """
SELECT min(p.next_fee_date) FROM pocket p
 WHERE EXISTS (SELECT 1 FROM account a WHERE a.customer_id = p.customer_id AND a.pocket_id = p.pocket_id
                  AND a.live AND a.kind IN ('cash', 'lot') AND a.credits > a.debits)
"""
_LOCK = "SELECT pg_advisory_xact_lock(lock) FROM unnest($1::bigint[]) AS lock"
_DAY_ENDS = "SELECT due_at FROM ledger_head WHERE customer_id = $1"


class EventKind(StrEnum):
    """A kind of event: maturing bills, settling trades and payments, the monthly fee, the end
    of the bank's day, and the next event of a rail."""

    MATURITY = "maturity"
    SETTLEMENT = "settlement"
    FEE = "fee"
    DAY_END = "day-end"
    WIRE = "wire"
    ACH = "ach"


async def next_event(bank: Bank, kind: EventKind, now: datetime) -> datetime | None:
    """Return the next instant of this kind, or None if there is none."""
    match kind:
        case EventKind.MATURITY:
            bills = [bank.market.bill(row["asset"]) for row in await bank.pool.fetch(_HELD_BILLS)]
            return min((bank.calendars.matures_at(each.maturity) for each in bills), default=None)
        case EventKind.SETTLEMENT:
            return await _next_settlement(bank, now)
        case EventKind.FEE:
            day: date | None = await bank.pool.fetchval(_NEXT_FEE)
            return None if day is None else bank.calendars.opens_at(day)
        case EventKind.DAY_END:
            ends_at: datetime | None = await bank.pool.fetchval(_DAY_ENDS, bank.own_id)
            return ends_at
        case EventKind.WIRE | EventKind.ACH:
            kinds = [each for each in bank.job_runners if each.removeprefix("sandbox.").startswith(kind)]
            return await scheduler.next_scheduled_at(bank, kinds)


async def _next_settlement(bank: Bank, now: datetime) -> datetime | None:
    day: date | None = await bank.pool.fetchval(_NEXT_TRADE, et_date(now))
    payment: datetime | None = await bank.pool.fetchval(_NEXT_PAYMENT, now)
    candidates = (payment, None if day is None else et_instant(day, 0))
    return min((each for each in candidates if each is not None), default=None)


BANK_DAY = "house-day"
"""The kind of event under which a closed bank day is counted."""

_LOCK_TIMEOUT_SECONDS = 50.0
_LOCKS = (
    scheduler.DUE_WORK_LOCK,
    *scheduler.DUE_HELP_LOCKS,
    scheduler.LONG_JOBS_LOCK,
    scheduler.BATCHES_LOCK,
)
_STOP_LOCK = 0x73746F70  # "stop": held shared by processes that want the walk to end
_COVERED_BEFORE = timedelta(minutes=1)
_REPEATS_MAX = 100  # at one instant; more means that due work is never completed


class ClockStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The time of the bank's clock, and the work done on the way there, counted by kind."""

    now: datetime
    frozen: bool
    settable: bool
    business_date: date
    next_event_at: datetime | None
    happened: dict[str, int]


class ClockStopped(Refused):
    """The clock was frozen before it reached its target."""

    def __init__(self, now: datetime, wanted: datetime) -> None:
        super().__init__(
            "clock-stopped",
            f"The clock was stopped at {iso_z(now)}, on its way to {iso_z(wanted)}.",
            now=now,
            wanted=wanted,
        )


class ClockStepper:
    """Moves the test clock of one bank. One process at a time moves it; the others wait.

    `on_step` is called with every instant that a walk reaches; the walk ends there if it returns False.
    """

    def __init__(self, bank: Bank, on_step: Callable[[datetime], bool] = lambda _: True) -> None:
        self._bank = bank
        self._on_step = on_step
        self._lock = asyncio.Lock()
        self._freezing = asyncio.Lock()

    async def show(self) -> ClockStatus:
        """Return the state of the clock, without changing it."""
        return await self._status(Counter())

    async def set_to(self, to: datetime) -> ClockStatus:
        """Move the clock to an instant. Refused if it is in the past, or too far ahead."""
        async with self._exclusive() as state:
            return await self._step_to(state.set(to, wall_now()).business_anchor)

    async def advance(self, by: timedelta) -> ClockStatus:
        """Move the clock forward by a duration. Refused like `set_to`."""
        async with self._exclusive() as state:
            return await self._step_to(state.advance(by, wall_now()).business_anchor)

    async def advance_business_days(self, days: int) -> ClockStatus:
        """Move the clock to the same time of day, a number of settlement days later."""
        async with self._exclusive() as state:
            wall = wall_now()
            now = state.at(wall)
            day = et_date(now)
            for _ in range(days):
                day = self._bank.calendars.next_settlement_day(day)
                if day >= LATEST.date():
                    raise ClockTooFar
            to = et_instant(day, now.astimezone(ET).time())
            return await self._step_to(state.set(max(now, to), wall).business_anchor)

    async def advance_to_next_event(self, kind: EventKind | None = None) -> ClockStatus:
        """Move the clock to the next instant at which work is due; stay if there is none.

        Refuses nothing-ahead if there is nothing of the kind.
        """
        async with self._exclusive() as state:
            wall = wall_now()
            now = state.at(wall)
            due = await (next_event(self._bank, kind, now) if kind else self._next_due())
            if kind and due is None:
                raise Refused("nothing-ahead", f"No {kind.value} is ahead.")
            return await self._step_to(state.set(max(due or now, now), wall).business_anchor)

    async def freeze(self) -> ClockStatus:
        """Stop the clock. A walk in progress ends at the instant that it has reached."""
        async with self._stopping(), self._exclusive() as state:
            await self._store(state.freeze(wall_now()))
            return await self._status(Counter())

    async def resume(self) -> ClockStatus:
        """Let the clock run."""
        async with self._exclusive() as state:
            await self._store(state.resume(wall_now()))
            return await self._status(Counter())

    # -- on the way ------------------------------------------------------------------

    async def _step_to(self, to: datetime) -> ClockStatus:
        happened: Counter[str] = Counter()
        at, repeats = await self._now(), 0
        while (due := await self._next_due()) is not None and due <= to:
            instant = max(due, await self._now())
            repeats = repeats + 1 if instant == at else 0
            if repeats > _REPEATS_MAX:
                raise InvariantError("Due work stays due although it was done repeatedly.", due=due)
            at = instant
            await self._cover_before(instant)
            await self._set(instant)
            happened += await self._run_due_at(instant)
            if await self._is_stopped(instant):
                raise ClockStopped(await self._now(), to)
        await self._set(to)
        return await self._status(happened)

    async def _cover_before(self, instant: datetime) -> None:
        """Cover the day's trades a minute before a close on the way, which the clock would jump over."""
        now = await self._now()
        closes = self._bank.calendars.closes_at(self._bank.calendars.business_date(now))
        if self._bank.settings.dealer_sessions and now < closes <= instant:
            await self._set(max(now, closes - _COVERED_BEFORE))
            await cover_and_wait(self._bank)

    async def _run_due_at(self, instant: datetime) -> Counter[str]:
        """Do the work due by `instant`: customers first, then scheduled jobs, then the bank's day end."""
        catch_up = await scheduler.catch_up_due(self._bank, instant)
        for error in catch_up.failed.values():
            raise error
        kept = await scheduler.run_scheduled_jobs(self._bank, instant)
        for error in kept.failed.values():
            raise error
        days = await close_bank_days(self._bank, instant)
        return catch_up.happened + kept.happened + Counter({BANK_DAY: days})

    async def _next_due(self) -> datetime | None:
        due_times = (await next_customer_due(self._bank.pool), await scheduler.next_scheduled_at(self._bank))
        return min((due for due in due_times if due is not None), default=None)

    async def _set(self, to: datetime) -> None:
        """Show `to`, unless a running clock has already passed it."""
        state, wall = await self._read_state(), wall_now()
        if state.at(wall) < to:
            await self._store(state.set(to, wall))

    async def _store(self, state: ClockState) -> None:
        async with self._bank.pool.acquire() as conn:
            await write_clock(conn, state)

    async def _read_state(self) -> ClockState:
        async with self._bank.pool.acquire() as conn:
            state = await read_clock(conn)
        if state is None:
            raise Refused("bad-request", "This bank runs on the real clock, which cannot be set or stopped.")
        return state

    async def _now(self) -> datetime:
        return (await self._read_state()).at(wall_now())

    async def _status(self, happened: Counter[str]) -> ClockStatus:
        async with self._bank.pool.acquire() as conn:
            state = await read_clock(conn)
        wall = wall_now()
        now = wall if state is None else state.at(wall)
        return ClockStatus(
            now=now,
            frozen=state is not None and state.frozen,
            settable=state is not None,
            business_date=self._bank.calendars.business_date(now),
            next_event_at=await self._next_due(),
            happened={kind: count for kind, count in sorted(happened.items()) if count},
        )

    async def _is_stopped(self, instant: datetime) -> bool:
        if not self._on_step(instant):
            return True
        is_free: bool = await self._bank.pool.fetchval("SELECT pg_try_advisory_xact_lock($1)", _STOP_LOCK)
        return not is_free

    @asynccontextmanager
    async def _stopping(self) -> AsyncIterator[None]:
        """End the walk in progress, and those that wait for it."""
        # One at a time: a walk needs connections to finish.
        async with self._freezing, self._bank.pool.acquire() as conn, conn.transaction():
            await conn.execute("SELECT pg_advisory_xact_lock_shared($1)", _STOP_LOCK)
            yield

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[ClockState]:
        """Lock out every other process that moves the clock or does due work; yield the clock's state."""
        try:
            await asyncio.wait_for(self._lock.acquire(), _LOCK_TIMEOUT_SECONDS)
        except TimeoutError:
            raise _is_moving() from None
        try:
            async with self._bank.pool.acquire() as conn, conn.transaction():
                try:
                    await conn.execute(_LOCK, _LOCKS, timeout=_LOCK_TIMEOUT_SECONDS)
                except TimeoutError:
                    raise _is_moving() from None
                yield await self._read_state()
        finally:
            self._lock.release()


def _is_moving() -> Unavailable:
    return Unavailable("The clock is moving already. Freeze it to stop it.")
