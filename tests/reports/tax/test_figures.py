"""The tax figures of a bank that has lived agree with its trades, to the cent."""

import pytest
from tests.support.whole_bank import close_bank, open_bank

from billfold.reports.tax.figures import read_tax_years


@pytest.fixture
async def lived(pg_server, lived_bank):
    dsn = await pg_server.create_database("tax_lived", template=lived_bank)
    bank = await open_bank(dsn)
    yield bank
    await close_bank(bank)


REALISED = """
SELECT customer_id, pocket_id, extract(year FROM traded_at AT TIME ZONE 'America/New_York')::int AS year,
       sum(notional - tax_basis)::bigint AS realised, sum(notional) AS proceeds, array_agg(DISTINCT activity)
  FROM trade WHERE activity IN ('SELL', 'MATURITY') GROUP BY 1, 2, 3
"""


async def test_interest_and_gains_are_what_the_trades_realised(lived):
    rows = await lived.pool.fetch(REALISED)
    print(rows)
    for row in rows:
        years = {each.pocket_id: each for each in (await read_tax_years(lived, row["customer_id"], row["year"])).years}
        found = years[row["pocket_id"]]
        print(found.interest, sum(s.gain for s in found.sales), found.lines[:3])
        assert found.interest + sum(each.gain for each in found.sales) == row["realised"]
