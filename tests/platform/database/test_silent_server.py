"""A database server that hangs (SIGSTOP to all its processes): 503 within the patience, and one outcome per key."""

import asyncio
import os
import signal
import time
from contextlib import asynccontextmanager

import asyncpg
import psutil
import pytest
from tests.payments.on_us.test_routes import PATH, reallocation
from tests.support.apps import lend_partner_app, take_back
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.support.world import PartnerApi, new_partner

from billfold.ledger.engine import engine, load_books
from billfold.migrations import runner
from billfold.monitoring.management_server import ManagementServer
from billfold.platform import ids
from billfold.platform.database import embedded, pool, shortage
from billfold.platform.database.connection import ensure_login
from billfold.platform.database.embedded import THROWAWAY_SETTINGS
from billfold.platform.database.pool import APP_ROLE, create_pool

PATIENCE, SLACK = 6.0, 6.0
CLIENTS = 8


@pytest.fixture
def server(tmp_path):
    started = embedded.start(tmp_path / "state", settings=THROWAWAY_SETTINGS)
    yield started
    embedded.stop(started)


@pytest.fixture
async def desk(server, monkeypatch):
    monkeypatch.setattr(pool, "BEAT_SECONDS", 0.5)
    monkeypatch.setattr(pool, "CONNECT_SECONDS", 1.5)
    monkeypatch.setattr(pool, "SILENCE_SECONDS", 2.0)
    monkeypatch.setattr(load_books, "_LOCK_SECONDS", 3.0)
    for module in (shortage, engine):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", PATIENCE)
    await ensure_login(server.dsn, APP_ROLE)
    dsn = await server.create_database("bank")
    conn = await asyncpg.connect(dsn)
    await runner.up(conn)
    await conn.close()
    bank = await open_bank(dsn)
    app = lend_partner_app(bank)
    opened = PartnerApi(bank, app, await new_partner(bank))
    # A new connection of the heartbeat would find a server that works, where only older sessions of it hang.
    while not await bank.pool.fetchval("SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT 1'"):
        await asyncio.sleep(0.05)
    yield opened
    await opened.close()
    await take_back(app)
    await close_bank(bank)


@asynccontextmanager
async def silenced(server, *, postmaster=True):
    main = psutil.Process(server.pid)
    stopped = [*([main] if postmaster else []), *main.children()]
    for each in stopped:
        each.suspend()
    try:
        yield
    finally:
        for each in reversed(stopped):
            os.kill(each.pid, signal.SIGCONT)


async def timed(answer):
    began = time.monotonic()
    return (await answer).status_code, time.monotonic() - began


class Payers:
    """Clients that pay one after the other, each under a new key, and the status of the last answer to each key."""

    def __init__(self, desk, origin, target):
        self.desk, self.body = desk, reallocation(origin, target, 1_00)
        self.statuses, self.stop = {}, asyncio.Event()

    async def send(self, key):
        self.statuses[key], seconds = await timed(self.desk.send("POST", PATH, self.body, key=key))
        assert seconds < PATIENCE + SLACK

    async def pay(self):
        while not self.stop.is_set():
            await self.send(ids.new())

    async def repeat(self, key):
        async with asyncio.timeout(30):
            while self.statuses[key] == 503:
                await self.send(key)


@pytest.mark.parametrize("postmaster", [True, False], ids=["all", "backends"])
async def test_a_silent_server_is_answered_503_and_a_repeated_key_has_one_outcome(server, desk, postmaster):
    origin = await desk.funded(100_000_00)
    payers = Payers(desk, origin, await desk.pocket(origin.customer))
    health = ManagementServer(server.dsn_for("bank"))
    paying = [asyncio.create_task(payers.pay()) for _ in range(CLIENTS)]
    while len(payers.statuses) < 2 * CLIENTS:
        await asyncio.sleep(0.01)
    async with silenced(server, postmaster=postmaster):
        payers.stop.set()
        # All others may have been answered before the silence, on a fast machine.
        late = [payers.send(ids.new()) for _ in range(CLIENTS)]
        gets = [timed(desk.send("GET", origin.path)) for _ in range(2 * CLIENTS)]
        answers = await asyncio.gather(*gets, *late, *paying)
        ready, _, _ = await health.respond("/readyz")
    reads = [each for each in answers if each]
    lost = [key for key, status in payers.statuses.items() if status != 201]
    if postmaster:
        assert {status for status, _ in reads} == {payers.statuses[key] for key in lost} == {ready} == {503}
    assert max(seconds for _, seconds in reads) < PATIENCE + SLACK
    for key in lost:
        await payers.repeat(key)
    assert set(payers.statuses.values()) == {201}
    assert await desk.bank.pool.fetchval("SELECT count(*) FROM transfer") == len(payers.statuses)
    await asyncio.sleep(1)  # for which an answer is kept
    assert (await health.respond("/readyz"))[0] == 200
    await expect_clean(desk.bank)


async def test_a_later_request_to_a_silent_server_is_answered_at_once(server, desk):
    async with silenced(server):
        assert await timed(desk.send("GET", "/api/v1/customers/"))
        for _ in range(3):
            status, seconds = await timed(desk.send("GET", "/api/v1/customers/"))
            assert (status, seconds < PATIENCE / 2) == (503, True)


async def test_a_heartbeat_ends_with_the_connections_of_its_pool(server, monkeypatch):
    monkeypatch.setattr(pool, "BEAT_SECONDS", 0.01)
    before = asyncio.all_tasks()
    async with await create_pool(server.dsn) as opened:
        while await opened.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'billfold'") < 2:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() == before
