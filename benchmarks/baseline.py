"""The baseline: the least a ledger must do, one database transaction per transfer.

One ledger row and two balance updates in key order, as one plpgsql call over one of sixteen
connections. It knows no customers, bills, idempotency or history.
"""

from __future__ import annotations

import asyncio
from random import Random

import asyncpg

from billfold.cli.python_process import tune_garbage_collector
from billfold.platform.clock import monotonic
from billfold.platform.database.pool import create_pool

BARE = "bare transfers"
CONNECTIONS = 16

_TABLES = """
CREATE TABLE bare_account (
  account_no  int PRIMARY KEY,
  balance     bigint NOT NULL CHECK (balance >= 0)
) WITH (fillfactor = 50);
CREATE TABLE bare_entry (
  entry_no  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  debit     int NOT NULL,
  credit    int NOT NULL,
  amount    bigint NOT NULL CHECK (amount > 0)
);
CREATE FUNCTION bare_transfer(payer int, payee int, cents bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO bare_entry (debit, credit, amount) VALUES (payer, payee, cents);
  IF payer < payee THEN
    UPDATE bare_account SET balance = balance - cents WHERE account_no = payer;
    UPDATE bare_account SET balance = balance + cents WHERE account_no = payee;
  ELSE
    UPDATE bare_account SET balance = balance + cents WHERE account_no = payee;
    UPDATE bare_account SET balance = balance - cents WHERE account_no = payer;
  END IF;
END $$;
"""
_FILL = """
INSERT INTO bare_account (account_no, balance)
SELECT n, 1000000000 FROM generate_series(0, $1::int - 1) AS n
"""
_CALL = "SELECT bare_transfer($1, $2, $3)"
_COUNT = "SELECT count(*) FROM bare_entry"
_WORTH = "SELECT sum(balance)::bigint FROM bare_account"


class Bare:
    """Sixteen connections that transfer as fast as they are answered."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], accounts: int) -> None:
        self._pool = pool
        self._accounts = accounts
        self._draw = Random(1)

    async def per_second(self, count: int) -> float:
        """Draw so many transfers between different accounts, carry them out, and return the rate.

        Raises AssertionError when rows or money are missing after.
        """
        draw, accounts = self._draw, self._accounts
        transfers = []
        for _ in range(count):
            payer = draw.randrange(accounts)
            payee = (payer + draw.randrange(1, accounts)) % accounts
            transfers.append((payer, payee, draw.randrange(1, 1000)))
        before = await self._pool.fetchval(_COUNT)
        started = monotonic()
        await asyncio.gather(*(self._transfer(transfers[nth::CONNECTIONS]) for nth in range(CONNECTIONS)))
        ended = monotonic()
        assert await self._pool.fetchval(_COUNT) - before == count, "entries are missing"
        assert await self._pool.fetchval(_WORTH) == accounts * 1_000_000_000
        return count / (ended - started)

    async def close(self) -> None:
        """Give the connections back."""
        await self._pool.close()

    async def _transfer(self, share: list[tuple[int, int, int]]) -> None:
        async with self._pool.acquire() as conn:
            for payer, payee, cents in share:
                await conn.execute(_CALL, payer, payee, cents)


async def open_bare(dsn: str, accounts: int) -> Bare:
    """Make the tables in an empty database and open the connections."""
    pool = await create_pool(dsn, min_size=CONNECTIONS, max_size=CONNECTIONS)
    await pool.execute(_TABLES)
    await pool.execute(_FILL, accounts)
    await pool.execute("VACUUM ANALYZE bare_account")
    tune_garbage_collector()
    return Bare(pool, accounts)
