"""The log as it grows: everything once, in each customer's order, however commits follow."""

import asyncpg
import pytest
from tests.support.raised_events import add_customer, raise_event

from billfold.events import feed

READER = "somebody"


@pytest.fixture
async def other(database_dsn):
    connection = await asyncpg.connect(database_dsn)
    yield connection
    await connection.close()


async def read(conn):
    async with conn.transaction():
        news = await feed.read_new_events(conn, READER)
        assert news is not None
        return [row.event_id for row in news]


async def test_a_reader_begins_with_what_is_raised_after_it_came(conn):
    anna = await add_customer(conn)
    await raise_event(conn, anna)
    await feed.create_reader(conn, READER)
    assert await read(conn) == []
    later = await raise_event(conn, anna)
    await feed.create_reader(conn, READER)
    assert [await read(conn), await read(conn)] == [[later], []]


async def test_what_commits_late_is_read_late_and_nothing_twice(conn, other):
    anna, bert = await add_customer(conn), await add_customer(conn)
    await feed.create_reader(conn, READER)
    late = other.transaction()
    await late.start()
    first = await raise_event(other, anna)
    second = await raise_event(conn, bert)
    assert await read(conn) == [second]
    third = await raise_event(conn, bert)
    await late.commit()
    assert sorted(await read(conn)) == sorted([third, first])
    assert await read(conn) == []


async def test_a_customers_events_are_read_in_order_though_his_transactions_are_not(conn, other):
    """The older transaction writes his second event: it waited for his head meanwhile."""
    anna, bert = await add_customer(conn), await add_customer(conn)
    await feed.create_reader(conn, READER)
    older = other.transaction()
    await older.start()
    elsewhere = await raise_event(other, bert)
    first = await raise_event(conn, anna)
    second = await raise_event(other, anna)
    await older.commit()
    read_now = await read(conn)
    assert [each for each in read_now if each != elsewhere] == [first, second]
    assert len(read_now) == 3


async def test_what_was_taken_back_is_read_again(conn):
    anna = await add_customer(conn)
    await feed.create_reader(conn, READER)
    event_id = await raise_event(conn, anna)
    taken = conn.transaction()
    await taken.start()
    assert await feed.read_new_events(conn, READER)
    await taken.rollback()
    assert await read(conn) == [event_id]


async def test_a_reader_that_is_reading_is_left_alone(conn, other):
    await feed.create_reader(conn, READER)
    async with conn.transaction():
        assert await feed.read_new_events(conn, READER) == []
        async with other.transaction():
            assert await feed.read_new_events(other, READER) is None


async def test_has_new_events_is_true_when_an_event_was_raised(conn, other):
    anna = await add_customer(conn)
    await feed.create_reader(conn, READER)
    assert not await feed.has_new_events(conn, READER)
    late = other.transaction()
    await late.start()
    await raise_event(other, anna)
    bert = await add_customer(conn)
    await raise_event(conn, bert)
    assert await feed.has_new_events(conn, READER)
    await read(conn)
    assert not await feed.has_new_events(conn, READER)
    await late.commit()
    assert await feed.has_new_events(conn, READER)


async def test_a_reader_finds_its_place_again_when_the_bank_came_from_a_dump(conn):
    anna = await add_customer(conn)
    for _ in range(3):
        await raise_event(conn, anna)
    await conn.execute("UPDATE event SET xid = (1000000000 + event_no)::text::xid8")
    await conn.execute("UPDATE event_reader SET position = '1000000002:1000000003:1000000002'")
    assert await feed.repair_positions(conn)
    assert not await feed.repair_positions(conn)
    later = await raise_event(conn, anna)
    async with conn.transaction():
        news = await feed.read_new_events(conn, feed.SEQUENCER)
    assert news is not None
    assert [row.event_no for row in news] == [2, 3, 4]
    assert news[-1].event_id == later


async def test_reading_takes_no_longer_when_the_log_is_long(conn):
    anna = await add_customer(conn)
    await conn.execute(
        "INSERT INTO event SELECT $1, n, gen_random_uuid(), 'trades.maturity', '{}', now()"
        " FROM generate_series(1, 20000) n",
        anna,
    )
    await feed.create_reader(conn, READER)
    await raise_event(conn, anna)
    async with conn.transaction():
        position = await feed.lock_reader(conn, READER, wait=False)
        plan = await conn.fetch(f"EXPLAIN (ANALYZE, FORMAT TEXT) {feed._READ_NEW}", position, READER)
    assert "Seq Scan on event" not in "\n".join(row[0] for row in plan)
