"""Whole units: buying, raising, dividing a basis, choosing lots."""

from datetime import date

import pytest

from billfold.bills.rules.lots import affordable_units, allocate_basis, plan_sale, units_to_sell
from billfold.platform.money import cents_for

FOUR_WEEKS = 99_588_556
YEAR = 94_807_944


class Held:
    """A lot as the book keeps it."""

    __slots__ = ("acquired_on", "cusip", "maturity", "units")

    def __init__(self, cusip: str, maturity: date, acquired_on: date, units: int) -> None:
        self.cusip, self.maturity, self.acquired_on, self.units = (cusip, maturity, acquired_on, units)


def held_lot(cusip: str, day: int, units: int) -> Held:
    return Held(cusip, date(2025, 7, 1), date(2025, 6, day), units=units)


@pytest.mark.parametrize(
    ("cash", "ask", "units", "residue"),
    [
        (100_000, FOUR_WEEKS, 10, 411),
        (9_958, FOUR_WEEKS, 0, 9_958),
        (9_959, FOUR_WEEKS, 1, 0),
        (123_456_789, YEAR, 13_021, 7_365),
        (0, FOUR_WEEKS, 0, 0),
        (-1, FOUR_WEEKS, 0, -1),
        (9_900, 99_004_999, 1, 0),
        (9_900, 99_005_000, 0, 9_900),
    ],
)
def test_cash_buys_the_most_units_it_can_pay_for(cash, ask, units, residue):
    assert affordable_units(cash, ask) == units
    assert cash - cents_for(units, ask) == residue


@pytest.mark.parametrize(
    ("need", "units", "leftover"),
    [(123_456, 13, 6_009), (1, 1, 9_958), (9_959, 1, 0), (9_960, 2, 9_958), (0, 0, 0), (-7, 0, 7)],
)
def test_a_cash_need_sells_the_fewest_units_that_cover_it(need, units, leftover):
    assert units_to_sell(need, FOUR_WEEKS) == units
    assert cents_for(units, FOUR_WEEKS) - need == leftover


def test_costs_of_units_are_rounded_by_the_rounding_rule():
    assert cents_for(1, FOUR_WEEKS) == 9_959
    assert cents_for(13, FOUR_WEEKS) == 129_465


def test_allocated_basis_parts_add_up_to_the_basis():
    basis, units, parts = 9_509_237, 1_003, []
    for sold in (0, 1, 2, 500, 500):
        part = allocate_basis(basis, sold, units)
        parts.append(part)
        basis, units = basis - part, units - sold

    assert parts == [0, 9_481, 18_962, 4_740_397, 4_740_397]
    assert (basis, units) == (0, 0)


@pytest.mark.parametrize(("sold", "of"), [(-1, 3), (4, 3), (0, 0)])
def test_allocating_basis_to_more_units_than_held_is_refused(sold, of):
    with pytest.raises(ValueError, match="cannot be sold"):
        allocate_basis(100, sold, of)


def test_a_sale_takes_only_the_first_lot_when_it_suffices():
    lots = [held_lot("A", 1, 20), held_lot("B", 2, 20)]

    assert plan_sale(lots, 123_456, {"A": FOUR_WEEKS}.__getitem__) == [("A", 13, FOUR_WEEKS, 129_465, [(lots[0], 13)])]


def test_a_sale_of_several_lots_of_one_cusip_is_one_trade():
    lots = [held_lot("A", 1, 3), held_lot("A", 2, 4), held_lot("A", 3, 9), held_lot("B", 1, 5)]

    (sale,) = plan_sale(lots, 99_589, {"A": FOUR_WEEKS, "B": YEAR}.__getitem__) or []

    assert (sale.units, sale.price_micros, sale.proceeds_cents) == (10, FOUR_WEEKS, 99_589)
    assert sale.taken == [(lots[0], 3), (lots[1], 4), (lots[2], 3)]


def test_a_sale_continues_with_the_next_maturity_when_the_shortest_is_not_enough():
    lots = [held_lot("A", 1, 2), held_lot("A", 2, 1), held_lot("B", 1, 50)]
    sales = plan_sale(lots, 100_000, {"A": FOUR_WEEKS, "B": YEAR}.__getitem__) or []

    assert [(sale.cusip, sale.units) for sale in sales] == [("A", 3), ("B", 8)]
    assert sales[1].taken == [(lots[2], 8)]
    assert sum(sale.proceeds_cents for sale in sales) >= 100_000


def test_interleaved_lots_of_one_cusip_are_sold_in_one_trade():
    lots = [held_lot("A", 1, 2), held_lot("B", 2, 2), held_lot("A", 3, 2)]
    sales = plan_sale(lots, 39_000, {"A": FOUR_WEEKS, "B": FOUR_WEEKS}.__getitem__) or []

    assert [sale.taken for sale in sales] == [[(lots[0], 2), (lots[2], 2)]]


def test_all_lots_are_sold_when_the_need_equals_their_proceeds():
    lots = [held_lot("A", 1, 1), held_lot("B", 1, 1)]
    prices = {"A": FOUR_WEEKS, "B": YEAR}.__getitem__
    worth = cents_for(1, FOUR_WEEKS) + cents_for(1, YEAR)

    assert len(plan_sale(lots, worth, prices) or []) == 2
    assert plan_sale(lots, worth + 1, prices) is None


def test_a_sale_for_a_zero_need_is_empty_and_one_without_lots_is_impossible():
    prices: dict[str, int] = {}

    assert plan_sale([held_lot("A", 1, 1)], 0, prices.__getitem__) == []
    assert plan_sale([], 1, prices.__getitem__) is None
