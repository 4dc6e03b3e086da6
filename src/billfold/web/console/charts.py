"""Charts of figures as SVG: coordinates only, the templates draw them. Pure; amounts are integer cents."""

from collections.abc import Callable, Sequence
from datetime import date
from itertools import count
from typing import NamedTuple

from billfold.platform.money import format_usd

_WIDTH, _HEIGHT = 1000, 300
_POINTS_MIN = 2


class MaturityBar(NamedTuple):
    """The amount that matures on a date, and the length of its bar relative to the longest, in percent."""

    date: date
    cents: int
    percent: float

    @property
    def formatted(self) -> str:
        """The formatted amount."""
        return format_usd(self.cents)


def maturity_ladder(face: Sequence[tuple[date, int]]) -> list[MaturityBar]:
    """Return maturing amounts by date, from amounts of single holdings."""
    totals: dict[date, int] = {}
    for when, cents in face:
        totals[when] = totals.get(when, 0) + cents
    longest = max(totals.values(), default=1)
    return [MaturityBar(when, totals[when], round(100 * totals[when] / longest, 1)) for when in sorted(totals)]


class LineChart(NamedTuple):
    """Amounts over time as one line: the points of an SVG of 1000 by 300, and the labels of its axes."""

    points: str
    area: str
    marks: list[str]
    """The amounts at the three lines of the grid, from the top."""


def line_chart(values: Sequence[int]) -> LineChart | None:
    """Return the chart of amounts in cents at even intervals; None for fewer than two."""
    if len(values) < _POINTS_MIN:
        return None
    low, high = _bounds(min(values), max(values))
    across = _WIDTH / (len(values) - 1)
    points = [
        f"{round(n * across, 1):g},{round(_HEIGHT * (high - cents) / (high - low), 1):g}"
        for n, cents in enumerate(values)
    ]
    line = " ".join(points)
    marks = [format_usd(cents).removesuffix(".00") for cents in (high, (high + low) // 2, low)]
    return LineChart(line, f"0,{_HEIGHT} {line} {_WIDTH},{_HEIGHT}", marks)


class HourChart(NamedTuple):
    """The line of a balance by hour, and the height of its floor; None without one."""

    line: LineChart | None
    floor: float | None


def hour_chart(values: Sequence[int], floor: int | None) -> HourChart:
    """Return the chart of a balance in cents, on a scale that shows its floor too."""
    low, high = _bounds(min(*values, floor or 0), max(*values, floor or 0))
    across = _WIDTH / (len(values) - 1)
    heights = [round(_HEIGHT * (high - cents) / (high - low), 1) for cents in values]
    line = " ".join(f"{round(n * across, 1):g},{height:g}" for n, height in enumerate(heights))
    marks = [format_usd(cents).removesuffix(".00") for cents in (high, (high + low) // 2, low)]
    zero = round(_HEIGHT * high / (high - low), 1)
    area = f"0,{zero:g} {line} {_WIDTH},{zero:g}"
    at = None if floor is None else round(_HEIGHT * (high - floor) / (high - low), 1)
    return HourChart(LineChart(line, area, marks), at)


class Bar(NamedTuple):
    """One part of a stack, by its place in it, as a rectangle in an SVG of 1000 by 300."""

    part: int
    x: float
    y: float
    width: float
    height: float


class BarChart(NamedTuple):
    """Stacks over time, and what stands at the three lines of the grid, from the top."""

    bars: list[Bar]
    marks: list[str]


def bar_chart(stacks: Sequence[Sequence[int]], mark: Callable[[int], str] = "{:,}".format) -> BarChart | None:
    """Return the chart of stacked numbers at even intervals; None if all are 0. `mark` formats a number."""
    most = max(map(sum, stacks), default=0)
    if not most:
        return None
    _, high = _bounds(0, most, least_power=0)
    across, bars = _WIDTH / len(stacks), list[Bar]()
    for n, stack in enumerate(stacks):
        y = float(_HEIGHT)
        for part, value in enumerate(stack):
            height = _HEIGHT * value / high
            y -= height
            if value:
                place = (n * across + across / 8, y, across * 3 / 4, height)
                bars.append(Bar(part, *(round(each, 1) for each in place)))
    return BarChart(bars, [mark(each) for each in (high, high // 2, 0)])


def _bounds(least: int, most: int, least_power: int = 2) -> tuple[int, int]:
    """Return round numbers below and above, whose middle is round as well: by default whole dollars in cents."""
    step = next(n * 10**k for k in count(least_power) for n in (1, 2, 5) if 4 * n * 10**k >= most - least)
    low, high = least // step, -(-most // step)
    high += (high - low) % 2 or 2 * (high == low)
    return low * step, high * step
