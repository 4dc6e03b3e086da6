"""A server of two processes, in front of a founded bank."""

import asyncpg
import pytest
from tests.support.served_auth import serving
from tests.support.whole_bank import close_bank, open_bank


@pytest.fixture
async def founded(database_dsn):
    """A connection to the database of an initialized bank."""
    await close_bank(await open_bank(database_dsn))
    conn = await asyncpg.connect(database_dsn)
    yield conn
    await conn.close()


@pytest.fixture
async def served(founded, database_dsn, tmp_path):
    async with serving(database_dsn, tmp_path, workers=2) as running:
        yield running
