"""Tries are counted before they are looked at, so those side by side count as well."""

import asyncio
from datetime import UTC, datetime

import asyncpg

from billfold.access.users.lockout import address_of, begin_try, forget_tries, password_of

NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)


async def test_few_get_through_when_many_guess_at_once(database_dsn):
    async with asyncpg.create_pool(database_dsn, min_size=8, max_size=8) as pool:

        async def guess():
            async with pool.acquire() as conn:
                return (await begin_try(conn, password_of("anna@b.example"), NOW)).wait_seconds

        waits = await asyncio.gather(*(guess() for _ in range(30)))
    assert waits.count(0) == 2


async def test_an_address_is_forgiven_one_try_by_a_success(conn):
    subject = address_of("203.0.113.7")
    for _ in range(3):
        await begin_try(conn, subject, NOW)
    await forget_tries(conn, subject)
    assert await conn.fetchval("SELECT failures FROM proof_failure") == 2


async def test_an_account_starts_anew_after_a_success(conn):
    subject = password_of("anna@b.example")
    await begin_try(conn, subject, NOW)
    await forget_tries(conn, subject)
    assert await conn.fetchval("SELECT count(*) FROM proof_failure") == 0
