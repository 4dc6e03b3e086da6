"""Initialization of a bank: deterministic from the seed, and only once."""

from datetime import date

import pytest
from tests.support.whole_bank import SEED

from billfold.ledger.scheduler import bank_customer_id
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.settings.settings import Settings
from billfold.wiring.initialize import (
    BankConfigMismatch,
    create_bank_customer,
    find_bank_identity,
    initialize_bank,
)

VAULT = Vault(bytes(range(32)))


async def lay(conn, seed=SEED, environment="sandbox", vault=VAULT, **changes):
    settings = Settings(environment=environment, **changes)
    await initialize_bank(conn, settings, seed=seed, vault=vault, wall=wall_now())


async def test_initializing_a_bank_twice_changes_nothing(conn):
    assert await find_bank_identity(conn) is None
    for _ in range(2):
        await lay(conn)
    found = await find_bank_identity(conn)
    assert found is not None
    assert (found.seed, found.environment) == (SEED, "sandbox")
    assert await conn.fetchval("SELECT count(*) FROM clock") == 1
    assert await conn.fetchval("SELECT bank_customer_id FROM bank") == bank_customer_id(SEED)


async def test_a_production_bank_has_no_test_clock(conn):
    await lay(conn, environment="production")
    assert await conn.fetchval("SELECT count(*) FROM clock") == 0


@pytest.mark.parametrize(("seed", "environment"), [(b"another seed", "sandbox"), (SEED, "production")])
async def test_initializing_a_different_bank_in_the_same_database_is_refused(conn, seed, environment):
    await lay(conn)
    with pytest.raises(BankConfigMismatch):
        await lay(conn, seed, environment)


async def test_initialization_creates_the_bank_customer_once_with_its_day_due(bank):
    await create_bank_customer(bank)
    row = await bank.pool.fetchrow("SELECT * FROM ledger_head WHERE customer_id = $1", bank_customer_id(SEED))
    assert row["business_date"] == date(2025, 6, 2)
    assert row["due_at"] == bank.calendars.closes_at(date(2025, 6, 2))
    assert await bank.pool.fetchval("SELECT count(*) FROM customer") == 1
