"""Looking up the owner of a name."""

import asyncio

import pytest

from billfold.ledger.directory import Directory, find_customer
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.pool import create_pool


@pytest.fixture
async def pool(database_dsn):
    opened = await create_pool(database_dsn)
    yield opened
    await opened.close()


async def new_customer(pool):
    customer, partner = ids.new(), ids.new()
    await pool.execute(
        "INSERT INTO customer (customer_id, partner_id, role, type, name, account_status, profile, "
        "opened_at) VALUES ($1, $2, 'customer', 'BUSINESS', 'A', 'OPEN', '{}', $3)",
        customer,
        partner,
        wall_now(),
    )
    await pool.execute("INSERT INTO directory VALUES ('pocket', $1, $2, $2)", str(customer), customer)
    return customer, partner


async def test_a_directory_lookup_returns_customer_and_partner(pool):
    customer, partner = await new_customer(pool)
    entry = await Directory(pool).find("pocket", customer)
    assert entry is not None
    assert (entry.customer_id, entry.object_id, entry.partner_id) == (customer, customer, partner)
    assert await Directory(pool).find("portal", customer) is None


async def test_concurrent_directory_lookups_return_their_own_entry(pool):
    customers = [(await new_customer(pool))[0] for _ in range(3)]
    directory = Directory(pool)
    asked = [customers[2], ids.new(), customers[0], customers[1], customers[0]]
    found = await asyncio.gather(*(directory.find("pocket", each) for each in asked))
    assert [entry and entry.customer_id for entry in found] == [
        customers[2],
        None,
        customers[0],
        customers[1],
        customers[0],
    ]


async def test_a_found_directory_entry_is_cached(pool):
    customer, _ = await new_customer(pool)
    directory = Directory(pool)
    found = await directory.find("pocket", customer)
    await pool.execute("DELETE FROM directory")
    assert await directory.find("pocket", customer) == found


async def test_a_missing_directory_entry_is_found_once_inserted(pool):
    directory = Directory(pool)
    customer, _ = await new_customer(pool)
    missing = ids.new()
    assert await directory.find("pocket", missing) is None
    await pool.execute("INSERT INTO directory VALUES ('pocket', $1, $2, $2)", str(missing), customer)
    assert await directory.find("pocket", missing) is not None


async def test_the_directory_cache_evicts_the_oldest_entry_when_full(pool):
    directory = Directory(pool, cache_size=1)
    first, second = (await new_customer(pool))[0], (await new_customer(pool))[0]
    await directory.find("pocket", first)
    await directory.find("pocket", second)
    await pool.execute("DELETE FROM directory")
    assert await directory.find("pocket", first) is None
    assert await directory.find("pocket", second) is not None


async def test_a_customer_is_read_without_caching(pool):
    customer, _ = await new_customer(pool)
    await pool.execute("UPDATE customer SET name = 'B'")
    row = await find_customer(pool, customer)
    assert row is not None
    assert row.name == "B"
    assert await find_customer(pool, ids.new()) is None
