"""That nothing was lost on the way: asked of the database after every benchmark."""

from __future__ import annotations

import asyncio

import asyncpg

from benchmarks.dataset import Location
from billfold.ledger.types import DERIVED_BALANCES
from billfold.verify.runner import verify_bank

# Every account that keeps a balance against the fold of its legs and of what they reserve, and every bank account at
# zero. Between customers nothing is made and nothing is lost, whatever is moved.
_BALANCES = """
WITH side AS (
  SELECT customer_id, debit AS account_no, CASE phase WHEN 0 THEN amount ELSE 0 END AS debits, 0::bigint AS credits,
         CASE phase WHEN 0 THEN 0 WHEN 1 THEN amount ELSE -amount END AS reserved FROM posting
   UNION ALL
  SELECT customer_id, credit, 0, amount, 0 FROM posting WHERE phase = 0
), folded AS (
  SELECT customer_id, account_no, sum(debits) AS debits, sum(credits) AS credits, sum(reserved) AS reserved
    FROM side GROUP BY customer_id, account_no
)
SELECT count(*) FILTER (WHERE a.kind IS NULL OR CASE
         WHEN a.kind = 'bank' THEN f.debits <> f.credits
         WHEN a.kind = ANY($1) THEN false
         ELSE (a.debits, a.credits, a.reserved)
              IS DISTINCT FROM (coalesce(f.debits, 0), coalesce(f.credits, 0), coalesce(f.reserved, 0)) END) AS wrong,
       coalesce(sum(f.credits - f.debits) FILTER (WHERE a.kind = 'on_us'), 0)::bigint AS made
  FROM account a FULL JOIN folded f USING (customer_id, account_no)
"""


def check_sums(location: Location) -> None:
    """Fold the whole log against the balances. Raises AssertionError when a cent is missing."""
    asyncio.run(_check_sums(location))


def verify_ledger(location: Location) -> int:
    """Have the ledger prove itself, as `billfold verify` does; return how many rows it has.

    Raises AssertionError with the first bad row.
    """
    return asyncio.run(_verify_ledger(location))


async def _check_sums(location: Location) -> None:
    conn = await asyncpg.connect(location.dsn)
    try:
        wrong, made = await conn.fetchrow(_BALANCES, [*DERIVED_BALANCES]) or (None, None)
        assert wrong == 0, "balances are not the fold of the log"
        assert made == 0, "money or bills were made or lost"
    finally:
        await conn.close()


async def _verify_ledger(location: Location) -> int:
    conn = await asyncpg.connect(location.dsn)
    try:
        report = await verify_bank(conn)
    finally:
        await conn.close()
    assert report.first is None, str(report.first)
    return sum(report.checked.values())
