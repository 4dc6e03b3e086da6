"""A year's end: the trade date decides, and what is filed agrees with the ledger."""

import io
from datetime import UTC, date, datetime

import pytest
from tests.support.applications import ADDRESS, Applicant
from tests.support.whole_bank import close_bank, expect_clean, open_bank

from billfold.reports.tax.figures import read_tax_years
from billfold.reports.tax.filing import write_irs_file
from billfold.reports.tax.status import set_tax_status
from billfold.reports.tax.types import TaxStatus


@pytest.fixture
async def bank(database_dsn):
    """A bank that opens in December."""
    opened = await open_bank(database_dsn, clock_start=datetime(2025, 12, 1, 14, tzinfo=UTC))
    yield opened
    await close_bank(opened)


@pytest.fixture
async def pocket(partner_desk):
    """A Pocket of a customer with a number, that sells around midnight of the last day of the year."""
    applicant = Applicant(partner_desk)
    approved = await applicant.decided(await applicant.simple(address=ADDRESS))
    pocket = await partner_desk.funded(500_000_00, approved["customer_id"])
    other = await partner_desk.pocket(approved["customer_id"], weeks=13)
    for at, cents in (
        ("2025-12-31T13:00:00-05:00", 10_000_00),
        ("2025-12-31T20:00:00-05:00", 20_000_00),
        ("2026-01-01T02:00:00-05:00", 30_000_00),
    ):
        await partner_desk.until(at)
        await partner_desk.transfer(pocket, other, cents)
    await partner_desk.until("2026-01-20T09:00:00-05:00")
    return pocket


async def filed(bank):
    """Return the returns of 2025, by what B records begin with: number, and amounts 2, 3 and 4."""
    out = io.BytesIO()
    written = await write_irs_file(bank, 2025, out)
    content = out.getvalue().decode("ascii")
    records = [content[at : at + 750] for at in range(0, len(content), 750)]
    assert written.returns == sum(each[0] == "B" for each in records)
    return [(each[11:20], *(int(each[at : at + 12]) for at in (66, 78, 90))) for each in records if each[0] == "B"]


async def test_the_day_in_new_york_decides_the_year_of_a_sale_and_the_file_says_the_same(bank, pocket):
    years = {year: (await read_tax_years(bank, pocket.key[0], year)).years[0] for year in (2025, 2026)}
    assert [each.disposal.disposed_on for each in years[2025].sales] == [date(2025, 12, 31)] * 2
    assert [each.disposal.disposed_on for each in years[2026].sales] == [date(2026, 1, 1), date(2026, 1, 2)]
    booked = await bank.pool.fetch(
        "SELECT book_date, settles_on, notional, tax_basis FROM trade WHERE customer_id = $1 AND activity <> 'BUY'"
        " AND traded_at < '2026-01-01T05:00:00Z' ORDER BY traded_at",
        pocket.key[0],
    )
    assert [row["settles_on"] for row in booked[1:]] == [date(2026, 1, 2), date(2026, 1, 5)], "they settle in January"
    assert booked[2]["book_date"] == date(2026, 1, 2), "at night the next business date has begun"
    realised = sum(row["notional"] - row["tax_basis"] for row in booked)
    assert years[2025].interest + years[2025].proceeds - years[2025].basis == realised

    await _is_filed_unless_exempt(bank, pocket, years[2025])


async def _is_filed_unless_exempt(bank, pocket, year):
    returns = [("123456789", each.disposal.proceeds, each.basis, 0) for each in year.sales]
    assert await filed(bank) == [("123456789", 0, year.interest, 0), *returns]
    await set_tax_status(bank, TaxStatus(pocket.key[0], None, date(2025, 1, 1)))
    withheld = (24 * year.interest + 50) // 100
    assert await filed(bank) == [("123456789", 0, year.interest, withheld), *returns]
    await set_tax_status(bank, TaxStatus(pocket.key[0], exempt=True))
    assert await filed(bank) == []
    await expect_clean(bank)
