import time, resource, os, asyncio
from datetime import date
from uuid import uuid4
from tests.support.whole_bank import *
from tests.support.databases import as_owner
from billfold.trading.store import list_exposure, _EXPOSURE
from billfold.ledger.scheduler import bank_customer_id

async def test_x(bank, capsys):
    bid = bank_customer_id(bank.seed)
    sql = """INSERT INTO trade SELECT gen_random_uuid(), gen_random_uuid(), 1, 1, gen_random_uuid(), gen_random_uuid(),
      CASE WHEN n % 3 = 0 THEN 'SELL' ELSE 'BUY' END, n % 3 <> 0, 'B' || lpad((n % 300)::text, 8, '0'), 10 + n % 100, 99700000, 99700, 99700, 99700,
      now(), $1, $2 FROM generate_series(1, $3) n"""
    days = [(date(2025,5,28), date(2025,5,29), 200000),(date(2025,6,2), date(2025,6,3), 1000000)]
    async with bank.pool.acquire() as c:
        for b,s,n in days:
            t=time.perf_counter(); await c.execute(sql.replace("now(), $1, $2","now(), $1::date, $2::date"), b, s, n, timeout=600); print("insert", time.perf_counter()-t)
    with capsys.disabled():
      async with bank.pool.acquire() as c, c.transaction():
        for k in range(4):
            m0=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            t=time.perf_counter(); found = await list_exposure(c, bid, date(2025,6,2)); dt=time.perf_counter()-t
            print("exposure", os.getloadavg()[0], k, len(found), round(dt,2), "s; client rss +", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss-m0, "KiB")
        rows = await c.fetch("EXPLAIN (ANALYZE, TIMING OFF) "+_EXPOSURE, bid, date(2025,6,2))
        print("\n".join(r[0] for r in rows))
