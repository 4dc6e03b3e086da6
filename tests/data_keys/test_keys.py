import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from billfold.data_keys.keys import DataKeys, DataShredded, SealedValue
from billfold.data_keys.kms import FileMasterKey
from billfold.platform.crypto import Vault
from billfold.platform.database.pool import APP_ROLE, create_pool
from billfold.platform.errors import InvariantError

ACME, BETA, NOBODY = (UUID(int=number) for number in (1, 2, 3))
NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)
MASTER = FileMasterKey(Vault(bytes(range(32))))


@pytest.fixture
async def pool(database_dsn):
    async with await create_pool(database_dsn, max_size=20, role=APP_ROLE) as opened:
        yield opened


async def test_concurrent_first_encryptions_of_a_tenant_share_one_data_key(pool):
    processes = [DataKeys(MASTER) for _ in range(20)]

    sealed = await asyncio.gather(*(each.seal(pool, ACME, b"12-3456789", b"place") for each in processes))

    assert await pool.fetchval("SELECT count(*) FROM data_key") == 1
    assert {await DataKeys(MASTER).open(pool, ACME, each, b"place") for each in sealed} == {b"12-3456789"}


async def test_a_data_key_of_a_rolled_back_transaction_is_not_reused(pool):
    keys = DataKeys(MASTER)
    async with pool.acquire() as conn:
        undone = conn.transaction()
        await undone.start()
        lost = await keys.seal(conn, ACME, b"lost", b"place")
        assert await keys.open(conn, ACME, lost, b"place") == b"lost"
        await undone.rollback()

    kept = await keys.seal(pool, ACME, b"kept", b"place")

    assert await DataKeys(MASTER).open(pool, ACME, kept, b"place") == b"kept"


async def test_data_keys_of_many_customers_are_read_in_one_query(pool):
    keys, fresh = DataKeys(MASTER), DataKeys(MASTER)
    plain = [(UUID(int=10 + number % 5), str(number).encode()) for number in range(50)]
    values = [SealedValue(owner, await keys.seal(pool, owner, value, b"place"), b"place") for owner, value in plain]

    async with pool.acquire() as conn:
        statements = []
        conn.add_query_logger(lambda record: statements.append(record.query))
        assert await fresh.open_many(conn, values) == [value for _, value in plain]
        await conn.fetchval("SELECT 1")  # the log is written behind the statement
        assert [each for each in statements if "data_key" in each] == statements[:1]
        with pytest.raises(InvariantError, match="no data key"):
            await fresh.open(conn, NOBODY, values[0].sealed, b"place")


async def test_the_data_key_cache_is_limited_in_size_and_time(pool):
    seconds = [0.0]
    keys = DataKeys(MASTER, size=1, life=timedelta(minutes=5), clock=lambda: seconds[0])
    sealed = await keys.seal(pool, ACME, b"value", b"place")
    await DataKeys(MASTER).shred(pool, ACME, NOW)

    assert await keys.open(pool, ACME, sealed, b"place") == b"value"
    seconds[0] = 301.0
    with pytest.raises(DataShredded):
        await keys.open(pool, ACME, sealed, b"place")

    sealed = await keys.seal(pool, BETA, b"value", b"place")
    await keys.of(pool, NOBODY)  # there is room for one
    await DataKeys(MASTER).shred(pool, BETA, NOW)
    with pytest.raises(DataShredded):
        await keys.open(pool, BETA, sealed, b"place")


async def test_a_destroyed_data_key_is_never_recreated(pool):
    keys = DataKeys(MASTER)
    sealed = await keys.seal(pool, ACME, b"value", b"place")

    assert [await keys.shred(pool, each, NOW) for each in (ACME, ACME, BETA)] == [True, False, True]

    assert await pool.fetchval("SELECT count(*) FROM data_key WHERE wrapped IS NULL") == 2
    for attempt in (keys.open(pool, ACME, sealed, b"place"), keys.of(pool, ACME), keys.of(pool, BETA)):
        with pytest.raises(DataShredded):
            await attempt
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await pool.execute("DELETE FROM data_key")


async def test_a_data_key_of_a_different_customer_or_master_key_is_refused(pool):
    await DataKeys(MASTER).of(pool, ACME)
    await pool.execute("INSERT INTO data_key SELECT $1, wrapped, master_key FROM data_key", BETA)

    with pytest.raises(InvariantError, match="moved"):
        await DataKeys(MASTER).of(pool, BETA)
    with pytest.raises(InvariantError, match="bank's keys"):
        await DataKeys(FileMasterKey(Vault(bytes(32)))).of(pool, ACME)
