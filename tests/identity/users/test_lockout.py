"""Tries are counted before they are looked at, so those side by side count as well."""

import asyncio
from datetime import UTC, datetime

import asyncpg

from billfold.identity.users.lockout import begin_attempt, clear_attempts, ip_subject, password_subject
from billfold.platform.crypto import Vault

VAULT = Vault(bytes(32))
NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)


async def test_concurrent_password_guesses_are_limited(database_dsn):
    async with asyncpg.create_pool(database_dsn, min_size=8, max_size=8) as pool:

        async def guess():
            async with pool.acquire() as conn:
                return (await begin_attempt(conn, password_subject(VAULT, "anna@b.example"), NOW)).wait_seconds

        approval_response = await asyncio.gather(*(guess() for _ in range(30)))
    assert approval_response.count(0) == 2


async def test_a_successful_login_removes_one_failure_of_its_ip_address(conn):
    subject = ip_subject("203.0.113.7")
    for _ in range(3):
        await begin_attempt(conn, subject, NOW)
    await clear_attempts(conn, subject)
    assert await conn.fetchval("SELECT failures FROM login_attempt") == 2


async def test_a_successful_login_clears_the_failures_of_the_account(conn):
    subject = password_subject(VAULT, "anna@b.example")
    await begin_attempt(conn, subject, NOW)
    await clear_attempts(conn, subject)
    assert await conn.fetchval("SELECT count(*) FROM login_attempt") == 0
