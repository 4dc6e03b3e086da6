"""The processes of a simulated bank: servers and workers that share a database, and die."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

from typing_extensions import override

from billfold.accounts.customers.partner_customers import make_partner
from billfold.apis.customer_api import CustomerApi
from billfold.bills.rules.market import Market
from billfold.events.webhooks import worker as webhooks
from billfold.identity.partners import credentials
from billfold.ledger.bank import Bank
from billfold.payments.cards.authorizations.messages import CardProcessorApi
from billfold.platform.clock import wall_now
from billfold.platform.settings.settings import Settings
from billfold.sandbox.routes.operations import build_sandbox_app, open_sandbox
from billfold.wiring import open_bank, scheduled_jobs
from billfold.wiring.worker import Worker
from simulation.database import SimulatedPool
from simulation.faults import Faults
from simulation.loop import Process, SimulationLoop, current_process
from simulation.postgres import Postgres

START_SECONDS = 1.0
PARTNER_HOST, CUSTOMER_HOST, CARD_HOST = "localhost", "api.localhost", "cards.localhost"
CARD_KEY = bytes(range(32, 64))
"""With which the card processor signs."""
POLL_SECONDS, QUIET_POLL_SECONDS = 3.0, 10.0
"""Workers look for work less often than real ones, and seldom in the end: most statements would find nothing."""


@dataclass
class Credentials:
    """The name of a partner, its token and the secret that it signs with."""

    slug: str
    token: str
    secret: str


async def found(settings: Settings, dsn: str) -> tuple[Credentials, Market]:
    """Create the bank and its first partner, before the simulation begins."""
    await open_bank.initialize_database(settings, dsn)
    async with open_bank.open_bank(settings, dsn) as bank:
        made = await make_partner(bank, "acme", "Acme", "acme-app", ("wires",))
        places = made.places
        async with bank.pool.acquire() as conn:
            await conn.execute("UPDATE partner SET rate_per_minute = 100000, money_per_minute = 100000")
            token, _ = await credentials.issue_token(
                conn, partner_id=places.partner_id, user_id=places.user_id, now=wall_now()
            )
        return Credentials("acme", token, made.shared_secret), bank.market


class World:
    """The database, the settings and what all processes share."""

    def __init__(
        self, loop: SimulationLoop, postgres: Postgres, faults: Faults, settings: Settings, market: Market
    ) -> None:
        self.loop, self.postgres, self.faults, self.settings = loop, postgres, faults, settings
        wiring: Any = open_bank
        wiring.create_pool = self._create_pool
        wiring.load_market = self._load_market
        self.poll_seconds = POLL_SECONDS
        worker, dispatcher, wait = cast("Any", Worker), cast("Any", webhooks), webhooks.wait_or_stop
        worker._pause = lambda _, stop, seconds: wait(stop, max(seconds, self.poll_seconds))
        dispatcher.wait_or_stop = lambda stop, _: wait(stop, self.poll_seconds)
        self.market = market

    async def _create_pool(self, dsn: str, *, max_size: int, **_: Any) -> SimulatedPool:
        pool = SimulatedPool(self.postgres, self.faults, size=max_size)
        pools = current_process.get().__dict__.setdefault("pools", [])
        pools.append(pool)
        return pool

    async def _load_market(self, *_: Any, **__: Any) -> Market:
        """Return the market that no simulated command changes: to load it takes a second."""
        return self.market


class Server:
    """A process that is started, dies and is started again with nothing in memory."""

    is_api = True

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.deaths = 0
        self.process: Process | None = None
        self.apps: dict[str, Any] = {}
        self._api = build_sandbox_app() if self.is_api else None
        self._customer_api = CustomerApi() if self.is_api else None
        self._cards = CardProcessorApi() if self.is_api else None
        """Built once, which takes as long as a whole life; opening the bank behind it leaves nothing of the former."""
        self._asked: list[asyncio.Future[tuple[int, bytes]]] = []

    def start(self) -> None:
        """Start a new process, which opens the bank."""
        self.process = Process(f"{self.name}.{self.deaths}")
        self.world.loop.start(self.process, self._run())

    def kill(self) -> None:
        """End it at once: none of its callbacks runs again, and the server ends its sessions."""
        assert self.process is not None
        self.process.is_dead, self.apps = True, {}
        self.deaths += 1
        for told in self._asked:
            if not told.done():
                told.set_exception(ConnectionResetError())
        self._asked.clear()
        for pool in self.process.__dict__.get("pools", ()):
            pool.terminate()

    async def _run(self) -> None:
        while True:
            try:
                async with open_bank.open_bank(self.world.settings, "simulated") as bank:
                    await self.serve(bank)
            except Exception as error:  # noqa: BLE001 - a supervisor starts it again, whatever it was
                self.world.faults.happened[f"start failed: {type(error).__name__}"] += 1
            await asyncio.sleep(START_SECONDS)

    async def serve(self, bank: Bank) -> None:
        """Answer requests until the process ends."""
        assert self._api is not None
        assert self._customer_api is not None
        open_sandbox(self._api, bank)
        assert self._cards is not None
        self._customer_api.open_bank(bank)
        self._cards.open(bank, None)
        self.apps = {PARTNER_HOST: self._api, CUSTOMER_HOST: self._customer_api, CARD_HOST: self._cards}
        await asyncio.Event().wait()

    async def answer(self, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        """Answer one request inside the process. Raises ConnectionError if nobody listens."""
        if not self.apps or self.process is None:
            raise ConnectionRefusedError
        told: asyncio.Future[tuple[int, bytes]] = self.world.loop.create_future()
        self.world.loop.start(self.process, _call(self.apps[scope["server"][0]], scope, body, told))
        self._asked.append(told)
        return await told


async def _call(app: Any, scope: dict[str, Any], body: bytes, told: asyncio.Future[tuple[int, bytes]]) -> None:
    parts: list[bytes] = []
    status = 0
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        parts.append(message.get("body", b""))

    await app(scope, receive, send)
    if not told.done():
        told.set_result((status, b"".join(parts)))


class WorkServer(Server):
    """`billfold worker`."""

    is_api = False

    @override
    async def serve(self, bank: Bank) -> None:
        """Do the bank's work."""
        await scheduled_jobs.run_worker(bank, asyncio.Event())
