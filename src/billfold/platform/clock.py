"""The clock: the only reader of wall time, and the settable clock of a sandbox.

The bank's time is wall time unless a row of the table `clock` overrides it. All other code
takes `now` as a parameter. The bank's time never decreases.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from billfold.platform.dates import iso_z, require_aware
from billfold.platform.errors import Refused

EARLIEST = datetime(2023, 1, 3, 13, tzinfo=UTC)
"""No clock begins before this instant: it is the opening of the first day whose rates are packaged."""
LATEST = datetime(2098, 1, 1, tzinfo=UTC)
"""The clock stops before this instant: a bill bought then still matures within the range of known bills."""

_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = LATEST - timedelta(microseconds=1)


class ClockWouldGoBack(Refused):
    """The clock was set to an instant in the past."""

    def __init__(self, now: datetime, wanted: datetime) -> None:
        super().__init__(
            "clock-would-go-back",
            f"It is {iso_z(now)} in the bank; it cannot become {iso_z(wanted)}.",
            now=now,
            wanted=wanted,
        )


class ClockTooFar(Refused):
    """The clock was set beyond the range of known bills."""

    def __init__(self) -> None:
        super().__init__("clock-too-far", f"The clock can be set to instants before {iso_z(LATEST)}.")


@dataclass(frozen=True, slots=True)
class ClockState:
    """A settable clock: at `wall_anchor` it showed `business_anchor`; if frozen, it still does.

    Every method that changes it takes the wall time and returns the new state.
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

        A running clock stops before `LATEST`.
        """
        if self.frozen or wall <= self.wall_anchor:
            return self.business_anchor
        return min(self.business_anchor + (wall - self.wall_anchor), max(_LAST, self.business_anchor))

    def set(self, to: datetime, wall: datetime) -> "ClockState":
        """Return the clock set to `to`, running or frozen as before.

        Raises ClockWouldGoBack if `to` is in the past, ClockTooFar from `LATEST` on.
        """
        now = self.at(wall)
        to = require_aware(to).astimezone(UTC)
        if to < now:
            raise ClockWouldGoBack(now, to)
        if to >= LATEST:
            raise ClockTooFar
        return ClockState(to, max(wall, self.wall_anchor), self.frozen)

    def advance(self, by: timedelta, wall: datetime) -> "ClockState":
        """Return the clock moved forward. Raises like `set`."""
        now = self.at(wall)
        if by >= LATEST - now:
            raise ClockTooFar
        return self.set(now + max(by, _FIRST - now), wall)

    def freeze(self, wall: datetime) -> "ClockState":
        """Return the clock frozen at its current time."""
        return ClockState(self.at(wall), max(wall, self.wall_anchor), frozen=True)

    def resume(self, wall: datetime) -> "ClockState":
        """Return the clock running from its current time."""
        return ClockState(self.at(wall), max(wall, self.wall_anchor), frozen=False)


def wall_now() -> datetime:
    """Return the wall time, aware, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds from a monotonic clock, for measuring durations only."""
    return time.monotonic()


def business_now(state: ClockState | None, wall: datetime) -> datetime:
    """Return the bank's time: the settable clock's if there is one, else the wall's."""
    return wall if state is None else state.at(wall)
