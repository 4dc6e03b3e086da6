"""Claims: work is done by one process at a time and continued by the next one when it dies."""

import asyncio
from contextlib import suppress
from datetime import timedelta

import asyncpg
import pytest
from tests.support.whole_bank import bank as bank  # noqa: PLC0414 - a fixture

from billfold.platform.database import background_work
from billfold.platform.database.background_work import claimed, locked


async def test_claimed_work_is_skipped_or_awaited_by_other_processes(bank):
    async with claimed(bank.pool, "a file") as first, claimed(bank.pool, "another") as other:
        assert (first, other) == (True, True)
        async with claimed(bank.pool, "a file") as second:
            assert not second
        with pytest.raises(TimeoutError):
            async with claimed(bank.pool, "a file", wait=timedelta(seconds=0.1)):
                pass
    async with claimed(bank.pool, "a file", wait=timedelta(seconds=1)) as again:
        assert again
    assert await bank.pool.fetchval("SELECT count(*) FROM work_claim") == 0


async def test_no_connection_keeps_a_lock_whose_release_failed(bank):
    with pytest.raises(asyncpg.InFailedSQLTransactionError):
        async with locked(bank.pool, 7) as conn:
            assert conn is not None
            with suppress(asyncpg.DivisionByZeroError):
                await conn.execute("BEGIN; SELECT 1/0")
    async with asyncio.timeout(10):
        while await bank.pool.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7"):
            await asyncio.sleep(0.01)


async def test_a_work_claim_is_renewed_while_working_and_expires_with_its_process(bank, monkeypatch):
    monkeypatch.setattr(background_work, "LASTS", timedelta(seconds=0.2))
    async with claimed(bank.pool, "a file"):
        await asyncio.sleep(0.5)
        async with claimed(bank.pool, "a file") as second:
            assert not second
    await bank.pool.execute("INSERT INTO work_claim VALUES ('of the dead', gen_random_uuid(), now() + '0.2 s')")
    async with claimed(bank.pool, "of the dead") as at_once:
        assert not at_once
    async with claimed(bank.pool, "of the dead", wait=timedelta(seconds=2)) as later:
        assert later
