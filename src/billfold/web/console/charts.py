"""Charts of figures as SVG: coordinates only, the templates draw them. Pure; amounts are integer cents."""

from collections.abc import Sequence
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


def _bounds(least: int, most: int) -> tuple[int, int]:
    """Return round amounts below and above, whose middle is round as well."""
    step = next(n * 10**k for k in count(2) for n in (1, 2, 5) if 4 * n * 10**k >= most - least)
    low, high = least // step, -(-most // step)
    high += (high - low) % 2 or 2 * (high == low)
    return low * step, high * step
