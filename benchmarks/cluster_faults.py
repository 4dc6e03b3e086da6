"""A distributed bank under `kill -9` and SIGSTOP between the phases of its commits: is everything there, once?

`python -m benchmarks.cluster_faults BIN [--seed 1] [--faults 8] [--commands 0] [--minutes 60]`: BIN is the folder of the programs of a
PostgreSQL that has Citus. Each combination of victim, signal and moment of a commit is played `--faults` times (stops:
a quarter), and clients go on until `--commands` are acknowledged, while shards are moved. Two servers and two workers of
Billfold, a coordinator and two workers of Citus. The oracles are those of the simulation.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import psutil
import uvloop

from benchmarks import cluster_proxy
from benchmarks.cluster_clients import ClusterLife, Heard, Hook, HttpServer, Network, cycles, key_text, same
from benchmarks.cluster_proxy import Moment
from benchmarks.cluster_servers import COORDINATOR, WORKERS, ClusterServers
from benchmarks.failover import say
from benchmarks.server import free_ports
from benchmarks.worker_processes import WorkloadError
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

LINES, PLACES, JOINING = 64, 40, 16
THIS, OTHER, SERVE, WORK = "this node", "other node", "serve", "worker"
NODES, PROCESSES = (COORDINATOR, THIS, OTHER), (SERVE, WORK)
STOPS_PER_KILL, NODES_PER_PROCESS = 4, 4
AWAY_SECONDS, STOPPED_SECONDS, AIM_SECONDS, CALM_SECONDS, STARTING_SECONDS = (0.1, 1.0), (0.5, 4.0), 5.0, 6.0, 10.0
QUIET_SECONDS, AGAIN, TRIES, PROGRESS = 420.0, 500, 20, 10
MORE_SETTINGS = """
archive_mode = off
fsync = off
citus.recover_2pc_interval = 1s
citus.defer_shard_delete_interval = 1s
citus.shard_count = 4
citus.max_adaptive_executor_pool_size = 1
checkpoint_timeout = 1min
"""
_MOVE = """
SELECT citus_move_shard_placement(s.shardid, n.nodename, n.nodeport, m.nodename, m.nodeport, $1)
  FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)
  JOIN pg_dist_node m ON m.groupid NOT IN (0, n.groupid)
 WHERE s.logicalrelid = 'ledger_head'::regclass ORDER BY hashtext(s.shardid::text || $2) LIMIT 1
"""
_ROWS = "SELECT batch_id::text, row_no, object_id::text FROM batch_row WHERE state = 'COMPLETED'"
_EVENTS = """
SELECT event_id::text FROM event_sequence WHERE partner_sequence > $1 AND kind = ANY($2)
"""
_TWICE = "SELECT count(*) - count(DISTINCT event_id) FROM event"


class FaultyCluster(ClusterServers):
    """A cluster whose coordinator knows its workers by the ports of proxies."""

    def __init__(self, folder: Path, programs: Path, drill: Drill) -> None:
        super().__init__(folder, programs, MORE_SETTINGS)
        self._drill = drill
        self._starting = asyncio.Lock()

    async def add(self, name: str) -> None:
        """Join a worker by its proxy."""
        (port,) = free_ports(1)
        await cluster_proxy.listen(port, self.ports[name], lambda moment: self._drill.seen(name, moment))
        await self.run(COORDINATOR, f"SELECT citus_add_node('127.0.0.1', {port})")

    async def again(self, name: str) -> None:
        """Start a server that was killed, when the last of its processes has ended."""
        async with self._starting:
            for _ in range(TRIES):
                with suppress(WorkloadError):
                    return await asyncio.to_thread(self.run_server, name)
                await asyncio.sleep(1)
            return self.run_server(name)


class Drill:
    """The bank, its clients and its faults."""

    def __init__(self, folder: Path, programs: Path, seed: str) -> None:
        self.random = Random(f"faults {seed}")
        self.servers = FaultyCluster(folder, programs, self)
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.moments: Counter[str] = Counter()
        self.moves: Counter[str] = Counter()
        self.armed: tuple[str, ...] | None = None
        self.struck, self.end = asyncio.Event(), asyncio.Event()
        self.hit = ""
        self.ended = False
        self.down: set[str] = set()
        self.recovering: set[asyncio.Task[None]] = set()
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.commands: dict[str, tuple[Sequence[str], dict[str, str]]] = {}
        self.logs = folder / "logs"
        self.logs.mkdir()

    def seen(self, worker: str, moment: Moment) -> None:
        """Strike if this is the moment of the fault that is armed."""
        self.moments[moment] += 1
        if self.armed is None or self.armed[2] != moment:
            return
        victim, number, _ = self.armed
        other = next(each for each in WORKERS if each != worker)
        self.hit = {THIS: worker, OTHER: other}.get(victim, victim)
        if self.hit in self.down:
            return
        self.armed = None
        self.send(self.hit, signal.Signals[number])
        self.struck.set()

    def send(self, name: str, number: int) -> None:
        """Send a signal to a process and its children."""
        if name not in self.children:
            return self.servers.signal(name, number)
        process = psutil.Process(self.children[name].pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)

    def start(self, name: str) -> None:
        """Start a process of Billfold."""
        command, environment = self.commands[name]
        with (self.logs / f"{name}.log").open("ab") as log:
            self.children[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    async def faults(self, plan: list[tuple[str, ...]], until: float) -> None:
        """Play faults one after the other, each at its moment."""
        self.random.shuffle(plan)
        began = monotonic()
        while plan and monotonic() < until and not self.end.is_set():
            fault = plan.pop()
            self.struck.clear()
            self.armed = fault
            try:
                await asyncio.wait_for(self.struck.wait(), AIM_SECONDS)
            except TimeoutError:
                self.armed = None
                plan.insert(0, fault)
                continue
            recovering = asyncio.create_task(self.recover(self.hit, fault[1]))
            self.recovering.add(recovering)
            recovering.add_done_callback(self.recovering.discard)
            if self.hit not in self.children:
                await recovering
            self.counts[fault] += 1
            if self.counts.total() % 5 == 0:
                say(f"{monotonic() - began:.0f} s: {self.counts.total()} faults, moves {dict(self.moves)}, {self.told()}")
            await self.calm()

    async def calm(self) -> None:
        """Wait until clients have been answered again."""
        enough, until = self.progress() + PROGRESS, monotonic() + CALM_SECONDS
        while self.progress() < enough and monotonic() < until:
            await asyncio.sleep(0.1)

    def progress(self) -> int:
        """Return how much is acknowledged."""
        return 0

    def told(self) -> str:
        """Say how far the clients are."""
        return ""

    async def recover(self, name: str, number: str) -> None:
        """Start a victim again, or let it continue."""
        self.down.add(name)
        if number == "SIGSTOP":
            await asyncio.sleep(self.random.uniform(*STOPPED_SECONDS))
            self.send(name, signal.SIGCONT)
        else:
            await asyncio.sleep(self.random.uniform(*AWAY_SECONDS))
            if name in self.children:
                await asyncio.to_thread(self.children[name].wait)
                self.start(name)
                await asyncio.sleep(STARTING_SECONDS)
            else:
                await self.servers.again(name)
        self.down.discard(name)

    async def move(self) -> None:
        """Move groups of shards, one after the other."""
        while not self.ended:
            await asyncio.sleep(1)
            mode = self.random.choice(("force_logical", "block_writes"))
            try:
                await self.servers.run(COORDINATOR, _MOVE, mode, str(self.random.random()))
                self.moves[f"{mode} done"] += 1
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                self.moves[f"{mode} failed"] += 1
                (self.logs / "moves.log").open("a").write(f"{mode}: {error!r}\n")


class Bank:
    """The bank of a drill: founded, served, lived with, and judged."""

    def __init__(self, drill: Drill, folder: Path, seed: str) -> None:
        self.drill, self.seed = drill, seed
        self.dsn = ""
        self.folder = folder / "bank"
        self.folder.mkdir()
        self.ports = free_ports(3)
        self.heard, self.hook = Heard(), Hook()
        self.model = oracles.Model()
        self.clock: ClockState | None = None
        Client.heard = self.heard  # type: ignore[assignment]

    def settings(self) -> Settings:
        """Return the settings of every process."""
        return replace(
            Settings(),
            state_dir=self.folder,
            database_url=self.dsn,
            seed=b"the seed of a bank under faults",
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
        random = Random(f"life {self.seed}")
        faults = Faults(SimulationLoop(random), random, rate=0.0)
        self.client = Client([HttpServer(self.ports[0])], credentials, faults, random)
        self.life = ClusterLife(self.client, self.model, random, lines=LINES, places_max=PLACES)
        self.life.cards, self.life.wallets = {}, {}
        self.life.network = Network(self.client, self.model, self.folder / "rails", self.now)
        async with open_bank(self.settings(), self.dsn) as bank, bank.pool.acquire() as conn:
            self.clock = await read_clock(conn)
            teams = await found_teams(bank, await conn.fetchval("SELECT partner_id FROM partner"))
            await self.life.sign_in(conn, teams, self.settings().customer_origin)
            self.raised = await conn.fetchval("SELECT count(*) FROM event")
        self.teams = teams

    def now(self) -> Any:
        """Return the time of the bank."""
        assert self.clock is not None
        return self.clock.at(wall_now())

    def serve(self) -> None:
        """Start a server and a worker."""
        environment = Wiring(dict(os.environ)).environment(
            self.settings(),
            self.dsn,
            seed=self.settings().seed.decode(),
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

    async def live(self, plan: list[tuple[str, ...]], commands: int, minutes: float) -> None:
        """Let clients ask until all faults are played and enough is acknowledged; then let everything come to rest."""
        drill = self.drill
        (port,) = free_ports(1)
        await asyncio.start_server(self.hook.serve, "127.0.0.1", port)
        self.kinds = [each for each in PARTNER_KINDS if not each.startswith(("transfers.on-us", "pocket", "portal"))]
        body = {"url": f"http://127.0.0.1:{port}/", "events": self.kinds, "shared_secret": "s" * 32}
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
        lines = [asyncio.create_task(self._line()) for _ in range(LINES)]
        say(f"{len(self.life.places)} Pockets; faults begin")
        drill.told, drill.progress = self.told, self.acknowledged  # type: ignore[method-assign]
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, drill.end.set)
        moving = asyncio.create_task(drill.move())
        playing = asyncio.create_task(drill.faults(plan, until))
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
        return len(self.heard.answers) + self.life.rows.total()

    def told(self) -> str:
        """Say how far the clients are."""
        return f"acknowledged {self.acknowledged()}, of them rows {dict(self.life.rows)}; waiting {len(self.client.waiting)}"

    async def _join(self) -> None:
        while len(self.life.places) < PLACES:
            await self.life.join()

    async def _line(self) -> None:
        while not self.drill.ended:
            await self.life.step()

    async def _days(self) -> None:
        while True:
            await asyncio.sleep(120)
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
            say(f"{what}: WRONG: {wrong}")

    async def _ask_again(self) -> None:
        answers = list(self.heard.answers.values())
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
        raised = {row[0] for row in await conn.fetch(_EVENTS, self.raised, self.kinds)}
        seen = self.hook.seen.keys()
        oracles.require(raised == seen, f"not sent {len(raised - seen)}, not raised {len(seen - raised)} of {len(seen)}")
        oracles.require(not self.hook.changed, f"changed: {self.hook.changed[:3]}")
        say(f"webhooks: {len(seen)} events in {self.hook.received} deliveries")

    async def _check_prepared(self) -> None:
        for name in (COORDINATOR, *WORKERS):
            left = await self.drill.servers.run(name, "SELECT count(*) FROM pg_prepared_xacts")
            oracles.require(not left, f"{left} of {name}")

    def report(self) -> None:
        """Say what was played and acknowledged."""
        drill = self.drill
        kills = sum(count for fault, count in drill.counts.items() if fault[1] == "SIGKILL")
        say(f"faults: {drill.counts.total()}, of them kills: {kills}")
        for fault, count in sorted(drill.counts.items()):
            say(f"  {', '.join(fault)}: {count}")
        say(f"moments seen: {dict(drill.moments)}; moves: {dict(drill.moves)}")
        say(f"acknowledged: {self.acknowledged()}, of them rows of {len(self.life.batches)} batches {dict(self.life.rows)}")
        for kind, count in self.heard.kinds.most_common():
            say(f"  {kind}: {count}")
        say(f"purchases: {len(self.life.network.purchases)}; refused: {dict(self.life.refused)}")


async def play(drill: Drill, bank: Bank, plan: list[tuple[str, ...]], told: argparse.Namespace) -> None:
    """Found the bank, live through the faults, and judge."""
    await bank.found()
    bank.serve()
    try:
        await bank.live(plan, told.commands, told.minutes)
        await bank.judge()
    finally:
        bank.report()
    environment = drill.commands[SERVE][1]
    verified = subprocess.run(child_command_line("verify"), env=environment, check=False, capture_output=True)
    say(f"verify: {'clean' if verified.returncode == 0 else verified.stdout.decode() + verified.stderr.decode()}")


def main() -> None:
    """Play the drill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--faults", type=int, default=8)
    parser.add_argument("--commands", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60)
    told = parser.parse_args()
    plan = []
    for victims, count in (NODES, told.faults), (PROCESSES, -(-told.faults // NODES_PER_PROCESS)):
        plan += cycles(count, victims, ("SIGKILL",), tuple(Moment))
        plan += cycles(-(-count // STOPS_PER_KILL), victims, ("SIGSTOP",), tuple(Moment))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cluster-faults-", ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        uvloop.run(run(folder, told, plan))


async def run(folder: Path, told: argparse.Namespace, plan: list[tuple[str, ...]]) -> None:
    """Play the drill in a folder, and end what it started."""
    drill = Drill(folder, told.programs, told.seed)
    bank = Bank(drill, folder, told.seed)
    try:
        await play(drill, bank, plan, told)
    finally:
        for name in drill.children:
            with suppress(psutil.NoSuchProcess, WorkloadError):
                drill.send(name, signal.SIGKILL)
        drill.servers.stop()


if __name__ == "__main__":
    sys.exit(main())
