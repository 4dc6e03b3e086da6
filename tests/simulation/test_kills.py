"""kill -9 at random moments under load: the server, the worker, Postgres, in turn.

A client outside keeps its own list of what was acknowledged. In the end everything on the list
happened exactly once, everything else at most once, and the ledger proves itself.
"""

import asyncio
import os
import shutil
import ssl
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random

import asyncpg
import httpx
import msgspec
import pytest
from tests.support.cards import pem, unread_key
from tests.support.whole_bank import EngineCommands
from tests.support.world import new_partner
from tools.linearizability.processes import POSTGRES, SERVE, WORKER, Processes

from billfold.payments.cards.authorizations.messages import processor_key, sign_message
from billfold.platform import ids
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.crypto import sign_request
from billfold.platform.database.business_clock import read_clock, write_clock
from billfold.sandbox.card_processor.vault import CardVault
from billfold.verify.runner import verify_bank

KILLS = int(os.environ.get("BILLFOLD_KILLS", "6"))
SEED = int(os.environ.get("BILLFOLD_KILLS_SEED", "7"))
PATH, MESSAGES = "/api/v1/transfers/on-us/", "/v1/messages/"
CARDS, SWIPES = 0.1, 0.3
"""How many of the requests create a card, which a process of its own issues, and how many pay with one."""
CUSTOMERS, LINES = 12, 8
PAUSE = (0.1, 0.9)
WHOLE_EVERY = 24
"""After how many kills a whole server is ended with all its processes: it takes long to open."""
QUIET_SECONDS = 60.0
CLOCK_STEP = timedelta(hours=5)


class Client:
    """An external payer that repeats each request until it gets a response, and keeps a list."""

    def __init__(self, programs, partner, pockets, card_key):
        self.random = Random(SEED)
        self.partner = partner
        self.pockets, self.cards = pockets, []
        self.card_key = card_key
        self.acknowledged, self.sent = {}, set()
        self.decided, self.swiped = {}, set()
        self.troubles = 0
        self.stopping = False
        tls = ssl.create_default_context(cafile=str(programs.ca))
        self._http = httpx.AsyncClient(
            base_url=f"https://localhost:{programs.port}",
            verify=tls,
            timeout=5.0,
            headers={"content-type": "application/json"},
        )

    async def line(self):
        """Pay or create cards in a loop; no unanswered request is abandoned."""
        while not self.stopping:
            if self.cards and self.random.random() < SWIPES:
                await self._swipe(str(ids.new()))
                continue
            path, body = self._card() if self.random.random() < CARDS else (PATH, self._payment())
            await self._ask(str(ids.new()), path, body)

    async def close(self):
        await self._http.aclose()

    def _card(self):
        account, _ = self.random.choice(self.pockets)
        body = msgspec.json.encode({"public_key": pem(unread_key())})
        return f"/api/v1/service-accounts/{account}/virtual-cards/", body

    def _payment(self):
        origin, there = self.random.choice(self.pockets)
        if self.random.random() < 0.5:
            origin, there = there, origin
        body = {
            "type": "INTERNAL_REALLOCATION",
            "from_account": {"id": str(origin), "type": "SERVICE_ACCOUNT"},
            "to_account": {"id": str(there), "type": "SERVICE_ACCOUNT"},
            "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": self.random.randint(10, 2_000) * 100},
            "async_mode": self.random.random() < 0.2,
        }
        return msgspec.json.encode(body)

    async def _ask(self, key, path, body):
        self.sent.add(key)
        made = await self._post(path, body, lambda: self._signed(key, path, body))
        if made is not None:
            self.cards += [made["card_id"]] if "card_id" in made else []
            self.acknowledged[key] = made.get("id") or made["card_id"]

    async def _swipe(self, key):
        """Request a decision as the card processor."""
        self.swiped.add(key)
        message = {
            "message_id": key,
            "type": "AUTHORIZATION",
            "card_id": self.random.choice(self.cards),
            "network_reference": key,
            "amount": self.random.randint(1, 200_00),
            "merchant": {"name": "Shop", "category_code": "5411"},
            "transmitted_at": "2025-06-02T13:00:00Z",
        }
        body = msgspec.json.encode(message)
        decided = await self._post(MESSAGES, body, lambda: self._of_the_processor(body))
        self.decided |= {} if decided is None else {key: decided}

    async def _post(self, path, body, headers):
        """Return the final response, or None."""
        late = monotonic() + QUIET_SECONDS
        while monotonic() < late:
            try:
                answer = await self._http.post(path, content=body, headers=headers())
            except (httpx.HTTPError, OSError, ssl.SSLError):
                self.troubles += 1
                await asyncio.sleep(0.1)
                continue
            if answer.is_success:
                return answer.json()
            # Only what may be tried again may happen here: nothing about the request is wrong.
            assert answer.status_code in {409, 429, 500, 502, 503, 504}, answer.text
            self.troubles += 1
            await asyncio.sleep(0.2)
        return None

    def _of_the_processor(self, body):
        timestamp = str(int(wall_now().timestamp()))
        signature = sign_message(self.card_key, timestamp, body)
        return {"host": "cards.localhost", "x-timestamp": timestamp, "x-signature": signature}

    def _signed(self, key, path, body):
        return {
            "host": f"{self.partner.slug}.localhost",
            "authorization": f"Bearer {self.partner.token}",
            "x-service-idempotency": key,
            "x-service-signature": sign_request(self.partner.secret, key, path, body=body),
        }


async def settle(programs):
    """A bank, a partner, and customers with two pockets each that hold money."""
    async with programs.found() as bank:
        partner = await new_partner(bank, rate=1_000_000, money=1_000_000)
        pockets = [await new_customer(bank, partner) for _ in range(CUSTOMERS)]
        return partner, pockets, processor_key(programs.settings, bank.seed)


async def new_customer(bank, partner):
    commands, by = EngineCommands(bank), {"partner_id": partner.partner_id}
    customer = await commands.new_customer(**by)
    places = [await commands.new_pocket(customer, weeks=weeks, reinvest=weeks, **by) for weeks in (4, 26)]
    for place in places:
        await commands.receive_money(place, 500_000_00)
    return [place.id for place in places]


async def let_time_pass(programs):
    """Advance the clock by hours so that the worker always has due work."""
    while True:
        await asyncio.sleep(0.5)
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            conn = await asyncpg.connect(programs.dsn, timeout=5)
            try:
                wall = wall_now()
                state = await read_clock(conn)
                assert state is not None
                await write_clock(conn, state.advance(CLOCK_STEP, wall))
            finally:
                await conn.close()


async def until_answered(client, programs):
    """Wait until a new request is answered, so the bank is up after the last kill."""
    known = len(client.acknowledged)
    await asyncio.to_thread(programs.until, lambda: len(client.acknowledged) > known)


@pytest.fixture
def programs(tmp_path):
    memory = Path("/dev/shm")
    place = memory / f"billfold-kills-{os.getpid()}" if memory.is_dir() else tmp_path
    place.mkdir(exist_ok=True)
    running = Processes(place)
    yield running
    running.close()
    if place != tmp_path:
        shutil.rmtree(place, ignore_errors=True)


async def test_killed_processes_neither_lose_nor_duplicate_acknowledged_commands(programs):
    print(f"BILLFOLD_KILLS_SEED={SEED}")
    partner, pockets, card_key = await settle(programs)
    for name in (SERVE, WORKER):
        programs.start(name)
    await asyncio.to_thread(programs.await_healthy)
    client = Client(programs, partner, pockets, card_key)
    clock = asyncio.create_task(let_time_pass(programs))
    lines = [asyncio.create_task(client.line()) for _ in range(LINES)]
    for number in range(KILLS):
        await until_answered(client, programs)
        await asyncio.sleep(client.random.uniform(*PAUSE))
        name = (SERVE, WORKER, POSTGRES)[number % 3]
        await asyncio.to_thread(programs.kill, name, whole=number % WHOLE_EVERY == 0)
        for line in lines:
            assert not line.done() or line.exception() is None, line.exception()
    await until_answered(client, programs)
    clock.cancel()
    client.stopping = True
    await asyncio.gather(*lines)
    await client.close()
    await must_have_happened_once(programs, client)


async def must_have_happened_once(programs, client):
    """Compare the client's list with the bank's log."""
    conn = await asyncpg.connect(programs.dsn)
    late = monotonic() + QUIET_SECONDS
    while await conn.fetchval("SELECT count(*) FROM transfer WHERE status = 'PENDING'"):
        assert monotonic() < late, "the worker does not carry out what waits"
        programs.look_after()
        await asyncio.sleep(0.2)
    await asyncio.to_thread(programs.terminate)
    rows = await conn.fetch(
        "SELECT key::text, coalesce(outcome->>'transfer_id', outcome->>'card_id') AS id FROM command"
        " WHERE kind = 'CreateVirtualCard' OR (kind = 'TransferOnUs' AND caller <> 'pending-transfer')"
    )
    happened = [row["key"] for row in rows]
    assert len(happened) == len(set(happened))
    assert set(happened) <= client.sent
    assert {row["key"]: row["id"] for row in rows if row["key"] in client.acknowledged} == (client.acknowledged)
    made = await conn.fetch("SELECT transfer_id::text FROM transfer UNION ALL SELECT card_id::text FROM card")
    assert sorted(row[0] for row in made) == sorted(row["id"] for row in rows)
    cards = [row["card_id"] for row in await conn.fetch("SELECT card_id::text FROM card")]
    vault = CardVault(programs.state_dir / "card_processor")
    assert cards
    assert all(map(vault.find, cards))
    await must_have_decided_once(conn, client)
    assert len(client.acknowledged) > 2 * KILLS
    assert client.troubles > 0
    report = await verify_bank(conn)
    await conn.close()
    assert report.is_clean, report.findings
    print(
        f"{KILLS} kills, {len(client.acknowledged)} acknowledged,"
        f" {len(client.sent) - len(client.acknowledged)} not, {client.troubles} asked again"
    )


async def must_have_decided_once(conn, client):
    """Compare the decisions that the card processor received; late ones must be declines."""
    rows = await conn.fetch(
        "SELECT key::text, outcome->>'decision' AS decision, outcome->>'authorization_id' AS id FROM command"
        " WHERE kind = 'AuthorizeCard'"
    )
    decided = {row["key"]: (row["decision"], row["id"]) for row in rows}
    assert len(decided) == len(rows)
    assert set(decided) <= client.swiped
    answered = {
        key: (each["decision"], each["authorization_id"])
        for key, each in client.decided.items()
        if each["reason"] != "TIMED_OUT"
    }
    assert {key: decided.get(key) for key in answered} == answered
    assert any(decision == "APPROVED" for decision, _ in answered.values())
