"""Interest and gain of a disposal, as the page on tax works them out; and the identities that always hold."""

from datetime import date, time, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.architecture.pages import section, table_rows

from billfold.platform.dates import et_instant
from billfold.platform.errors import InvariantError
from billfold.platform.money import PRICE_PAR_MICROS, cents_for, round_half_up
from billfold.reports.tax.rules import (
    Disposal,
    Filing,
    LotMovement,
    LotReplay,
    TaxForm,
    TaxStatus,
    boxes_of,
    due_at,
    filing_of,
    first_purchase,
    is_relevant,
    tax_line,
    tax_years,
    withheld_of,
    year_bounds,
    years_due,
)

POCKET, TRADE, CUSTOMER = (UUID(int=n) for n in (1, 2, 3))
UNKNOWN = TaxStatus(CUSTOMER)
EXAMPLES = table_rows(section("docs/domain/tax.md", "Worked examples"))


def disposal(units, bought, matures, disposed, cost, proceeds):
    day = date.fromisoformat
    return Disposal(
        pocket_id=POCKET,
        trade_id=TRADE,
        cusip="912797PT8",
        acquired_on=day(bought),
        disposed_on=day(disposed),
        maturity=day(matures),
        redeemed=matures == disposed,
        units=units,
        proceeds=proceeds,
        cost=cost,
    )


def cents(written):
    return int(written.replace(",", "").replace(".", ""))


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: row[0])
def test_a_tax_example_of_the_docs_page_is_reproduced(row):
    _, units, bought, matures, disposed, cost, proceeds, days, share, *figures = row
    each = disposal(int(units), bought, matures, disposed, cents(cost), cents(proceeds))
    line = tax_line(each)
    assert round_half_up((each.par - each.cost) * each.held_days, each.term_days) == cents(share)
    assert f"{each.held_days} of {each.term_days}" == days
    assert [line.interest, line.basis, line.gain] == [cents(figure) for figure in figures]
    assert line.is_sale == (not each.redeemed or line.gain < 0)


days = st.integers(0, 364)


@given(
    units=st.integers(1, 10**7),
    price=st.integers(PRICE_PAR_MICROS * 9 // 10, PRICE_PAR_MICROS * 101 // 100),
    bid=st.integers(PRICE_PAR_MICROS * 9 // 10, PRICE_PAR_MICROS * 101 // 100),
    term=st.integers(1, 364),
    held=days,
)
def test_interest_and_gain_add_up_to_the_realized_amount(units, price, bid, term, held):
    bought = date(2024, 1, 2)
    matures, sold = (bought + timedelta(days=n) for n in (term, min(held, term - 1)))
    each = disposal(units, str(bought), str(matures), str(sold), cents_for(units, price), cents_for(units, bid))
    line = tax_line(each)
    assert line.interest + line.gain == each.proceeds - each.cost
    assert 0 <= line.interest <= max(each.proceeds - each.cost, 0)
    # Half up of a share: never more than half a cent above it.
    assert 2 * line.interest * term <= 2 * max(each.par - each.cost, 0) * each.held_days + term
    assert line.gain >= 0 or line.interest == 0


PAID = [("2025-03-03", 1_00), ("2025-07-01", 2_01), ("2025-09-02", 4_00)]


@pytest.mark.parametrize(
    ("since", "until", "withheld"),
    [
        (None, None, 0),
        (date(2024, 1, 1), None, 1_68),  # 24 % of 7.01 is 1.6824
        (date(2025, 7, 1), None, 1_44),
        (date(2025, 7, 1), date(2025, 9, 2), 48),
        (date(2025, 3, 4), date(2025, 7, 1), 0),
    ],
)
def test_backup_withholding_applies_to_interest_paid_while_the_customer_is_subject_to_it(since, until, withheld):
    lines = [tax_line(disposal(10, "2025-02-03", day, day, 1_000_00 - paid, 1_000_00)) for day, paid in PAID]
    assert withheld_of(lines, TaxStatus(CUSTOMER, None, since, until)) == withheld


def test_backup_withholding_of_a_sale_applies_once_to_its_gross_proceeds():
    status = TaxStatus(CUSTOMER, None, date(2025, 3, 1), date(2025, 7, 1))
    sold = [
        disposal(10, "2025-02-03", "2025-08-05", day, 990_00, 995_00)
        for day in ("2025-02-28", "2025-03-03", "2025-07-01")
    ]
    redeemed = disposal(10, "2025-02-03", "2025-06-03", "2025-06-03", 990_00, 1_000_00)
    at_a_loss = disposal(10, "2025-02-03", "2025-06-03", "2025-06-03", 1_001_00, 1_000_00)
    (year,) = tax_years(2025, [*sold, redeemed, at_a_loss], status)
    assert [line.withheld for line in year.lines] == [0, 238_80, 0, 0, 240_00]
    assert [cents for _, cents in boxes_of(year, TaxForm.BROKER)] == [
        year.proceeds,
        year.basis,
        0,
        0,
        478_80,
        year.proceeds - year.basis,
    ]
    assert dict(boxes_of(year, TaxForm.INTEREST))["4 Federal income tax withheld"] == 2_40
    assert year.interest > 10_00, "the interest of sales is reported, and withheld of with their proceeds"


def test_a_form_is_filed_from_ten_dollars_or_with_withheld_tax():
    def filing(interest, status=UNKNOWN, of=Filing.FILED):
        each = disposal(10, "2025-02-03", "2025-03-03", "2025-03-03", 1_000_00 - interest, 1_000_00)
        return filing_of(TaxForm.INTEREST, tax_years(2025, [each], status), of)

    assert filing(9_99) == Filing.BELOW_MINIMUM
    assert filing(10_00) == Filing.FILED
    assert filing(9_99, TaxStatus(CUSTOMER, None, date(2025, 1, 1))) == Filing.FILED
    assert filing(10_00, of=Filing.EXEMPT) == Filing.EXEMPT


def test_a_disposal_counts_only_in_the_year_of_its_date():
    old = disposal(1, "2025-12-02", "2025-12-30", "2025-12-30", 99_00, 100_00)
    new = disposal(1, "2025-12-04", "2026-01-02", "2026-01-02", 99_50, 100_00)
    found = {year: tax_years(year, [old, new], TaxStatus(CUSTOMER)) for year in (2024, 2025, 2026)}
    assert [[each.interest for each in years] for years in found.values()] == [[], [1_00], [50]]


@pytest.mark.parametrize(
    ("matures", "relevant"), [("2024-12-16", False), ("2024-12-18", True), ("2025-01-02", True), ("2026-12-31", True)]
)
def test_only_bills_that_may_be_held_in_a_year_are_relevant_for_it(matures, relevant):
    assert is_relevant(date.fromisoformat(matures), 2025) == relevant
    # A bill of 52 weeks that is redeemed on 2 January may have been bought in the first days of the year before.
    assert first_purchase(2025) <= et_instant(date(2024, 1, 2), time()) - timedelta(days=15)


def test_more_bills_than_a_lot_holds_are_not_disposed_of():
    bought = LotMovement(1, 10, "A", None, None, None, 1, TRADE, "BUY", None, 10, 990_00, 990_00)
    sold = bought._replace(
        entry_no=2,
        from_lot=1,
        from_pocket=POCKET,
        acquired_on=date(2025, 2, 3),
        into_lot=None,
        trade_id=POCKET,
        activity="SELL",
        traded_at=et_instant(date(2025, 2, 4), time(10)),
        notional=991_00,
    )
    replay = LotReplay(lambda _: date(2025, 6, 3))
    assert replay.play(bought) is None
    disposed = replay.play(sold)
    assert disposed is not None
    assert (disposed.cost, disposed.proceeds, disposed.disposed_on) == (990_00, 991_00, date(2025, 2, 4))
    assert (disposed.redeemed, disposed._replace(maturity=disposed.acquired_on).term_days) == (False, 1)
    for units in (1, 11):
        with pytest.raises(InvariantError, match="More bills leave"):
            replay.play(sold._replace(units=units, trade_id=CUSTOMER))


def test_a_year_is_of_new_york_and_its_forms_are_due_in_the_middle_of_january():
    assert year_bounds(2025) == (et_instant(date(2025, 1, 1), time()), et_instant(date(2026, 1, 1), time()))
    due = due_at(2024)
    assert due == et_instant(date(2025, 1, 15), time(6))
    assert years_due(2023, {2023}, due) == [2024]
    assert years_due(2023, {2023}, due - timedelta(seconds=1)) == []
