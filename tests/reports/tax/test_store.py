"""The tax figures of a bank with a year of history agree with its trades, to the cent."""

import io
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import pytest
from tests.support.whole_bank import close_bank, open_bank

from billfold.monitoring.health import failed_work
from billfold.platform.errors import InvalidInput
from billfold.reports.tax.rules import Filing, TaxStatus, TinType
from billfold.reports.tax.store import _filing_of, _Number, read_tax_years
from billfold.reports.tax.worker import make_year, write_irs_file


@pytest.fixture
async def bank_of_a_year(pg_server, lived_bank):
    dsn = await pg_server.create_database("tax_lived", template=lived_bank)
    bank = await open_bank(dsn)
    yield bank
    await close_bank(bank)


REALISED = """
SELECT customer_id, pocket_id, extract(year FROM traded_at AT TIME ZONE 'America/New_York')::int AS year,
       sum(notional - tax_basis)::bigint AS realised, sum(notional) AS proceeds, array_agg(DISTINCT activity)
  FROM trade WHERE activity IN ('SELL', 'MATURITY') GROUP BY 1, 2, 3
"""


async def test_interest_and_gains_equal_the_realized_amounts_of_the_trades(bank_of_a_year):
    rows = await bank_of_a_year.pool.fetch(REALISED)
    print(rows)
    for row in rows:
        years = {
            each.pocket_id: each
            for each in (await read_tax_years(bank_of_a_year, row["customer_id"], row["year"])).years
        }
        found = years[row["pocket_id"]]
        print(found.interest, sum(s.gain for s in found.sales), found.lines[:3])
        assert found.interest + sum(each.gain for each in found.sales) == row["realised"]


@pytest.fixture
async def bank(database_dsn):
    """A bank that opens in September 2023."""
    opened = await open_bank(database_dsn, clock_start=datetime(2023, 9, 5, 14, tzinfo=UTC))
    yield opened
    await close_bank(opened)


async def test_every_year_of_a_bank_that_ran_into_a_third_year_has_its_tax_forms(bank, partner_desk):
    """Bills of every term roll over the ends of the years; some are sold, some move to another Pocket in kind."""
    customer = await partner_desk.customer()
    pockets = [await partner_desk.funded(100_000_00, customer, weeks=weeks) for weeks in (13, 52)]
    for day in ("2023-11-20", "2024-02-29", "2024-12-30", "2025-01-03"):
        await partner_desk.until(f"{day}T10:00:00-05:00")
        await partner_desk.transfer(*pockets, 1_000_00)
        await partner_desk.transfer(*pockets, 2_000_00, transfer_type="SECURITY_TRANSFER")
    rows = await bank.pool.fetch(REALISED)
    assert {row["year"] for row in rows} == set(range(2023, 2026))
    for row in rows:
        years = {each.pocket_id: each for each in (await read_tax_years(bank, row["customer_id"], row["year"])).years}
        found = years[row["pocket_id"]]
        assert found.interest + sum(each.gain for each in found.sales) == row["realised"]
    for year in range(2023, 2025):
        made, failed = await make_year(bank, year)
        assert made > 0
        assert not failed


async def test_a_customer_with_inconsistent_trades_is_reported_and_the_others_get_their_forms(
    bank, partner_desk, database_dsn
):
    """A trade of the first does not add up any more."""
    broken, other = [await partner_desk.funded(100_000_00) for _ in range(2)]
    idle = await partner_desk.customer()
    await partner_desk.until("2024-01-20T10:00:00-05:00")
    owner = await asyncpg.connect(database_dsn)
    damage = "UPDATE trade SET tax_basis = tax_basis + $2 WHERE customer_id = $1 AND activity = 'MATURITY'"
    await owner.execute(damage, broken.key[0], 1)
    made, failed = await make_year(bank, 2023)
    assert made > 0
    assert failed == 1
    written = await write_irs_file(bank, 2023, last_year := io.BytesIO())
    assert [*written.failed] == [broken.key[0]]
    assert UUID(idle) not in written.without_number
    await write_irs_file(bank, 2022, earlier := io.BytesIO())
    assert (last_year.getvalue()[5:6], earlier.getvalue()[5:6]) == (b" ", b"P")
    async with bank.pool.acquire() as conn:
        assert f"tax forms 2023 {broken.key[0]}" in (await failed_work(conn)).detail
        await owner.execute(damage, broken.key[0], -1)
        assert await make_year(bank, 2023) == (made, 0)
        assert (await failed_work(conn)).found == "nothing fails"
    assert (await write_irs_file(bank, 2023, io.BytesIO())).returns == 2 * written.returns > 0
    assert other.key[0] != broken.key[0]
    only = await write_irs_file(bank, 2023, io.BytesIO(), only=[broken.key[0]])
    assert only.returns == written.returns
    bank.settings = replace(bank.settings, bank_address="Nowhere")
    with pytest.raises(InvalidInput, match="bank_address"):
        await write_irs_file(bank, 2023, io.BytesIO())
    await owner.close()


@pytest.mark.parametrize(
    ("number", "tin", "filing"),
    [
        (_Number("219-09-9999", "SSN", "INDIVIDUAL"), ("219099999", TinType.SSN), Filing.FILED),
        (_Number("219099999", "SSN", "LLC"), ("219099999", TinType.SSN), Filing.FILED),
        (_Number("12 3456789", "TIN", "SOLE_PROPRIETOR"), ("123456789", TinType.SSN), Filing.FILED),
        (_Number("123456789", "TIN", "LLC"), ("123456789", TinType.EIN), Filing.FILED),
        (_Number("12-3456789", "EIN", "SOLE_PROPRIETOR"), ("123456789", TinType.EIN), Filing.FILED),
        (_Number("12-3456789", "EIN", "CORPORATE"), ("123456789", TinType.EIN), Filing.EXEMPT),
        (_Number("12345678", "EIN", "LLC"), ("", TinType.UNKNOWN), Filing.FILED),
        (_Number("123456789", "PASSPORT", "INDIVIDUAL"), ("", TinType.UNKNOWN), Filing.FOREIGN),
    ],
)
def test_the_kind_of_number_and_of_business_decide_who_is_a_person_and_what_is_filed(number, tin, filing):
    assert number.to_tin() == tin
    status = TaxStatus(UUID(int=1))
    assert _filing_of(number, status) == filing
    assert _filing_of(number, status._replace(exempt=True)) == Filing.EXEMPT
    assert _filing_of(number, status._replace(exempt=False)) == (Filing.FOREIGN if number.is_foreign else Filing.FILED)
