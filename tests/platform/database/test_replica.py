"""Documents are read from a streaming replica that has replayed what they show, and else from the primary."""

import asyncio

import pytest

from benchmarks import dataset
from benchmarks.dataset import Location, create_bank, customer_of, open_bank
from benchmarks.replicated_servers import ReplicatedServers
from billfold.data_keys.keys import DataKeys
from billfold.migrations import runner
from billfold.monitoring.database_health import check_replicas_read
from billfold.platform.database import replica as database_replica
from billfold.platform.database.connection import connect
from billfold.reports.entries.reader import read_current


@pytest.fixture
def servers(tmp_path_factory):
    made = ReplicatedServers(tmp_path_factory.mktemp("replicated"), durable=False)
    made.start(synchronous=False)
    yield made
    made.stop()


@pytest.fixture
async def bank(servers, tmp_path, monkeypatch):
    monkeypatch.setattr(database_replica, "RETRY_SECONDS", 0.0)
    location = Location(servers.address("billfold", "one"), tmp_path)
    conn = await connect(location.dsn)
    await runner.up(conn)
    await conn.close()
    await (await create_bank(location)).close()
    opened = await open_bank(location, database_replica_url=servers.address("billfold"))  # the first is no replica
    yield opened.bank
    await opened.close()


@pytest.fixture
async def operator_of_replica(servers, bank):
    conn = await connect(servers.address("billfold", "two"), target_session_attrs="standby")
    yield conn
    await conn.close()


async def pause(conn):
    await conn.execute("SELECT pg_wal_replay_pause()")
    while await conn.fetchval("SELECT pg_get_wal_replay_pause_state()") != "paused":
        await asyncio.sleep(0.01)


async def caught_up(bank):
    while not await bank.replica.catch_up():
        await asyncio.sleep(0.01)


async def port_of(reading):
    return await reading.pool.fetchval("SELECT inet_server_port()")


async def look_at(bank, addresses):
    """Look at replicas as the doctor does."""
    operator = await connect(bank.settings.database_url)
    try:
        return await check_replicas_read(operator, addresses)
    finally:
        await operator.close()


async def deposit(bank, portal, occasion):
    await dataset.submit_commands(bank, [dataset.deposit(0, portal, 10_000_00, occasion)])


async def keys_read_for_a_replica(bank, subject_id):
    """Return a key that was destroyed, as it is read while the replica still has it."""
    await bank.ports[DataKeys].of(bank.pool, subject_id)
    await bank.ports[DataKeys].shred(bank.pool, subject_id, await bank.now())
    return await bank.ports[DataKeys].read_by(bank.pool).load(bank.replica.pool, (subject_id,))


async def test_documents_are_read_from_a_replica_that_has_replayed_their_data(servers, bank, operator_of_replica):
    primary, replica = (servers.ports[name] for name in ("one", "two"))
    portals = await dataset.create_customers(bank, [0])
    await deposit(bank, portals[0], "1")
    await caught_up(bank)
    assert await read_current(bank, port_of) == replica

    async def write(reading):
        await reading.pool.execute("DELETE FROM failed_work")
        return await port_of(reading)

    assert await read_current(bank, write) == primary

    async def deposit_meanwhile(reading):
        """Return the servers of reads begun before and after a deposit that the replica lacks."""
        await pause(operator_of_replica)
        await deposit(bank, portals[0], "2")
        return await port_of(reading), await read_current(bank, port_of)  # never with rows missing

    assert await read_current(bank, deposit_meanwhile) == (replica, primary)
    assert await keys_read_for_a_replica(bank, customer_of(0)) == {customer_of(0): None}
    found = await look_at(bank, servers.address("billfold"))
    assert f"127.0.0.1:{primary} is not a replica" in found.found
    assert ("bytes behind" in found.found, bool(found.next_step)) == (True, True)

    await operator_of_replica.execute("SELECT pg_wal_replay_resume()")
    await caught_up(bank)
    assert await read_current(bank, port_of) == replica
    assert not (await look_at(bank, servers.address("billfold", "two"))).next_step

    servers.stop_replica()
    assert await read_current(bank, port_of) == primary
