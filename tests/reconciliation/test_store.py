"""A morning reads the entries, trades and breaks of its day by an index, whatever happened in the years before."""

import pytest
from tests.reconciliation.books import MONDAY
from tests.reconciliation.files import RESERVE
from tests.support.cases import in_one_bank

from billfold.reconciliation import store

PLANS = {
    "range": (store._RANGE, ("day",), ["Index Scan Backward using journal_entry_pkey", "Limit"]),
    "postings": (store._POSTED, (1, 9), ["(entry_no > '1'::bigint) AND (entry_no <= '9'::bigint)"]),
    "dates": (store._CLEARED_DATES, (1, 9), ["(entry_no > '1'::bigint) AND (entry_no <= '9'::bigint)"]),
    "open breaks": (store._OPEN_OF, ("RESERVE", RESERVE), ["reconciliation_break_open"]),
    "last days": (store._DAYS_SINCE, ("day",), ["reconciled_day_list"]),
    "bills": (store._UNITS, (9, "instant"), ["Index Cond: ((customer_id =", "(entry_no > '9'::bigint)"]),
}


@pytest.mark.one_server
@in_one_bank("name", PLANS)
async def test_what_a_morning_reads_is_found_by_an_index(bank, morning, name):
    statement, values, expected = PLANS[name]
    given = {"day": MONDAY, "instant": bank.calendars.closes_at(MONDAY)}
    async with bank.pool.acquire() as conn, conn.transaction():
        await conn.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        found = [given[each] if isinstance(each, str) and each in given else each for each in values]
        plan = "\n".join(row[0] for row in await conn.fetch(f"EXPLAIN {statement}", morning.bank_id, *found))
    for each in expected:
        assert each in plan, plan
