"""Exposure is one query by index, however many trades a day has."""

from collections import Counter
from datetime import date

import pytest

from billfold.trading.store import _BY_INDEX, _EXPOSURE, list_exposure

FRIDAY, MONDAY, TUESDAY = date(2025, 5, 30), date(2025, 6, 2), date(2025, 6, 3)
TRADES = """
INSERT INTO trade
SELECT gen_random_uuid(), gen_random_uuid(), 1, 1, gen_random_uuid(), gen_random_uuid(),
       CASE WHEN n % 3 = 0 THEN 'SELL' ELSE 'BUY' END, n % 3 <> 0, 'B' || lpad((n % 300)::text, 8, '0'), 10 + n % 100,
       99700000, 99700, 99700, 99700, now(), $1::date, $2::date
  FROM generate_series(1, $3) n
"""


def expected(count):
    units: Counter[str] = Counter()
    for n in range(1, count + 1):
        units[f"B{n % 300:08}"] += (10 + n % 100) * (1 if n % 3 else -1)
    return dict(units)


@pytest.fixture
async def traded(bank):
    """A day before of 1,000 trades, and a day of 9,000."""
    await bank.pool.execute(TRADES, FRIDAY, MONDAY, 1_000)
    await bank.pool.execute(TRADES, MONDAY, TUESDAY, 9_000)
    return expected(9_000)


async def test_exposure_is_the_net_of_the_trades_of_the_days_that_are_read(bank, desk, traded):
    async with bank.pool.acquire() as conn, conn.transaction():
        found = await list_exposure(conn, desk.bank_id, TUESDAY)
        both = await list_exposure(conn, desk.bank_id, MONDAY)
    assert {each.cusip: each.units for each in found} == traded
    before = expected(1_000)
    assert {each.cusip: each.units for each in both} == {cusip: traded[cusip] + before[cusip] for cusip in traded}


@pytest.mark.one_server
async def test_exposure_reads_trades_by_their_index_and_sorts_none(bank, desk, traded):
    async with bank.pool.acquire() as conn, conn.transaction():
        await conn.execute(_BY_INDEX)
        rows = await conn.fetch(f"EXPLAIN {_EXPOSURE}", desk.bank_id, TUESDAY)
    plan = "\n".join(row[0] for row in rows)
    assert "Bitmap Index Scan on trade_settles" in plan
    _, _, of_trades = plan.partition("CTE traded")
    assert of_trades.strip().startswith("->  HashAggregate"), plan
