"""The small bank without any constraint to protect it."""

import asyncio
import os

import asyncpg
import pytest
from tests import small_rails

DROP_EVERYTHING = """
DO $$ DECLARE each record; BEGIN
  FOR each IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
               WHERE connamespace = 'public'::regnamespace AND contype IN ('f', 'c', 'u', 'p')
               ORDER BY contype = 'p', contype <> 'f' LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', each.t, each.conname);
  END LOOP;
  FOR each IN SELECT table_name AS t, column_name AS c FROM information_schema.columns
               WHERE table_schema = 'public' AND is_nullable = 'NO' AND is_identity = 'NO' LOOP
    EXECUTE format('ALTER TABLE %I ALTER COLUMN %I DROP NOT NULL', each.t, each.c);
  END LOOP;
  FOR each IN SELECT indexrelid::regclass AS i FROM pg_index JOIN pg_class c ON c.oid = indexrelid
               WHERE indisunique AND relnamespace = 'public'::regnamespace LOOP
    EXECUTE format('DROP INDEX %s', each.i);
  END LOOP;
END $$
"""


@pytest.fixture(scope="module")
def unprotected_bank(pg_server, lived_bank):
    """The address of the small bank with every constraint dropped."""
    name = f"unprotected_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"

    async def make():
        dsn = await pg_server.create_database(name, template=lived_bank)
        conn = await asyncpg.connect(dsn)
        try:
            await conn.execute(DROP_EVERYTHING)
        finally:
            await conn.close()
        return dsn

    return asyncio.run(make())


@pytest.fixture(scope="session")
def unprotected_rails(pg_server, market_template):
    """The address of the small bank of the rails with every constraint dropped."""
    name = f"unprotected_rails_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"

    async def make():
        dsn = await pg_server.create_database(name, template=market_template)
        await small_rails.live(dsn)
        conn = await asyncpg.connect(dsn)
        try:
            await conn.execute(DROP_EVERYTHING)
        finally:
            await conn.close()
        return dsn

    return asyncio.run(make())


@pytest.fixture
async def rails(unprotected_rails):
    """A connection to it in a transaction that is taken back after the test."""
    conn = await asyncpg.connect(unprotected_rails)
    transaction = conn.transaction()
    await transaction.start()
    yield conn
    await transaction.rollback()
    await conn.close()


@pytest.fixture
async def damaged(unprotected_bank):
    """A connection to it in a transaction that is taken back after the test."""
    conn = await asyncpg.connect(unprotected_bank)
    transaction = conn.transaction()
    await transaction.start()
    yield conn
    await transaction.rollback()
    await conn.close()
