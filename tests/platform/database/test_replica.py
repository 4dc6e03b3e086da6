"""Reads go to a streaming replica where they may, and to the primary where the replica is not as new as they need."""

import asyncio

import pytest
from tests.support.partner_client import PartnerClient, close_app, new_partner

from benchmarks import dataset
from benchmarks.dataset import PARTNER, Location, create_bank, customer_of, open_bank, pocket_of
from benchmarks.replicated_servers import ReplicatedServers
from billfold.health.replica_checks import check_replicas_read
from billfold.http.partner_api.app import partner_operations
from billfold.http.stale_reads import stale_seconds
from billfold.ledger.current_reads import CurrentReads
from billfold.ledger.jobs.commands import CatchUp
from billfold.migrations import runner
from billfold.platform import ids
from billfold.platform.database.connect import connect
from billfold.wiring.server import make_partner_app

_LISTED = f"/api/v2/customers/{customer_of(0)}/transactions/"
_STALE = {"cache-control": "max-stale=30"}
_WRITTEN = "SELECT trade_id, t.transaction_id FROM trade JOIN transaction t USING (customer_id) LIMIT 1"


@pytest.fixture
def servers(tmp_path_factory):
    made = ReplicatedServers(tmp_path_factory.mktemp("replicated"), durable=False)
    made.start(synchronous=False)
    yield made
    made.stop()


@pytest.fixture
async def bank(servers, tmp_path):
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
    while await bank.replica.current() is None:
        await bank.replica.probe()
    await bank.replica.probe()


async def port_of(reading):
    return await reading.pool.fetchval("SELECT inet_server_port()")


class Reader:
    """A partner that reads a customer's transactions, and documents that are made of the bank meanwhile."""

    def __init__(self, bank, app, partner):
        self.bank, self.app = bank, app
        self.client = PartnerClient(app, partner)

    async def listed(self, stale=None):
        """How many transactions there are, and how old the answer is."""
        answer = await self.client.send("GET", _LISTED, headers={"cache-control": stale} if stale else {})
        assert answer.status_code == 200
        return len(answer.json()["items"]), answer.headers.get("age")

    async def document(self):
        """From which server a document is made that is begun now."""
        return await (await CurrentReads.begin(self.bank)).read(port_of)

    async def close(self):
        await self.client.close()
        await close_app(self.app)


async def reader_of(bank):
    partner = await new_partner(bank, known_ids=(PARTNER, ids.new(), ids.new()))
    return Reader(bank, make_partner_app(bank), partner)


async def look_at(bank, replicas):
    """Look at replicas as the doctor does."""
    operator = await connect(bank.settings.database_url)
    try:
        return await check_replicas_read(operator, replicas)
    finally:
        await operator.close()


async def deposit(bank, portal, occasion):
    await dataset.submit_commands(bank, [dataset.deposit(0, portal, 10_000_00, occasion)])


async def catch_up(reading):
    await reading.engine.submit(CatchUp(caller="due", key=customer_of(0), customers=(customer_of(0),)))
    return await port_of(reading)


async def every_path(bank):
    trade_id, transaction_id = await bank.pool.fetchrow(_WRITTEN)
    named = {"customer_id": customer_of(0), "pocket_id": pocket_of(0), "account_id": pocket_of(0)}
    named |= {"trade_id": trade_id, "transaction_id": transaction_id}
    stale = [each for each in partner_operations() if each.may_be_stale and {*each.path_names} <= {*named}]
    assert len(stale) > 12
    return [each.path.format(**named) for each in stale]


async def test_reads_go_to_a_replica_that_has_replayed_what_they_need(servers, bank, operator_of_replica):
    primary, replica = (servers.ports[name] for name in ("one", "two"))
    reader = await reader_of(bank)
    portals = await dataset.create_customers(bank, [0])
    await deposit(bank, portals[0], "1")
    await caught_up(bank)
    for path in await every_path(bank):  # a write would be refused by the replica, and the primary answer
        assert "age" in (await reader.client.get(path, headers=_STALE)).headers, path
    before, _ = await reader.listed("max-stale=30")
    assert [await reader.listed(said) for said in (None, "max-stale=30, no-cache")] == [(before, None)] * 2
    unknown = await reader.client.get(f"/api/v2/pockets/{customer_of(9)}/", headers=_STALE)
    assert (unknown.status_code, "age" in unknown.headers) == (404, False)
    assert await reader.document() == replica
    earlier = await CurrentReads.begin(bank)

    await pause(operator_of_replica)
    await deposit(bank, portals[0], "2")
    assert (await reader.listed("max-stale=30"))[0] == before
    assert (await reader.listed())[0] > before  # its own writes
    assert await reader.document() == primary  # never with rows missing
    assert await earlier.read(port_of) == replica
    assert await earlier.read(catch_up) == primary  # what it writes the replica would lack
    found = await look_at(bank, servers.address("billfold"))
    assert f"127.0.0.1:{primary} is no replica" in found.found
    assert ("bytes behind" in found.found, bool(found.next_step)) == (True, True)

    await operator_of_replica.execute("SELECT pg_wal_replay_resume()")
    await caught_up(bank)
    assert await reader.document() == replica
    assert not (await look_at(bank, servers.address("billfold", "two"))).next_step

    servers.stop_replica()
    assert await reader.listed("max-stale=30") == ((await reader.listed())[0], None)
    assert await reader.document() == primary
    await reader.close()


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (None, 0),
        ("max-age=0", 0),
        ("max-stale=5", 5),
        ('Max-Stale="5"', 5),
        ("max-stale", 60),
        ("max-stale=86400", 60),
        ("max-stale=30, max-age=4", 4),
        ("max-stale=5, no-cache", 0),
        ("max-stale=-1", 0),
        ("max-stale=5.5", 0),
        ("no-store", 0),
    ],
)
def test_how_stale_an_answer_may_be(sent, seconds):
    assert stale_seconds(sent) == seconds
