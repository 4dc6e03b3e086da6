"""A distributed bank under `kill -9` and SIGSTOP between the phases of its commits: is everything there, once?

`python -m benchmarks.cluster_faults BIN [--seed 1] [--faults 24] [--commands 100000] [--minutes 60]`: BIN is the folder
of the programs of a PostgreSQL that has Citus. Each combination of victim, signal and moment of a commit is played
`--faults` times (stops and processes of Billfold: a quarter), and clients go on until `--commands` are acknowledged,
but not longer than `--minutes`, while shards are moved. SIGTERM ends the faults.
The oracles are those of the simulation.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

import asyncpg
import psutil
import uvloop
from typing_extensions import override

from benchmarks import cluster_proxy
from benchmarks.cluster_bank import SERVE, WORK, Bank
from benchmarks.cluster_proxy import Moment
from benchmarks.cluster_servers import COORDINATOR, WORKERS, ClusterServers
from benchmarks.failover import say
from benchmarks.server import free_ports
from benchmarks.worker_processes import WorkloadError
from billfold.platform.clock import monotonic
from billfold.wiring.cli.serve import child_command_line

THIS, OTHER = "this node", "other node"
NODES, PROCESSES = (COORDINATOR, THIS, OTHER), (SERVE, WORK)
BUSY = "(unavailable)"
SELDOM = 4
"""Stops, and faults of processes of Billfold, are so much rarer than kills of nodes."""
AWAY_SECONDS, STOPPED_SECONDS, AIM_SECONDS, CALM_SECONDS, STARTING_SECONDS = (0.1, 1.0), (0.5, 4.0), 4.0, 20.0, 10.0
TRIES, PROGRESS, SAY_EACH = 20, 5, 10
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
SELECT citus_move_shard_placement(s.shardid, n.nodename, n.nodeport, m.nodename, m.nodeport, 'force_logical')
  FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)
  JOIN pg_dist_node m ON m.groupid NOT IN (0, n.groupid)
 WHERE s.logicalrelid = 'ledger_head'::regclass ORDER BY hashtext(s.shardid::text || $1) LIMIT 1
"""


class Fault(NamedTuple):
    """A signal to a process at a moment of a commit."""

    victim: str
    number: signal.Signals
    moment: Moment


class FaultyCluster(ClusterServers):
    """A cluster whose coordinator knows its workers by the ports of proxies."""

    def __init__(self, folder: Path, programs: Path, drill: Drill) -> None:
        super().__init__(folder, programs, MORE_SETTINGS)
        self._drill = drill
        self._starting = asyncio.Lock()

    @override
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
        self.counts: Counter[Fault] = Counter()
        self.moments: Counter[str] = Counter()
        self.moves: Counter[str] = Counter()
        self.armed: Fault | None = None
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
        if self.armed is None or self.armed.moment != moment:
            return
        victim, number, _ = self.armed
        other = next(each for each in WORKERS if each != worker)
        self.hit = {THIS: worker, OTHER: other}.get(victim, victim)
        if self.hit in self.down:
            return
        self.armed = None
        self.send(self.hit, number)
        self.struck.set()

    def send(self, name: str, number: int) -> None:
        """Send a signal to a process and its children."""
        if name not in self.children:
            self.servers.signal(name, number)
            return
        process = psutil.Process(self.children[name].pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)

    def start(self, name: str) -> None:
        """Start a process of Billfold."""
        command, environment = self.commands[name]
        with (self.logs / f"{name}.log").open("ab") as log:
            self.children[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    async def faults(self, plan: list[Fault], commands: int, until: float) -> None:
        """Play faults one after the other, each at its moment, with as much acknowledged between them as is left."""
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
            recovering = asyncio.create_task(self.recover(self.hit, fault.number))
            self.recovering.add(recovering)
            recovering.add_done_callback(self.recovering.discard)
            if self.hit not in self.children:
                await recovering
            self.counts[fault] += 1
            if self.counts.total() % SAY_EACH == 0:
                say(f"{monotonic() - began:.0f} s: {self.counts.total()} faults; {self.told()}")
            await self.calm((commands - self.progress()) // (len(plan) + 1))

    async def calm(self, commands: int) -> None:
        """Wait until clients have been answered so often."""
        enough, until = self.progress() + max(commands, PROGRESS), monotonic() + CALM_SECONDS
        while self.progress() < enough and monotonic() < until:
            await asyncio.sleep(0.1)

    def progress(self) -> int:
        """Return how much is acknowledged."""
        return 0

    def told(self) -> str:
        """Say how far the clients are."""
        return ""

    async def recover(self, name: str, number: signal.Signals) -> None:
        """Start a victim again, or let it continue."""
        self.down.add(name)
        if number == signal.SIGSTOP:
            await asyncio.sleep(self.random.uniform(*STOPPED_SECONDS))
            self.send(name, signal.SIGCONT)
        else:
            await asyncio.sleep(self.random.uniform(*AWAY_SECONDS))
            if name in self.children:
                await asyncio.to_thread(self.children[name].wait)
                while self.children[name].poll() is not None:  # one that no database answers ends as well
                    self.start(name)
                    await asyncio.sleep(STARTING_SECONDS)
            else:
                await self.servers.again(name)
        self.down.discard(name)

    async def move(self) -> None:
        """Move groups of shards, one after the other."""
        while not self.ended:
            await asyncio.sleep(1)
            try:
                # As docs/operate/distributed.md says: otherwise what a failure has left prepared may be lost.
                await self.servers.run(COORDINATOR, "SELECT recover_prepared_transactions()")
                await self.servers.run(COORDINATOR, _MOVE, str(self.random.random()))
                self.moves["done"] += 1
            except (OSError, UnicodeDecodeError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                self.moves["failed"] += 1
                (self.logs / "moves.log").open("a").write(f"{error!r}\n")


async def play(drill: Drill, bank: Bank, plan: list[Fault], told: argparse.Namespace) -> None:
    """Found the bank, live through the faults, and judge."""
    await bank.found()
    bank.serve()
    try:
        await bank.live(plan, told.commands, told.minutes)
        await bank.judge()
    finally:
        bank.report()
    environment, said = drill.commands[SERVE][1], BUSY
    for _ in range(TRIES):
        command = child_command_line("verify")
        # In a thread: the nodes are asked through the proxies of this process.
        verified = await asyncio.to_thread(subprocess.run, command, env=environment, check=False, capture_output=True)
        said = (verified.stdout + verified.stderr).decode() if verified.returncode else "clean"
        if BUSY not in said:
            break
    bank.is_wrong |= said != "clean"
    say(f"verify: {said}")


def main() -> None:
    """Play the drill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--faults", type=int, default=24)
    parser.add_argument("--commands", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60)
    told = parser.parse_args()
    plan: list[Fault] = []
    for victims, count in (NODES, told.faults), (PROCESSES, -(-told.faults // SELDOM)):
        for number, times in (signal.SIGKILL, count), (signal.SIGSTOP, -(-count // SELDOM)):
            plan += [Fault(*each) for each in product(victims, (number,), Moment)] * times
    folder = Path(tempfile.mkdtemp(prefix="cluster-faults-"))
    folder.chmod(0o755)
    if uvloop.run(run(folder, told, plan)):
        shutil.rmtree(folder)
    else:
        say(f"the nodes and the logs are kept in {folder}")


async def run(folder: Path, told: argparse.Namespace, plan: list[Fault]) -> bool:
    """Play the drill in a folder, and end what it started; tell whether everything was right."""
    drill = Drill(folder, told.programs, told.seed)
    bank = Bank(drill, folder, told.seed)
    try:
        await play(drill, bank, plan, told)
    finally:
        for name in drill.children:
            with suppress(psutil.NoSuchProcess, WorkloadError):
                drill.send(name, signal.SIGKILL)
        drill.servers.stop()
    return not bank.is_wrong


if __name__ == "__main__":
    main()
