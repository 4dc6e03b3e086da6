"""A year's end: the trade date decides, and what is filed agrees with the ledger."""

import asyncio
import io
from datetime import UTC, date, datetime

import pytest
from pypdf import PdfReader
from tests.support.applications import ADDRESS, Applicant
from tests.support.whole_bank import close_bank, expect_clean, open_bank

from billfold.platform.money import format_usd
from billfold.reports.downloads import get_file, open_file
from billfold.reports.statements.store import StatementType, get_latest
from billfold.reports.tax.rules import TaxStatus
from billfold.reports.tax.store import open_recipient, read_tax_years, set_tax_status
from billfold.reports.tax.worker import TaxFormMaker, correct_forms, write_irs_file

TAX_FORMS = (StatementType.FORM_1099_INT, StatementType.FORM_1099_B)


@pytest.fixture
async def bank(database_dsn):
    """A bank that opens in December."""
    opened = await open_bank(database_dsn, clock_start=datetime(2025, 12, 1, 14, tzinfo=UTC))
    yield opened
    await close_bank(opened)


@pytest.fixture
async def pocket(partner_desk):
    return await sell_around_midnight(partner_desk)


async def sell_around_midnight(desk):
    """Return a Pocket of a customer with a number, that sold around midnight of the last day of the year."""
    applicant = Applicant(desk)
    approved = await applicant.decided(await applicant.simple(address=ADDRESS))
    pocket = await desk.funded(500_000_00, approved["customer_id"])
    other = await desk.pocket(approved["customer_id"], weeks=13)
    for at, cents in (
        ("2025-12-31T13:00:00-05:00", 10_000_00),
        ("2025-12-31T20:00:00-05:00", 20_000_00),
        ("2026-01-01T02:00:00-05:00", 30_000_00),
    ):
        await desk.until(at)
        await desk.transfer(pocket, other, cents)
    await desk.until("2026-01-20T09:00:00-05:00")
    return pocket


async def filed(bank, *, mark=" ", **options):
    """Return the returns of 2025, by what B records begin with: number, and amounts 2, 3 and 4."""
    out = io.BytesIO()
    written = await write_irs_file(bank, 2025, out, **options)
    content = out.getvalue().decode("ascii")
    records = [content[at : at + 750] for at in range(0, len(content), 750)]
    assert written.returns == sum(each[:6] == f"B2025{mark}" for each in records)
    return [(each[11:20], *(int(each[at : at + 12]) for at in (66, 78, 90))) for each in records if each[0] == "B"]


async def test_the_eastern_date_decides_the_tax_year_of_a_sale_in_forms_and_file(bank, partner_desk, pocket):
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

    forms = await _forms_say_what_the_ledger_says(partner_desk, pocket, years[2025])
    await _is_filed_unless_exempt(bank, pocket, years[2025])
    await _is_corrected_as_another_version(bank, pocket, forms)
    await expect_clean(bank)


async def _is_filed_unless_exempt(bank, pocket, year):
    returns = [("123456789", each.disposal.proceeds, each.basis, 0) for each in year.sales]
    assert await filed(bank) == [("123456789", 0, year.interest, 0), *returns]
    await set_tax_status(bank, TaxStatus(pocket.key[0], None, date(2025, 1, 1)))
    matured = (24 * sum(each.interest for each in year.lines if not each.is_sale) + 50) // 100
    sold = [(24 * each.disposal.proceeds + 50) // 100 for each in year.sales]
    returns = [(*each[:3], withheld) for each, withheld in zip(returns, sold, strict=True)]
    assert await filed(bank) == [("123456789", 0, year.interest, matured), *returns]
    await set_tax_status(bank, TaxStatus(pocket.key[0], exempt=True))
    assert await filed(bank) == []
    assert not (await open_recipient(bank, TaxStatus(pocket.key[0]))).is_individual


async def text_of(bank, row):
    """Return what a form says, in one line."""
    file = await get_file(bank.pool, row.customer_id, row.statement_id)
    content = b"".join([part async for part in await open_file(bank, file)])
    assert b"123456789" not in content
    return " ".join(" ".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages).split())


async def _forms_say_what_the_ledger_says(desk, pocket, year):
    bank, listed = desk.bank, f"/api/v1/customers/{pocket.customer}/statements/"
    makers = TaxFormMaker(), TaxFormMaker()
    assert sum(await asyncio.gather(*(maker(bank) for maker in makers))) == 2
    assert await TaxFormMaker()(bank) == 0
    page = await desk.get(listed, {"type[]": ["1099INT", "1099-B"], "key": "2025"})
    assert {(each["service_account_id"], each["type"]) for each in page["items"]} == {
        (pocket.id, "1099-INT"),
        (pocket.id, "1099-B"),
    }
    forms = {str(each): await get_latest(bank.pool, pocket.key[0], pocket.key[1], each, "2025") for each in TAX_FORMS}
    interest, sales = [await text_of(bank, row) for row in forms.values()]
    for text in (interest, sales):
        assert "XX-XXX6789" in text
        assert "Copy B" in text
        assert "CORRECTED" not in text
    assert f"Treasury obligations {format_usd(year.interest)}" in interest
    assert f"Box 1d Proceeds {format_usd(year.proceeds)} Box 1e Cost or other basis {format_usd(year.basis)}" in sales
    for line in year.lines:
        assert format_usd(line.interest) in interest
        assert not line.is_sale or f"{format_usd(line.interest)} {format_usd(line.gain)}" in sales
    return forms


async def _is_corrected_as_another_version(bank, pocket, forms):
    now = await bank.now()
    assert await filed(bank, corrected_since=now) == []
    rows = await correct_forms(bank, pocket.key[0], 2025, "You are an exempt recipient.")
    assert {(row.type, row.version) for row in rows} == {("1099-INT", 2), ("1099-B", 2)}
    text = await text_of(bank, rows[0])
    assert "[X] CORRECTED. Version 2 replaces every earlier form of this year. You are an exempt recipient." in text
    assert "is not furnished to the IRS" in text
    assert "is being furnished to the IRS" in await text_of(bank, forms["1099-INT"]), "the first version stays"
    await set_tax_status(bank, TaxStatus(pocket.key[0]))
    assert len(await filed(bank, corrected_since=now, mark="G")) == 3
