"""The value of a pocket at the last tick, what it would fetch, and how fast it grows.

Every read runs this: prices are computed once per tick for everyone, so a portfolio is a
multiplication and an addition per bill.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from billfold.bills.rules.market import Market
from billfold.bills.rules.pricing import subtract_spread
from billfold.bills.types import Bill
from billfold.platform.money import cents_for, round_half_up

FACE_CENTS = 10_000
"""Cents that one unit pays at maturity."""

_SLOPE_DECIMALS = 12
# Six more digits than are shown, so that the sum over many bills rounds like the exact one.
_GUARD_SCALE = 10**6
_SLOPE_SCALE = 10**_SLOPE_DECIMALS * _GUARD_SCALE


class PositionValue(NamedTuple):
    """One bill of a pocket at its mark: micros per $100, cents, and the yield as a fraction."""

    cusip: str
    units: int
    mark_price: int
    market_value: int
    yield_to_maturity: str
    bill: Bill


@dataclass(frozen=True, slots=True)
class Valuation:
    """A pocket at one tick. Values in cents; the slope in cents per second, twelve decimals.

    `total_value + appreciation_per_second * (seconds since pricing_timestamp)` reaches par at
    each maturity and never overshoots it.
    """

    positions: tuple[PositionValue, ...]
    total_value: int
    liquidation_value_t0: int
    liquidation_value_t1: int
    payable: int
    pricing_timestamp: datetime
    appreciation_per_second: Decimal


def value_positions(
    positions: Iterable[tuple[str, int, int]],
    cash_cents: int,
    kept_cents: int,
    market: Market,
    at: datetime,
    *,
    discount_cents: int = 0,
    haircut_bps: int = 0,
    stale_bps: int = 0,
    real_time: bool = False,
) -> Valuation:
    """Return the value of (cusip, units, settled units) and cash at an instant.

    `kept_cents`, which are accrued fees not yet charged and reserved cash, lowers the liquidation values
    but not the total value. Same-day liquidation counts settled units only, at the same-day bid less the
    haircut, minus `discount_cents`, the cost of using cash that settles later; next-day liquidation
    counts all. `payable` is what payments can raise now: all units at the same-day bid, because the bank
    also buys those that are not settled. Both bids are less `stale_bps`. None is below 0. `real_time` values
    at the second instead of the last tick.
    Raises NotFound for an unknown CUSIP.
    """
    prices = market.tick_prices(at, real_time=real_time)
    position_values: list[PositionValue] = []
    total = t0 = t1 = payable = cash_cents
    slope = 0
    for cusip, units, settled_units in positions:
        bill_prices = prices[cusip]
        worth = cents_for(units, bill_prices.mark_micros)
        position_values.append(
            PositionValue(
                cusip,
                units,
                bill_prices.mark_micros,
                market_value=worth,
                yield_to_maturity=bill_prices.yield_to_maturity,
                bill=bill_prices.bill,
            )
        )
        total += worth
        t0_bid, t1_bid = bill_prices.t0_bid_micros, bill_prices.t1_bid_micros
        spread = haircut_bps + stale_bps
        own_bid = subtract_spread(t0_bid, spread) if spread else t0_bid
        t0 += cents_for(settled_units, own_bid)
        payable += cents_for(units, own_bid) if bill_prices.seconds_left else 0
        t1 += cents_for(units, subtract_spread(t1_bid, stale_bps) if stale_bps else t1_bid)
        if bill_prices.seconds_left:
            slope += (FACE_CENTS * units - worth) * _SLOPE_SCALE // bill_prices.seconds_left
    return Valuation(
        positions=tuple(position_values),
        total_value=total,
        liquidation_value_t0=max(0, t0 - kept_cents - discount_cents),
        liquidation_value_t1=max(0, t1 - kept_cents),
        payable=max(0, payable - kept_cents - discount_cents),
        pricing_timestamp=prices.tick,
        appreciation_per_second=Decimal(round_half_up(slope, _GUARD_SCALE)).scaleb(-_SLOPE_DECIMALS),
    )
