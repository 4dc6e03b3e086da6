"""A composite of dealers' quotes: the median of each bill, without quotes that are old, foreign or far from the others.

Of two quotes that disagree neither is taken. A median far from the curve that the Treasury published last is left to a
person, and however often it is quoted again: a source can walk no further than that.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from statistics import median_high, median_low
from typing import NamedTuple

from billfold.bills.rules import pricing
from billfold.bills.rules.market import Market
from billfold.bills.types import CurvePoint, PriceStrike, TwoSidedQuote
from billfold.platform.errors import NotFound

CLOCK_SKEW = timedelta(seconds=5)
"""The clock of a dealer may be ahead by so much."""
_MILLI_PER_BP = 10


class QuoteLimits(NamedTuple):
    """The maximum age of a quote, and its distance from the others and the published curve in basis points of rate."""

    max_age: timedelta
    max_distance_bps: int
    max_jump_bps: int


class Composite(NamedTuple):
    """A composite, None if none of the quotes is new, and why quotes or bills were left out."""

    strike: PriceStrike | None
    refused: tuple[str, ...]


class _Rated(NamedTuple):
    quote: TwoSidedQuote
    bid_milli: int
    ask_milli: int


def compose(quotes: Iterable[TwoSidedQuote], market: Market, now: datetime, limits: QuoteLimits) -> Composite:
    """Return the composite of quotes at an instant: of each dealer and bill the newest one counts.

    It is None if none of them is newer than the composite on record.
    """
    refused: list[str] = []
    day, newest = market.calendars.pricing_day(now), dict[tuple[str, str], TwoSidedQuote]()
    for quote in quotes:
        problem = _problem_of(quote, market, now, limits)
        if problem:
            refused.append(f"{quote.dealer} {quote.cusip}: {problem}")
            continue
        known = newest.setdefault((quote.cusip, quote.dealer), quote)
        if known.quoted_at < quote.quoted_at:
            newest[quote.cusip, quote.dealer] = quote
    points: dict[int, CurvePoint] = {}
    for cusip in sorted({cusip for cusip, _ in newest}):
        point = _point(cusip, [each for (of, _), each in newest.items() if of == cusip], market, now=now, limits=limits)
        if isinstance(point, CurvePoint):
            points[point.days] = point
        else:
            refused.append(f"{cusip}: {point}")
    used = [each.quoted_at for point in points.values() for each in point.quotes]
    last = market.last_strike
    if not used or (last is not None and max(used) <= last.struck_at):
        return Composite(None, tuple(refused))
    return Composite(PriceStrike(day, max(used), min(used), tuple(points[n] for n in sorted(points))), tuple(refused))


def _problem_of(quote: TwoSidedQuote, market: Market, now: datetime, limits: QuoteLimits) -> str:
    try:
        bill = market.bill(quote.cusip)
    except NotFound:
        return "no such bill is on record"
    at = quote.quoted_at
    problems = {
        f"it is quoted in the future, at {at.isoformat()}": at > now + CLOCK_SKEW,
        f"it is too old, of {at.isoformat()}": now - at > limits.max_age,
        "the market was closed": not market.calendars.is_trading(at),
        "the bill matures before it could settle": bill.maturity <= market.settles_on(at),
        "the bid is above the ask": quote.bid_micros > quote.ask_micros,
    }
    return next((text for text, applies in problems.items() if applies), "")


def _point(
    cusip: str, quotes: list[TwoSidedQuote], market: Market, *, now: datetime, limits: QuoteLimits
) -> CurvePoint | str:
    """Return the bill's point, or why it has none."""
    bill, day = market.bill(cusip), market.calendars.pricing_day(now)
    days = (bill.maturity - market.calendars.next_settlement_day(day)).days
    rated = [
        _Rated(each, pricing.rate_from_price(each.bid_micros, days), pricing.rate_from_price(each.ask_micros, days))
        for each in quotes
    ]
    near = list(_without_outliers(rated, limits.max_distance_bps * _MILLI_PER_BP))
    if not near:
        return f"{len(quotes)} dealers disagree by more than {limits.max_distance_bps} bp"
    # The bank buys at the bid and sells at the ask: of an even number the one that is better for it.
    bid, ask = median_high(each.bid_milli for each in near), median_low(each.ask_milli for each in near)
    published = pricing.interpolated_rate(market.published_curve(day)[1], (bill.maturity - day).days)
    furthest = max(bid, ask, key=lambda rate: abs(rate - published))
    if abs(furthest - published) > limits.max_jump_bps * _MILLI_PER_BP:
        return f"its rate of {furthest / 1000:.3f} % is more than {limits.max_jump_bps} bp from the published one"
    quoted = tuple(sorted((each.quote for each in near), key=lambda each: each.dealer))
    return CurvePoint(cusip, (bill.maturity - day).days, bid, min(ask, bid), quoted)


def _without_outliers(rated: list[_Rated], distance: int) -> Iterator[_Rated]:
    """Yield those near both medians; none of two that disagree, since no median tells which of them is wrong."""
    bid, ask = median_low(each.bid_milli for each in rated), median_low(each.ask_milli for each in rated)
    near = [each for each in rated if abs(each.bid_milli - bid) <= distance and abs(each.ask_milli - ask) <= distance]
    if len(near) * 2 > len(rated):
        yield from near
