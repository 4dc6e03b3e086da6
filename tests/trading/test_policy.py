"""The policy of the desk: positions, limits and time decide the orders; quotes and prices are judged."""

import time
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from billfold.trading.rules.policy import (
    DeskLimits,
    Position,
    Verdict,
    decide,
    dv01,
    limit_price,
    rank_quotes,
    slippage_bps,
)
from billfold.trading.types import ALLOWED, ENDED, OrderStatus, Quote, Side

TODAY, TOMORROW = date(2025, 6, 2), date(2025, 6, 3)
LIMITS = DeskLimits(min_units=1_000, max_units=5_000, max_house_units=600, max_house_dv01=50, max_slippage_bps=5)
MARK = 99_000_000
HALF_YEAR = date(2025, 12, 2)


def orders(*positions, is_due=False, limits=LIMITS):
    """Return the orders of a round: CUSIP, signed units, cause."""
    found = decide(positions, limits, today=TODAY, settles_on=TOMORROW, is_due=is_due)
    return [(each.cusip, each.units if each.side == Side.BUY else -each.units, each.cause.value) for each in found]


def a_bill(exposure, inventory=0, *, cusip="A", maturity=HALF_YEAR, **more):
    return Position(cusip, maturity, MARK, exposure, inventory, **more)


CASES = {
    "nothing is exposed": (a_bill(0), False, []),
    "customers bought": (a_bill(2_000), False, [2_000]),
    "customers sold": (a_bill(-2_000), False, [-2_000]),
    "the inventory covers it": (a_bill(2_000, 2_000), False, []),
    "the inventory is net of it": (a_bill(2_000, 500), False, [1_500]),
    "live orders cover it": (a_bill(2_000, live=2_000), False, []),
    "live orders are for more than is left": (a_bill(500, live=2_000), False, [-1_500]),
    "below the smallest order, it waits": (a_bill(500), False, []),
    "below the smallest order, above what the house may hold": (a_bill(700), False, [700]),
    "what customers hold is covered when all is due": (a_bill(500), True, [500]),
    "one unit that customers hold, when all is due": (a_bill(1), True, [1]),
    "a small rest of the house's own stays": (a_bill(-90), True, []),
    "a rest of the house with too much risk is sold": (a_bill(-500), True, [-500]),
    "above the largest order, evenly split": (a_bill(12_001), False, [4_001, 4_000, 4_000]),
    "an unknown purchase counts as filled for purchases": (a_bill(2_000, unknown_buys=2_000), False, []),
    "more than the unknown purchase is ordered": (a_bill(4_000, unknown_buys=2_000), False, [2_000]),
    "an unknown purchase does not count for sales": (a_bill(-2_000, unknown_buys=2_000), False, [-2_000]),
    "an unknown sale counts as filled for sales": (a_bill(-2_000, unknown_sells=2_000), False, []),
    "an unknown sale does not count for purchases": (a_bill(2_000, unknown_sells=2_000), False, [2_000]),
    "it matures before an order settles": (a_bill(2_000, maturity=TOMORROW), True, []),
}


@pytest.mark.parametrize(("position", "is_due", "expected"), CASES.values(), ids=CASES)
def test_policy_of_one_bill_orders_what_the_case_says(position, is_due, expected):
    assert [units for _, units, _ in orders(position, is_due=is_due)] == expected


def test_policy_states_the_cause_and_goes_by_cusip():
    positions = a_bill(2_000, cusip="C"), a_bill(700, cusip="B"), a_bill(10, cusip="A")
    assert orders(*positions) == [("B", 700, "HOUSE_LIMIT"), ("C", 2_000, "INTERVAL")]
    assert orders(*positions, is_due=True) == [
        ("A", 10, "COVER_BY"),
        ("B", 700, "HOUSE_LIMIT"),
        ("C", 2_000, "COVER_BY"),
    ]


def test_small_positions_are_covered_from_the_largest_risk_until_the_others_fit():
    rests = [a_bill(-60, cusip="A"), a_bill(-40, cusip="B"), a_bill(-30, cusip="C")]
    assert [dv01(-each.exposure, HALF_YEAR, TODAY) for each in rests] == [31, 21, 16]
    assert orders(*rests, is_due=True) == [("A", -60, "COVER_BY")]
    assert orders(*rests, is_due=True, limits=LIMITS._replace(max_house_dv01=68)) == []
    assert orders(*rests) == [], "before that they wait"


def test_the_uncovered_units_of_an_unknown_order_are_the_worse_case():
    assert a_bill(2_000, unknown_buys=2_000).worst == 2_000
    assert a_bill(-100, unknown_buys=2_000).worst == 2_100
    assert a_bill(100, unknown_sells=2_000).worst == 2_100


@pytest.mark.parametrize(
    ("side", "limit"), [(Side.BUY, 99_049_500), (Side.SELL, 98_950_500)], ids=["a purchase", "a sale"]
)
def test_a_limit_is_the_mark_and_the_slippage(side, limit):
    assert limit_price(MARK, side, 5) == limit
    assert slippage_bps(limit, MARK, side) == 5
    worse = 1 if side == Side.BUY else -1
    assert slippage_bps(limit + worse, MARK, side) == 6
    assert slippage_bps(MARK - worse, MARK, side) < 0


def test_a_purchase_is_never_above_par():
    assert limit_price(99_990_000, Side.BUY, 5) == 100_000_000


NOW = datetime(2025, 6, 2, 14, tzinfo=UTC)


def a_quote(dealer, price, *, units=1_000, at=NOW, seconds=60):
    return Quote(
        customer_id=UUID(int=0),
        quote_id=UUID(int=price),
        order_id=UUID(int=0),
        dealer=dealer,
        price_micros=price,
        units=units,
        quoted_at=at,
        expires_at=at + timedelta(seconds=seconds),
    )


@pytest.mark.parametrize(("side", "sign"), [(Side.BUY, 1), (Side.SELL, -1)], ids=["a purchase", "a sale"])
def test_quotes_are_ranked_and_each_has_its_verdict(side, sign):
    quotes = [
        a_quote("worse", MARK + sign * 2),
        a_quote("best", MARK + sign),
        a_quote("late", MARK, at=NOW - timedelta(minutes=2)),
        a_quote("small", MARK, units=999),
        a_quote("far", MARK + sign * 60_000),
    ]
    ranked = rank_quotes(quotes, side, 1_000, limit_micros=limit_price(MARK, side, 5), at=NOW)
    assert {quote.dealer: verdict for quote, verdict in ranked} == {
        "best": Verdict.BEST,
        "worse": Verdict.WORSE,
        "late": Verdict.EXPIRED,
        "small": Verdict.TOO_SMALL,
        "far": Verdict.OUTSIDE_GUARD,
    }


def test_of_equal_quotes_the_earlier_one_is_the_best():
    first, second = a_quote("first", MARK), a_quote("second", MARK, at=NOW + timedelta(seconds=1))
    ranked = rank_quotes([second, first], Side.BUY, 1, limit_micros=MARK, at=NOW + timedelta(seconds=2))
    assert [(quote.dealer, verdict.value) for quote, verdict in ranked] == [("first", "BEST"), ("second", "WORSE")]


def test_a_round_over_300_bills_takes_at_most_50_ms():
    positions = [a_bill(1_000 + 37 * n, cusip=f"B{n:03}", live=n, unknown_buys=n % 7) for n in range(300)]
    began = time.perf_counter()
    found = orders(*positions, is_due=True)
    assert time.perf_counter() - began < 0.05
    assert len({cusip for cusip, *_ in found}) == 300


def test_states_of_orders_end_and_only_a_filled_one_is_opened_again():
    assert set(ALLOWED) == set(OrderStatus)
    assert {status for status in ENDED if ALLOWED[status]} == {OrderStatus.FILLED}
    reached, waiting = {OrderStatus.NEW}, [OrderStatus.NEW]
    while waiting:
        after = ALLOWED[waiting.pop()] - reached
        reached |= after
        waiting += after
    assert reached == set(OrderStatus)
    assert OrderStatus.SENT in ALLOWED[OrderStatus.NEW]
    assert not ALLOWED[OrderStatus.NEW] & {OrderStatus.WORKING, OrderStatus.PARTIALLY_FILLED, OrderStatus.FILLED}
