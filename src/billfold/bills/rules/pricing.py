"""Bill arithmetic of 31 CFR 356 Appendix B, in integers: price and discount rate."""

from collections.abc import Sequence

from billfold.platform.money import PRICE_PAR_MICROS, round_half_up

RATE_TICK_MILLI = 5
"""Bills are quoted in steps of 0.005 %."""

_DISCOUNT_YEAR_DAYS = 360
_MICROS_PER_MILLI = 1000
_BPS = 10_000
NO_BID = 0
"""The bid for a bill that cannot be sold."""


def price_from_rate(rate_milli: int, days: int) -> int:
    """Return the price in micro-dollars per $100 at a discount rate, `days` before maturity.

    Rounded half up to six decimals; par at maturity and after. Source: domain rule
    P = 100 * (1 - d * r / 360).
    """
    if days <= 0:
        return PRICE_PAR_MICROS
    return round_half_up(
        PRICE_PAR_MICROS * _DISCOUNT_YEAR_DAYS - _MICROS_PER_MILLI * rate_milli * days, _DISCOUNT_YEAR_DAYS
    )


def rate_from_price(price_micros: int, days: int) -> int:
    """Return the discount rate, in thousandths of a percent, that corresponds to a price.

    Half up to the thousandth. Raises ValueError when the bill has no days left.
    """
    if days <= 0:
        raise ValueError(f"a discount rate needs at least one day to maturity, not {days}")
    return round_half_up((PRICE_PAR_MICROS - price_micros) * _DISCOUNT_YEAR_DAYS, _MICROS_PER_MILLI * days)


def interpolated_rate(nodes: Sequence[tuple[int, int]], days: int) -> int:
    """Return the rate in thousandths of a percent for `days`, on the 0.005 grid, half up.

    `nodes` are (days, rate_milli), ascending and at least one; flat before the first and after
    the last, a straight line between two.
    """
    (before_days, before_rate), (after_days, after_rate) = neighbours(nodes, days)
    span = after_days - before_days
    if not span:
        return _round_to_tick(before_rate, 1)
    return _round_to_tick(before_rate * span + (after_rate - before_rate) * (days - before_days), span)


def neighbours(nodes: Sequence[tuple[int, int]], days: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the nodes around `days`; at or outside the ends, the same node twice."""
    before = nodes[0]
    if days <= before[0]:
        return before, before
    for node in nodes:
        if days <= node[0]:
            return before, node
        before = node
    return before, before


def subtract_spread(price_micros: int, spread_bps: int) -> int:
    """Return a price minus a spread in hundredths of a percent of the price, half up."""
    return price_micros - round_half_up(price_micros * spread_bps, _BPS)


def _round_to_tick(numerator: int, denominator: int) -> int:
    return RATE_TICK_MILLI * round_half_up(numerator, RATE_TICK_MILLI * denominator)
