"""The primary is killed under load and its replica promoted, on real servers that replicate synchronously."""

import asyncio
import os

import asyncpg
import pytest

from benchmarks import dataset
from benchmarks.dataset import PARTNER, Location, create_bank, customer_of, pocket_of
from benchmarks.replicated_servers import ReplicatedServers
from billfold.migrations import runner
from billfold.monitoring.database_health import check_server
from billfold.payments.on_us.commands import TransferOnUs
from billfold.platform import ids
from billfold.platform.database.connection import connect, hosts_of
from billfold.wiring.cli.app import run
from billfold.wiring.cli_context import Wiring

ENOUGH = 40


@pytest.fixture
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replicated")
    made = ReplicatedServers(folder, durable=False)
    made.start(synchronous=True)
    yield made
    made.stop()


class Clients:
    """Transfers one after the other, and those that were acknowledged."""

    def __init__(self, bank):
        self.bank = bank
        self.acknowledged = []

    async def transfer(self, payer, payee, key=None):
        command = TransferOnUs(
            caller="clients",
            key=key or ids.new(),
            customers=(customer_of(payer), customer_of(payee)),
            transfer_id=None,
            type="PEER_TO_PEER",
            from_pocket_id=pocket_of(payer),
            to_pocket_id=pocket_of(payee),
            amount=100,
            partner_id=PARTNER,
        )
        answer = await self.bank.engine.submit(command)
        self.acknowledged.append(answer.outcome["transfer_id"])

    async def until(self, count):
        async def pay(payer):
            while len(self.acknowledged) < count:
                await self.transfer(payer, payer ^ 1)

        await asyncio.gather(*map(pay, range(4)))


async def found_bank(location):
    conn = await connect(location.dsn)
    await runner.up(conn)
    await conn.close()
    opened = await create_bank(location)
    portals = await dataset.create_customers(opened.bank, range(4))
    deposits = [dataset.deposit(nth, portal, 10_000_00, "1") for nth, portal in portals.items()]
    await dataset.submit_commands(opened.bank, deposits)
    return opened


async def look_at_server(location):
    conn = await connect(location.dsn)
    try:
        return await check_server(conn)
    finally:
        await conn.close()


async def set_read_only(conn, value):
    await conn.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    await conn.execute("SELECT pg_reload_conf()")


async def repeat_while_the_replica_is_away(servers, clients):
    """A command whose interrupted commit is on the primary only is not acknowledged when it is repeated."""
    key = ids.new()
    await clients.transfer(0, 1, key)
    await servers.hold_replication()
    again = asyncio.create_task(clients.transfer(0, 1, key))
    await asyncio.wait([again], timeout=0.5)
    assert not again.done()
    await servers.resume_replication()
    await again
    assert clients.acknowledged.pop() == clients.acknowledged[-1]


async def test_acknowledged_commits_exist_exactly_once_after_a_failover(servers, tmp_path):
    location = Location(servers.address("billfold"), tmp_path)
    opened = await found_bank(location)
    clients = Clients(opened.bank)
    found_well = await look_at_server(location)
    assert ["two sync" in check.found for check in found_well if check.what == "replicas"] == [True]
    assert not [check for check in found_well if check.next_step]
    await repeat_while_the_replica_is_away(servers, clients)
    load = asyncio.create_task(clients.until(3 * ENOUGH))
    while len(clients.acknowledged) < ENOUGH:
        await asyncio.sleep(0.01)
    servers.kill_primary()
    await asyncio.to_thread(servers.promote_replica)
    await load

    administrator = await connect(location.dsn, server_settings={"default_transaction_read_only": "off"})
    await set_read_only(
        administrator, "on"
    )  # as a managed service does with a primary it demotes, or whose disk is full
    with pytest.raises(asyncpg.TargetServerAttributeNotMatched):
        while True:  # until the server has read it
            await (await connect(location.dsn)).close()
    waiting = asyncio.create_task(clients.transfer(0, 1))
    await asyncio.wait([waiting], timeout=0.5)  # it is tried again meanwhile
    await set_read_only(administrator, "off")
    await waiting

    rows = await administrator.fetch("SELECT transfer_id::text FROM transfer")
    assert sorted(row["transfer_id"] for row in rows) == sorted(clients.acknowledged)
    await administrator.close()
    await opened.close()
    environment = {
        "BILLFOLD_DATABASE_URL": location.dsn,
        "BILLFOLD_STATE_DIR": str(tmp_path),
        "PATH": os.environ["PATH"],
    }
    verified = await asyncio.to_thread(run, Wiring(environment), arguments=["verify"])  # by the address of both
    assert verified == 0


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("postgresql://anna:pw@one:5433,two/bank", [("one", 5433), ("two", 5432)]),
        ("postgresql://[::1]:5433,[::2]/bank?target_session_attrs=any", [("::1", 5433), ("::2", 5432)]),
        ("postgresql:///bank?host=/run/one,/run/two&port=5433,5434", [("/run/one", 5433), ("/run/two", 5434)]),
        ("postgresql://anna@one:5433/bank", []),
        ("postgresql://postgres@/bank?host=/run/one&port=5432", []),
    ],
)
def test_all_hosts_of_a_multi_host_address_are_parsed(address, hosts):
    assert hosts_of(address) == hosts
