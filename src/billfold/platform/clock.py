"""The clock: the only reader of wall time, and the sandbox's clock that can be set forward.

The bank's time is wall time unless a row of the table `clock` says otherwise. Everybody else
takes `now` as a parameter. The bank's time never goes back.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from billfold.platform.dates import iso_z, require_aware
from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection)

EARLIEST = datetime(2023, 1, 3, 13, tzinfo=UTC)
"""No clock begins before this instant: it is the opening of the first day whose rates are packaged."""
LATEST = datetime(2098, 1, 1, tzinfo=UTC)
"""The clock stops before this instant: a bill bought then matures while bills can still be named."""

_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = LATEST - timedelta(microseconds=1)
_LOCK = 0x636C6F63  # "cloc": shared by those who book by the clock, alone for whoever sets it
_READ = "select business_anchor, wall_anchor, frozen from clock"
HOLD_CLOCK = f"""
select business_anchor, wall_anchor, frozen from pg_advisory_xact_lock_shared({_LOCK}) left join clock on true
"""
"""The clock, which nobody sets until the transaction ends: one row, of nulls when the bank runs on wall time."""
_WRITE = """
insert into clock as c (singleton, business_anchor, wall_anchor, frozen)
select true, $1, $2, $3 from pg_advisory_xact_lock($4)
on conflict (singleton) do update
   set business_anchor = excluded.business_anchor,
       wall_anchor = excluded.wall_anchor,
       frozen = excluded.frozen
 where c.business_anchor <= excluded.business_anchor
returning true
"""


class ClockWouldGoBack(Refused):
    """The clock was to be set to an instant that has already been."""

    def __init__(self, now: datetime, wanted: datetime) -> None:
        super().__init__(
            "clock-would-go-back",
            f"It is {iso_z(now)} in the bank; it cannot become {iso_z(wanted)}.",
            now=now,
            wanted=wanted,
        )


class ClockTooFar(Refused):
    """The clock was to be set further than bills can be named."""

    def __init__(self) -> None:
        super().__init__("clock-too-far", f"The clock can be set to instants before {iso_z(LATEST)}.")


@dataclass(frozen=True, slots=True)
class ClockState:
    """A settable clock: at `wall_anchor` it showed `business_anchor`; frozen, it still does.

    Every method that changes it takes the wall time and returns the state from then on.
    """

    business_anchor: datetime
    wall_anchor: datetime
    frozen: bool = False

    def __post_init__(self) -> None:
        """Refuse anchors without a time zone."""
        require_aware(self.business_anchor)
        require_aware(self.wall_anchor)

    def at(self, wall: datetime) -> datetime:
        """Return the bank's time at a wall time; before the anchor it is the anchor's.

        A running clock stands still before `LATEST`.
        """
        if self.frozen or wall <= self.wall_anchor:
            return self.business_anchor
        return min(self.business_anchor + (wall - self.wall_anchor), max(_LAST, self.business_anchor))

    def set(self, to: datetime, wall: datetime) -> "ClockState":
        """Return the clock set to `to`, running or frozen as before.

        Raises ClockWouldGoBack when `to` has been, ClockTooFar from `LATEST` on.
        """
        now = self.at(wall)
        to = require_aware(to).astimezone(UTC)
        if to < now:
            raise ClockWouldGoBack(now, to)
        if to >= LATEST:
            raise ClockTooFar
        return ClockState(to, max(wall, self.wall_anchor), self.frozen)

    def advance(self, by: timedelta, wall: datetime) -> "ClockState":
        """Return the clock moved forward. Raises as `set` does."""
        now = self.at(wall)
        if by >= LATEST - now:
            raise ClockTooFar
        return self.set(now + max(by, _FIRST - now), wall)

    def freeze(self, wall: datetime) -> "ClockState":
        """Return the clock standing still at what it shows now."""
        return ClockState(self.at(wall), max(wall, self.wall_anchor), frozen=True)

    def resume(self, wall: datetime) -> "ClockState":
        """Return the clock running on from what it shows now."""
        return ClockState(self.at(wall), max(wall, self.wall_anchor), frozen=False)


def wall_now() -> datetime:
    """Return the wall time, aware, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds from a clock that never goes back, for measuring durations only."""
    return time.monotonic()


def business_now(state: ClockState | None, wall: datetime) -> datetime:
    """Return the bank's time: the settable clock's where there is one, else the wall's."""
    return wall if state is None else state.at(wall)


async def read_clock(conn: "Connection", *, hold: bool = False) -> ClockState | None:
    """Return the settable clock, or None when the bank runs on wall time.

    `hold` keeps others from setting it until the transaction ends: what is booked by it is never
    more than one step behind it.
    """
    row = await conn.fetchrow(HOLD_CLOCK if hold else _READ)
    return None if row is None else clock_of_row(*row)


def clock_of_row(
    business_anchor: datetime | None,
    wall_anchor: datetime | None,
    frozen: bool | None,  # noqa: FBT001 - as columns
) -> ClockState | None:
    """Return the clock of its columns, which are null when the bank runs on wall time."""
    if business_anchor is None or wall_anchor is None or frozen is None:
        return None
    return ClockState(business_anchor, wall_anchor, frozen)


async def write_clock(conn: "Connection", state: ClockState) -> None:
    """Make this the bank's clock. Raises ClockWouldGoBack when another was set further on."""
    anchors = (state.business_anchor, state.wall_anchor, state.frozen)
    written = await conn.fetchval(_WRITE, *anchors, _LOCK)
    if written is None:
        current = await conn.fetchval("select business_anchor from clock")
        raise ClockWouldGoBack(current, state.business_anchor)
