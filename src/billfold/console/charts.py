"""Pictures of figures as SVG: coordinates only, the templates draw them. Pure; amounts are integer cents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from billfold.platform.money import format_usd

_WIDTH, _HEIGHT, _ROOM = 600, 140, 6
_POINTS_MIN = 2


class LineChart(NamedTuple):
    """A line through values by day and the area under it, as SVG paths."""

    line: str
    area: str
    first_label: str
    last_label: str
    width: int = _WIDTH
    height: int = _HEIGHT


class Rung(NamedTuple):
    """What falls due on a date, and how long its bar is beside the longest, in percent."""

    date: date
    cents: int
    percent: float

    @property
    def formatted(self) -> str:
        """The amount as people read it."""
        return format_usd(self.cents)


def line_chart(values: Sequence[tuple[date, int]]) -> LineChart | None:
    """Return the chart of values by day, oldest first; None for fewer than two."""
    if len(values) < _POINTS_MIN:
        return None
    amounts = [cents for _, cents in values]
    low, high = min(amounts), max(amounts)
    points = [
        f"{nth * _WIDTH / (len(amounts) - 1):.1f} {_y(cents, low, high):.1f}" for nth, cents in enumerate(amounts)
    ]
    line = "M" + "L".join(points)
    return LineChart(line, f"{line}L{_WIDTH} {_HEIGHT}L0 {_HEIGHT}Z", _label(*values[0]), _label(*values[-1]))


def maturity_ladder(face: Sequence[tuple[date, int]]) -> list[Rung]:
    """Return what falls due by date, from amounts of single holdings."""
    totals: dict[date, int] = {}
    for when, cents in face:
        totals[when] = totals.get(when, 0) + cents
    longest = max(totals.values(), default=1)
    return [Rung(when, totals[when], round(100 * totals[when] / longest, 1)) for when in sorted(totals)]


def _y(cents: int, low: int, high: int) -> float:
    if high == low:
        return _HEIGHT / 2
    return _ROOM + (_HEIGHT - 2 * _ROOM) * (high - cents) / (high - low)


def _label(when: date, cents: int) -> str:
    return f"{when:%b} {when.day}: {format_usd(cents)}"
