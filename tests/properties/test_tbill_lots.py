"""Units, money and bases for any amount at any price."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from billfold.bills.rules.lots import affordable_units, allocate_basis, plan_sale, units_to_sell
from billfold.platform.money import cents_for

prices = st.integers(80_000_000, 100_000_000)
amounts = st.integers(0, 10**13)


class Held:
    __slots__ = ("acquired_on", "cusip", "maturity", "units")

    def __init__(self, cusip: str, maturity: date, acquired_on: date, units: int) -> None:
        self.cusip, self.maturity, self.acquired_on = cusip, maturity, acquired_on
        self.units = units


@st.composite
def holdings(draw: st.DrawFn) -> tuple[list[Held], dict[str, int]]:
    """Draw lots in selling order, a few per CUSIP, and a price per CUSIP."""
    count = draw(st.integers(1, 5))
    lots, price_by_cusip = [], {}
    for number in range(count):
        cusip = f"C{number}"
        price_by_cusip[cusip] = draw(prices)
        for day in range(1, draw(st.integers(1, 4)) + 1):
            units = draw(st.integers(1, 500))
            lots.append(Held(cusip, date(2025, 7, 1 + number), date(2025, 6, day), units=units))
    return lots, price_by_cusip


@given(amounts, prices)
def test_investing_leaves_less_cash_than_the_price_of_one_unit(cash, ask):
    units = affordable_units(cash, ask)

    assert cents_for(units, ask) <= cash < cents_for(units + 1, ask)
    assert cash - cents_for(units, ask) < 10_000


@given(st.integers(1, 10**13), prices)
def test_raising_cash_sells_the_fewest_units_that_suffice(need, bid):
    units = units_to_sell(need, bid)

    assert cents_for(units - 1, bid) < need <= cents_for(units, bid)
    assert cents_for(units, bid) - need < 10_000


@given(st.integers(0, 10**13), st.lists(st.integers(1, 10_000), min_size=1, max_size=12))
def test_allocated_basis_sums_to_the_total_for_any_division(basis, parts):
    left, units = basis, sum(parts)
    for sold in parts:
        part = allocate_basis(left, sold, units)
        assert 0 <= part <= left
        left, units = left - part, units - sold

    assert (left, units) == (0, 0)


@given(holdings(), st.data())
def test_a_sale_raises_the_need_from_the_first_lots_with_minimal_excess(held, data):
    lots, price_by_cusip = held
    units_by_cusip: dict[str, int] = {}
    for lot in lots:
        units_by_cusip[lot.cusip] = units_by_cusip.get(lot.cusip, 0) + lot.units
    worth = sum(cents_for(units, price_by_cusip[cusip]) for cusip, units in units_by_cusip.items())
    need = data.draw(st.integers(1, worth))

    sales = plan_sale(lots, need, price_by_cusip.__getitem__)

    assert sales is not None
    raised = [sale.proceeds_cents for sale in sales]
    assert sum(raised[:-1]) < need <= sum(raised) < need + 10_000
    for sale in sales:
        assert sale.proceeds_cents == cents_for(sale.units, price_by_cusip[sale.cusip])
        assert sale.units == sum(units for _, units in sale.taken)
    for sale in sales[:-1]:
        assert sale.units == units_by_cusip[sale.cusip]
    taken = [pair for sale in sales for pair in sale.taken]
    assert [lot for lot, _ in taken] == lots[: len(taken)]
    assert all(units == lot.units for sale in sales for lot, units in sale.taken[:-1])
    assert plan_sale(lots, worth + 1, price_by_cusip.__getitem__) is None
