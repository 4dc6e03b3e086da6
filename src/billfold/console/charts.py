"""Pictures of figures as SVG: coordinates only, the templates draw them. Pure; amounts are integer cents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from billfold.platform.money import format_usd


class Rung(NamedTuple):
    """What falls due on a date, and how long its bar is beside the longest, in percent."""

    date: date
    cents: int
    percent: float

    @property
    def formatted(self) -> str:
        """The amount as people read it."""
        return format_usd(self.cents)


def maturity_ladder(face: Sequence[tuple[date, int]]) -> list[Rung]:
    """Return what falls due by date, from amounts of single holdings."""
    totals: dict[date, int] = {}
    for when, cents in face:
        totals[when] = totals.get(when, 0) + cents
    longest = max(totals.values(), default=1)
    return [Rung(when, totals[when], round(100 * totals[when] / longest, 1)) for when in sorted(totals)]
