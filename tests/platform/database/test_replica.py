"""Reads go to a streaming replica where they may, and to the primary where the replica is not as new as they need."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.world import PartnerClient, close_app, new_partner

from benchmarks import dataset
from benchmarks.dataset import PARTNER, Location, create_bank, customer_of, open_bank, pocket_of
from benchmarks.replicated_servers import ReplicatedServers
from billfold.health.replica_checks import check_replicas_read
from billfold.http.partner_api.app import partner_operations
from billfold.http.responses import HttpResponse
from billfold.http.stale_reads import StaleReads, stale_seconds
from billfold.ledger.current_reads import CurrentReads
from billfold.ledger.jobs.commands import CatchUp
from billfold.migrations import runner
from billfold.platform import ids
from billfold.platform.database.connect import connect
from billfold.platform.database.replica import Mark, Replica, _reading
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

    async def is_stale_under_one_key(self):
        """Whether the answers to a request and to its repetition, which may not be stale, are."""
        key = ids.new()
        answers = [await self.client.send("GET", _LISTED, key=key, headers=each) for each in (_STALE, {})]
        return ["age" in each.headers for each in answers]

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


async def keys_read_for_a_replica(bank, subject_id):
    """What is read of a subject's key beside a replica, which has not heard yet that it was destroyed."""
    await bank.data_keys.of(bank.pool, subject_id)
    await bank.data_keys.shred(bank.pool, subject_id, await bank.now())
    return await bank.read_by(bank.replica.pool).data_keys.load(bank.replica.pool, (subject_id,))


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
    assert (unknown.status_code, "age" in unknown.headers, await reader.document()) == (404, False, replica)
    earlier = await CurrentReads.begin(bank)

    await pause(operator_of_replica)
    await deposit(bank, portals[0], "2")
    assert (await reader.listed("max-stale=30"))[0] == before
    assert (await reader.listed())[0] > before  # its own writes
    assert await reader.is_stale_under_one_key() == [True, False]  # what a replica said is not repeated
    assert await keys_read_for_a_replica(bank, customer_of(0)) == {customer_of(0): None}
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
    assert (await reader.listed("max-stale=30"), await reader.document()) == (await reader.listed(), primary)
    await reader.close()


async def test_an_answer_that_took_longer_than_it_may_be_old_is_left_to_the_primary():
    now = [100.0]
    nothing: Any = SimpleNamespace(read_by=lambda _: None)
    replica = Replica(nothing, nothing, clock=lambda: now[0])
    replica._marks.append(Mark(98.0, 1000))
    replica._replayed = 1000

    async def respond(*_):
        reading: Any = _reading.get()
        reading.replayed = 1000
        now[0] += 4
        return HttpResponse(200, "application/json")

    slow: Any = SimpleNamespace(may_be_stale=True, respond=respond)
    request: Any = SimpleNamespace(header=lambda _: "max-stale=8")
    reads = StaleReads(nothing, replica, {})
    answers = [await reads.respond(slow, request) for _ in range(2)]
    assert [each and dict(each.headers)[b"age"] for each in answers] == [b"6", None]


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
