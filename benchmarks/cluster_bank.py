"""The bank of a drill on a faulty cluster: founded, served, lived with by clients, and judged by oracles."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import asyncpg

from benchmarks.cluster_clients import ClusterLife, Heard, Hook, HttpServer, Network, key_text, same
from benchmarks.cluster_servers import COORDINATOR, WORKERS
from benchmarks.failover import say
from benchmarks.server import free_ports
from billfold.cli.python_process import python_command
from billfold.events.kinds import PARTNER_KINDS
from billfold.migrations import distribution, runner
from billfold.payments.crypto.chains import LOCAL_CHAINS
from billfold.platform.clock import ClockState, monotonic, wall_now
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Connection, connect
from billfold.platform.settings.settings import Settings
from billfold.sandbox.chain.launch import local_chain_file, provision_signer
from billfold.wiring.cli.serve import child_command_line
from billfold.wiring.cli_context import Wiring
from billfold.wiring.open_bank import open_bank
from simulation import oracles
from simulation.customers import Client
from simulation.faults import Faults
from simulation.loop import SimulationLoop
from simulation.members import found_teams
from simulation.processes import found

if TYPE_CHECKING:
    from benchmarks.cluster_faults import Drill

LINES, PLACES, JOINING = 64, 40, 16
SERVE, WORK = "serve", "worker"
SEED = "the seed of a bank under faults"
QUIET_SECONDS, AGAIN, DAY_SECONDS = 420.0, 500, 120
NOT_SENT = ("transfers.on-us", "pocket", "portal")
"""The kinds of events that are not sent: there are too many."""
_ROWS = "SELECT batch_id::text, row_no, object_id::text FROM batch_row WHERE state = 'COMPLETED'"
_EVENTS = """
SELECT event_id::text FROM event_sequence s JOIN event e USING (event_id)
 WHERE s.partner_sequence IS NOT NULL AND s.kind = ANY($1)
   AND e.xid >= (SELECT min(enabled_since_xid) FROM subscription)
"""
_TWICE = "SELECT count(*) - count(DISTINCT event_id) FROM event"


class Bank:
    """The bank of a drill: founded, served, lived with, and judged."""

    def __init__(self, drill: Drill, folder: Path, seed: str) -> None:
        self.drill, self.seed = drill, seed
        self.dsn, self.is_wrong = "", False
        self.folder = folder / "bank"
        self.folder.mkdir()
        self.ports = free_ports(3)
        self.heard, self.hook = Heard(), Hook()
        self.model = oracles.Model()
        self.clock: ClockState | None = None
        Client.heard = self.heard

    def settings(self) -> Settings:
        """Return the settings of every process."""
        return replace(
            Settings(),
            state_dir=self.folder,
            database_url=self.dsn,
            seed=SEED.encode(),
            behind_proxy=True,
        )

    async def found(self) -> None:
        """Make the cluster and the bank."""
        drill = self.drill
        await drill.servers.start()
        self.dsn = drill.servers.address(COORDINATOR)
        conn = await connect(self.dsn)
        await runner.up(conn)
        await distribution.distribute(conn)
        await conn.close()
        say("distributed")
        wallet = await provision_signer(self.folder)
        chain = self.folder / LOCAL_CHAINS
        chain.parent.mkdir()
        chain.write_text(local_chain_file(self.ports[2]))
        words = python_command("-m", "billfold.sandbox.chain", str(chain.parent), str(self.ports[2]), wallet)
        drill.commands["chain"] = words, dict(os.environ)
        drill.start("chain")
        credentials, _ = await found(self.settings(), self.dsn)
        await drill.servers.run(COORDINATOR, "UPDATE partner_token SET expires_at = now() + '1 day'::interval")
        random = Random(f"life {self.seed}")
        faults = Faults(SimulationLoop(random), random, rate=0.0)
        self.client = Client([HttpServer(self.ports[0])], credentials, faults, random)
        self.life = ClusterLife(self.client, self.model, random, lines=LINES, places_max=PLACES)
        self.life.cards, self.life.wallets = {}, {}
        self.life.network = Network(self.client, self.model, self.folder / "rails", self.now)
        async with open_bank(self.settings(), self.dsn) as bank, bank.pool.acquire() as inside:
            self.clock = await read_clock(inside)
            teams = await found_teams(bank, await inside.fetchval("SELECT partner_id FROM partner"))
            await self.life.sign_in(inside, teams, self.settings().customer_origin)

    def now(self) -> Any:
        """Return the time of the bank."""
        assert self.clock is not None
        return self.clock.at(wall_now())

    def serve(self) -> None:
        """Start a server and a worker."""
        environment = Wiring(dict(os.environ)).environment(
            self.settings(),
            self.dsn,
            seed=SEED,
            log_level="WARNING",
            port=self.ports[0],
            http_port=self.ports[1],
            behind_proxy="yes",
            trusted_proxies="127.0.0.1",
            card_processor_key=key_text(),
            usage_limits="emails.recipient=1000000",
            webhook_allowed_networks="127.0.0.0/8",
        )
        for name in (SERVE, WORK):
            self.drill.commands[name] = child_command_line(name), environment
            self.drill.start(name)

    async def live(self, plan: list[Any], commands: int, minutes: float) -> None:
        """Let clients ask until all faults are played and enough is acknowledged; then let everything come to rest."""
        drill = self.drill
        (port,) = free_ports(1)
        await asyncio.start_server(self.hook.serve, "127.0.0.1", port)
        self.kinds = [each for each in PARTNER_KINDS if not each.startswith(NOT_SENT)]
        body: dict[str, Any] = {"url": f"http://127.0.0.1:{port}/", "events": self.kinds, "shared_secret": "s" * 32}
        body["retry_policy"] = {
            "retry_on_status_codes": [],
            "backoff_coefficient": 1,
            "maximum_attempts": 20,
            "initial_interval_seconds": 30,
            "maximum_interval_seconds": 30,
        }
        answer = await self.client.ask("POST", "/api/v1/subscriptions/", body)
        assert answer.status == HTTPStatus.CREATED, answer
        say("served")
        until = monotonic() + minutes * 60
        await asyncio.gather(*(self._join() for _ in range(JOINING)))
        await self.life.link()
        lines = [asyncio.create_task(self._line()) for _ in range(LINES)]
        say(f"{len(self.life.places)} Pockets; faults begin")
        drill.told, drill.progress = self.told, self.acknowledged  # type: ignore[method-assign]
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, drill.end.set)
        moving = asyncio.create_task(drill.move())
        playing = asyncio.create_task(drill.faults(plan, commands, until))
        days = asyncio.create_task(self._days())
        await playing
        while self.acknowledged() < commands and monotonic() < until and not drill.end.is_set():
            await asyncio.sleep(1)
        drill.ended = True
        days.cancel()
        await asyncio.gather(*lines, moving)
        await self.life.network.settle()
        await self.life.network.wait_for_reports()
        await self._rest()

    def acknowledged(self) -> int:
        """Return how many commands are acknowledged, rows of batches among them."""
        return self.heard.acknowledged + self.life.rows["completed"]

    def told(self) -> str:
        """Say how far the clients are."""
        moves = dict(self.drill.moves)
        return f"acknowledged {self.acknowledged()}, of them {dict(self.life.rows)} rows of batches; moves {moves}"

    async def _join(self) -> None:
        while len(self.life.places) < PLACES:
            await self.life.join()

    async def _line(self) -> None:
        while not self.drill.ended:
            await self.life.step()

    async def _days(self) -> None:
        while True:
            await asyncio.sleep(DAY_SECONDS)
            await self.life.advance()
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                conn = await connect(self.dsn)
                self.clock = await read_clock(conn)
                await conn.close()

    async def _rest(self) -> None:
        until = monotonic() + QUIET_SECONDS
        conn = await connect(self.dsn)
        self.clock = await read_clock(conn)
        while (left := await oracles.late(conn, self.now(), set())) and monotonic() < until:
            await self.client.ask("POST", "/api/v1/sandbox/crypto/mine/", {"blocks": 3})
            await asyncio.sleep(5)
        say(f"rest after {monotonic() - until + QUIET_SECONDS:.0f} s, with {left or 'nothing'} left")
        await conn.close()

    async def judge(self) -> None:
        """Compare what was acknowledged with what is there, by every oracle; say what each found."""
        await self.check("the same answers again", self._ask_again())
        for name in (SERVE, WORK):
            self.drill.send(name, signal.SIGKILL)
        conn = await connect(self.dsn)
        await self.check("rows of batches", self._add_rows(conn))
        await self.check("money", oracles.check_money(conn, self.model))
        await self.check("nothing for free", oracles.check_nothing_for_free(conn))
        await self.check("cards", self.life.network.check(conn, self.now()))
        await self.check("webhooks", self._check_events(conn))
        await self.check("prepared transactions", self._check_prepared())
        await conn.close()

    async def check(self, what: str, checking: Coroutine[Any, Any, None]) -> None:
        """Say what an oracle found."""
        try:
            await checking
            say(f"{what}: right")
        except oracles.WrongBank as wrong:
            self.is_wrong = True
            say(f"{what}: WRONG: {wrong}")

    async def _ask_again(self) -> None:
        answers = [each for each in self.heard.answers.values() if each[0] is self.client]  # by idempotency keys
        for client, request, first in self.drill.random.sample(answers, min(AGAIN, len(answers))):
            again = await client.again(*request)
            oracles.require(same(first, again), f"{request}: first {first}, then {again}")

    async def _add_rows(self, conn: Connection) -> None:
        transfers = {(row[0], row[1]): row[2] for row in await conn.fetch(_ROWS)}
        for batch, sent in self.life.batches.items():
            for number, (origin, there, cents) in enumerate(sent, start=1):
                if (transfer := transfers.pop((batch, number), None)) is None:
                    continue
                if there:
                    self.model.transfers[transfer] = origin, there, cents
                else:
                    self.model.wires[transfer] = origin, cents
        oracles.require(not transfers, f"rows of batches that nobody sent: {list(transfers)[:3]}")

    async def _check_events(self, conn: Connection) -> None:
        oracles.require(not await conn.fetchval(_TWICE), "an event is there twice")
        raised = {row[0] for row in await conn.fetch(_EVENTS, self.kinds)}
        seen = self.hook.seen.keys()
        difference = f"not sent {len(raised - seen)}, not raised {len(seen - raised)}, of {len(seen)}"
        oracles.require(raised == seen, difference)
        oracles.require(not self.hook.changed, f"changed: {self.hook.changed[:3]}")
        say(f"webhooks: {len(seen)} events in {self.hook.received} deliveries")

    async def _check_prepared(self) -> None:
        for name in (COORDINATOR, *WORKERS):
            left = await self.drill.servers.run(name, "SELECT count(*) FROM pg_prepared_xacts")
            oracles.require(not left, f"{left} of {name}")

    def report(self) -> None:
        """Say what was played and acknowledged."""
        drill = self.drill
        kills = sum(count for fault, count in drill.counts.items() if fault.number == signal.SIGKILL)
        say(f"faults: {drill.counts.total()}, of them kills: {kills}")
        for fault, count in sorted(drill.counts.items()):
            say(f"  {fault.victim}, {fault.number.name}, {fault.moment}: {count}")
        say(f"moments seen: {dict(drill.moments)}; {len(self.life.batches)} batches; {self.told()}")
        for kind, count in self.heard.kinds.most_common():
            say(f"  {kind}: {count}")
        say(f"purchases: {len(self.life.network.purchases)}; refused: {dict(self.life.refused)}")
