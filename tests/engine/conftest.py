"""A whole bank for every test of the engine that asks, and one in which something has happened."""

import asyncio

import asyncpg
import pytest
from tests import small_bank
from tests.whole_bank import bank, new_holder

__all__ = ["bank", "new_holder"]


@pytest.fixture(scope="session")
def lived_bank(pg_server, database_template):
    """The name of a database in which the small bank has lived, and nobody is connected."""

    async def make():
        name = "small_bank"
        conn = await asyncpg.connect(pg_server.dsn)
        try:
            await conn.execute("SELECT pg_advisory_lock(2)")
            if await conn.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name):
                return name
            dsn = await pg_server.create_database("small_unfinished", template=database_template)
            await small_bank.live(dsn)
            await conn.execute(f"ALTER DATABASE small_unfinished RENAME TO {name}")
        finally:
            await conn.close()
        return name

    return asyncio.run(make())
