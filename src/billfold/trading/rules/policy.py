"""The policy of the desk: which orders cover the bank's positions, and how good a price is. Pure arithmetic."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple

from billfold.bills.rules.pricing import subtract_spread
from billfold.platform.money import PRICE_PAR_MICROS
from billfold.trading.types import Decision, OrderCause, Quote, Side, sign_of

_DISCOUNT_YEAR_DAYS = 360


class DeskLimits(NamedTuple):
    """The limits of the desk: face in units, DV01 in cents per basis point."""

    min_units: int
    max_units: int
    max_house_units: int
    max_house_dv01: int
    max_slippage_bps: int


class Position(NamedTuple):
    """A bill as the policy sees it. `exposure` are units that customers bought net and the bank has not met yet.

    `inventory` are the bank's own units, `live` those of live orders, negative for sales; `unknown_buys` and
    `unknown_sells` those of orders whose fate is unknown, both positive.
    """

    cusip: str
    maturity: date
    mark_micros: int
    exposure: int
    inventory: int = 0
    live: int = 0
    unknown_buys: int = 0
    unknown_sells: int = 0

    @property
    def uncovered(self) -> int:
        """Units that the bank lacks, negative if it holds too many; live orders count as filled."""
        return self.exposure - self.inventory - self.live

    @property
    def need(self) -> int:
        """Units to buy, negative to sell, that are needed whatever became of the unknown orders."""
        return max(self.uncovered - self.unknown_buys, 0) + min(self.uncovered + self.unknown_sells, 0)

    @property
    def worst(self) -> int:
        """The uncovered units if the unknown orders ended in the worse way."""
        return max(abs(self.uncovered - self.unknown_buys), abs(self.uncovered + self.unknown_sells))


def decide(
    positions: Iterable[Position], limits: DeskLimits, *, today: date, settles_on: date, is_due: bool
) -> list[Decision]:
    """Return the orders of a round, by CUSIP. `is_due` from the hour on by which everything is covered.

    Rests below the smallest order stay with the house within its limits: per CUSIP at any time, and for all of them
    together once everything is due. Units that customers hold are due without exception, whatever the smallest order.
    A bill that matures before an order would settle is not traded any more.
    """
    decisions: list[Decision] = []
    rests: list[tuple[int, Position]] = []
    for each in sorted(positions, key=lambda each: each.cusip):
        if not each.need or each.maturity <= settles_on:
            continue
        if abs(each.need) >= limits.min_units:
            decisions += _orders(each, limits, OrderCause.COVER_BY if is_due else OrderCause.INTERVAL)
        elif abs(each.need) > limits.max_house_units:
            decisions += _orders(each, limits, OrderCause.HOUSE_LIMIT)
        elif is_due and each.need > 0:
            decisions += _orders(each, limits, OrderCause.COVER_BY)
        else:
            rests.append((dv01(abs(each.need), each.maturity, today), each))
    if is_due:
        for each in _riskiest_above(rests, limits.max_house_dv01):
            decisions += _orders(each, limits, OrderCause.COVER_BY)
    return decisions


def _riskiest_above(rests: list[tuple[int, Position]], limit: int) -> Iterator[Position]:
    """Yield rests to cover, the largest risk first, until the others are within the limit."""
    total = sum(risk for risk, _ in rests)
    for risk, each in sorted(rests, key=lambda rest: (-rest[0], rest[1].cusip)):
        if total <= limit:
            return
        total -= risk
        yield each


def _orders(position: Position, limits: DeskLimits, cause: OrderCause) -> Iterator[Decision]:
    """Split what is needed into orders of at most the largest size, as even as possible."""
    side, units, mark = Side.BUY if position.need > 0 else Side.SELL, abs(position.need), position.mark_micros
    limit = limit_price(mark, side, limits.max_slippage_bps)
    count = -(-units // limits.max_units)
    for nth in range(count):
        part = units // count + (nth < units % count)
        yield Decision(position.cusip, side, part, limit, mark, cause)


def dv01(units: int, maturity: date, today: date) -> int:
    """Return the cents that so many units lose if the discount rate rises by a basis point, rounded up."""
    return -(-units * (maturity - today).days // _DISCOUNT_YEAR_DAYS)


def limit_price(mark_micros: int, side: Side, slippage_bps: int) -> int:
    """Return the worst acceptable price; nothing is bought above par."""
    return min(subtract_spread(mark_micros, -sign_of(side) * slippage_bps), PRICE_PAR_MICROS)


def slippage_bps(price_micros: int, mark_micros: int, side: Side) -> int:
    """Return how much worse than the mark a price is, in hundredths of a percent of it, rounded away from zero."""
    worse = sign_of(side) * (price_micros - mark_micros) * 10_000
    return -(-worse // mark_micros) if worse > 0 else worse // mark_micros


class Verdict(StrEnum):
    """The rank of a quote among those of its order."""

    BEST = "BEST"
    WORSE = "WORSE"
    OUTSIDE_GUARD = "OUTSIDE_GUARD"
    TOO_SMALL = "TOO_SMALL"
    EXPIRED = "EXPIRED"


def rank_quotes(
    quotes: Sequence[Quote], side: Side, units: int, *, limit_micros: int, at: datetime
) -> list[tuple[Quote, Verdict]]:
    """Return the quotes with their verdicts, the best price first. Of equal prices the earlier one is the best."""
    ranked: list[tuple[Quote, Verdict]] = []
    found = False
    for each in sorted(quotes, key=lambda each: (sign_of(side) * each.price_micros, each.quoted_at)):
        if sign_of(side) * (each.price_micros - limit_micros) > 0:
            verdict = Verdict.OUTSIDE_GUARD
        elif each.units < units:
            verdict = Verdict.TOO_SMALL
        elif not each.quoted_at <= at < each.expires_at:
            verdict = Verdict.EXPIRED
        else:
            verdict, found = Verdict.WORSE if found else Verdict.BEST, True
        ranked.append((each, verdict))
    return ranked
