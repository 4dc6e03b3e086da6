"""A database without a schema."""

import asyncpg
import pytest


@pytest.fixture
async def empty_conn(empty_database_dsn):
    connection = await asyncpg.connect(empty_database_dsn)
    yield connection
    await connection.close()
