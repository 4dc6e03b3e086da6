"""Operation of a distributed bank under signed transfers: is every acknowledged transfer there, once?

`python -m benchmarks.cluster_drill restore BIN`: all nodes are lost, and restored to one restore point. `failover`: a
worker, then the coordinator is killed, and its standby promoted. `rebalance`: shards are moved, a worker is added, and
shards are moved to it. `upgrade`: this release migrates and takes over from the one before, in whose checkout
PYTHONPATH has to be. BIN is the folder of the programs of a PostgreSQL that has Citus.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, STDOUT
from time import sleep

import asyncpg
from tests.migrations.test_runner import CATALOGUE

from benchmarks import failover
from benchmarks.cluster_servers import ADDED, COORDINATOR, WORKERS, ClusterServers
from benchmarks.dataset import Location
from benchmarks.failover import AWAY_SECONDS, CALM_SECONDS, MANAGEMENT_PORT, PORT, Transfers, say
from benchmarks.server import free_ports
from benchmarks.throwaway_server import migrate
from billfold.platform.clock import monotonic
from billfold.platform.settings.validation import PREFIX
from billfold.wiring.cli.serve import child_command_line
from billfold.wiring.cli_context import Wiring

POINTS = 5
KILLED_AFTER_SECONDS, READING_SECONDS = 1.0, 45.0
_MOVED = """
SELECT citus_move_shard_placement(s.shardid, '127.0.0.1', $1, '127.0.0.1', $2, 'force_logical')
  FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)
 WHERE s.logicalrelid = 'ledger_head'::regclass AND n.nodeport = $1 ORDER BY s.shardid LIMIT 1
"""
_NODE_ID = "SELECT nodeid FROM pg_dist_node WHERE nodeport = $1 AND noderole = 'primary'"
_SPREAD = """
SELECT string_agg(nodeport || ': ' || shards, ', ') FROM (
  SELECT n.nodeport, count(p.shardid) AS shards FROM pg_dist_node n JOIN pg_dist_placement p USING (groupid)
    JOIN pg_dist_shard s USING (shardid) WHERE s.logicalrelid = 'ledger_head'::regclass GROUP BY 1 ORDER BY 1) spread
"""
_A_SHARD = "SELECT relname FROM pg_class WHERE relname ~ '^transfer_[0-9]+$' LIMIT 1"
# Added to a table that is distributed, a column comes last, and a constraint has the number of the shard in its name.
_SCHEMA = rf"""
SELECT array_agg(regexp_replace(c::text, '^.column,[0-9]+|_[0-9]{{6}}\M| NOT VALID', '', 'g')) FROM ({CATALOGUE}) AS c
"""  # noqa: S608 - a constant
_EVENTS = """
SELECT count(*) || ' events, ' || pg_total_relation_size('event') / count(*) || ' bytes each; ' ||
       (SELECT count(*) FROM audit_entry) || ' audit entries, ' ||
       pg_total_relation_size('audit_entry') / (SELECT count(*) FROM audit_entry) || ' bytes each'
  FROM event
"""


class Drill:
    """A distributed bank under load, and what happens to it."""

    def __init__(self, servers: ClusterServers, load: Transfers, environment: dict[str, str]) -> None:
        self.servers = servers
        self.load = load
        self.environment = environment
        self.processes = ExitStack()
        self.sending: asyncio.Task[None] | None = None

    async def restore(self) -> str:
        """Lose everything after some restore points, and restore the middle one; say what it has to have."""
        for name in (COORDINATOR, *WORKERS):
            self.servers.back_up(name)
        seconds, acknowledged = [], list[set[str]]()
        for nth in range(POINTS):
            await asyncio.sleep(1)
            acknowledged.append(set(self.load.acknowledged))
            began = monotonic()
            await self.servers.run(COORDINATOR, "SELECT create_restore_point($1)", f"drill-{nth}")
            seconds.append(monotonic() - began)
        say(f"restore points took {', '.join(f'{each * 1000:.0f}' for each in seconds)} ms")
        await asyncio.sleep(CALM_SECONDS)
        await self.end_load()
        self.processes.close()
        await self.servers.archive_all()
        for name in (COORDINATOR, *WORKERS):
            self.servers.kill(name)
        began, point = monotonic(), POINTS // 2
        for name in (COORDINATOR, *WORKERS):
            await asyncio.to_thread(self.servers.restore, name, f"drill-{point}")
        recovered = await self.servers.run(COORDINATOR, "SELECT recover_prepared_transactions()")
        say(f"restored to drill-{point} in {monotonic() - began:.1f} s; {recovered} prepared transactions ended")
        total = len(self.load.acknowledged)
        self.load.acknowledged = {key: self.load.acknowledged[key] for key in acknowledged[point]}
        return f"of {total} acknowledged transfers {len(acknowledged[point])} were so before the point"

    async def failover(self) -> str:
        """Kill a worker and the coordinator, one after the other, and promote their standbys."""
        for name in (WORKERS[0], COORDINATOR):
            lost = self.servers.ports[name]
            node_id = await self.servers.run(COORDINATOR, _NODE_ID, lost)
            self.load.longest = 0.0
            self.servers.kill(name)
            await asyncio.sleep(AWAY_SECONDS)
            began = monotonic()
            standby = await asyncio.to_thread(self.servers.promote, name)
            port = self.servers.ports[standby]
            if name == COORDINATOR:
                await self.servers.run(standby, "SELECT citus_set_coordinator_host('127.0.0.1', $1)", port)
            else:
                named = "SELECT citus_update_node($1, '127.0.0.1', $2, force => true, lock_cooldown => 1000)"
                await self.servers.run(COORDINATOR, named, node_id, port)
            said = monotonic() - began
            await asyncio.sleep(2 * CALM_SECONDS)
            say(
                f"{name}: promoted and named in {said:.1f} s; longest without a transfer {self.load.longest:.1f} s,"
                f" of it {AWAY_SECONDS} without a primary"
            )
        await self.end_load()
        return ""

    async def rebalance(self) -> str:
        """Move a group of shards, add a worker, and spread the shards again."""
        ports = self.servers.ports
        await self.timed("a group of shards moved", _MOVED, ports[WORKERS[0]], ports[WORKERS[1]])
        began, self.load.longest = monotonic(), 0.0
        await self.servers.make(ADDED)
        await self.servers.add(ADDED)
        say(f"worker added in {monotonic() - began:.1f} s; longest without a transfer {self.load.longest:.1f} s")
        await self.timed("rebalanced", "SELECT rebalance_table_shards(shard_transfer_mode => 'force_logical')")
        say(f"shard groups by port: {await self.servers.run(COORDINATOR, _SPREAD)}")
        say(f"event log: {await self.servers.run(COORDINATOR, _EVENTS)}")
        await self.end_load()
        return ""

    async def upgrade(self) -> str:
        """Migrate while the release before serves, killed later each time until it is done; then take over from it."""
        del self.environment["PYTHONPATH"]
        reading, after = asyncio.create_task(self.read()), KILLED_AFTER_SECONDS
        while await self.migrate(after):
            after *= 1.5
        await reading
        self.environment |= {f"{PREFIX}PORT": str(PORT + 1), f"{PREFIX}HTTP_PORT": str(PORT + 20_001)}
        with self.processes.pop_all() as older:
            self.load.longest = 0.0
            await asyncio.to_thread(self.start, MANAGEMENT_PORT + 1)
            self.load.ports = [PORT, PORT + 1]
            await asyncio.sleep(2 * CALM_SECONDS)
            say(f"both releases serve; longest without a transfer {self.load.longest:.1f} s")
            self.load.longest, self.load.ports = 0.0, [PORT + 1]
            await asyncio.to_thread(older.close)
        await asyncio.sleep(CALM_SECONDS)
        say(f"the release before has ended; longest without a transfer {self.load.longest:.1f} s")
        await self.end_load()
        return await self.compare_schema()

    async def read(self) -> None:
        """Hold locks of a reader on a worker, for which changes of a table wait."""
        conn = await asyncpg.connect(self.servers.address(WORKERS[0]))
        async with conn.transaction():
            await conn.execute(f"SELECT 1 FROM {await conn.fetchval(_A_SHARD)} LIMIT 1")  # noqa: S608 - of the catalogue
            await asyncio.sleep(READING_SECONDS)
        await conn.close()

    async def migrate(self, killed_after: float) -> bool:
        """Migrate, and say what transfers saw of it; return whether it was killed."""
        began, self.load.longest = monotonic(), 0.0
        command = child_command_line("migrate", "up")
        process = await asyncio.create_subprocess_exec(*command, env=self.environment, stdout=PIPE, stderr=STDOUT)
        assert process.stdout
        first = await process.stdout.readline()
        ending = asyncio.create_task(process.communicate())
        await asyncio.wait([ending], timeout=killed_after)
        if not ending.done():
            process.kill()
        output = first + (await ending)[0]
        took = monotonic() - began
        await asyncio.sleep(1)
        say(f"migrate up ended with {process.returncode} in {took:.1f} s: {'; '.join(output.decode().splitlines())}")
        say(f"longest without a transfer {self.load.longest:.1f} s; answers {dict(self.load.counts)}")
        return process.returncode == -signal.SIGKILL

    async def compare_schema(self) -> str:
        """Say on which nodes the schema is not that of a new distributed bank."""
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            folder = Path(name)
            folder.chmod(0o755)
            new = ClusterServers(folder, self.servers.programs)
            stack.callback(new.stop)
            await new.start()
            own = {f"{PREFIX}DATABASE_URL": new.address(COORDINATOR), f"{PREFIX}STATE_DIR": str(folder)}
            migrated = child_command_line("migrate", "up", "--distributed")
            subprocess.run(migrated, env=self.environment | own, check=True, stdout=subprocess.DEVNULL)
            found = [[await each.run(node, _SCHEMA) for node in each.names] for each in (self.servers, new)]
        nodes = [(Counter(ours), Counter(theirs)) for ours, theirs in zip(*found, strict=True)]
        differ = [(ours - theirs) + (theirs - ours) for ours, theirs in nodes]
        return f"rows of schema {[len(each) for each in found[0]]}, other than in a new bank {differ};"

    def start(self, management_port: int = MANAGEMENT_PORT) -> None:
        """Start `serve` and `worker`, and return when they are ready."""
        managed = {f"{PREFIX}MANAGEMENT_PORT": str(management_port)}
        failover.start(self.processes, "serve", self.environment | managed)
        failover.start(self.processes, "worker", self.environment)
        failover.await_ready(management_port)

    async def timed(self, what: str, statement: str, *values: int) -> None:
        """Run a statement on the coordinator; say how long it took, and what transfers saw of it."""
        began, self.load.longest = monotonic(), 0.0
        await self.servers.run(COORDINATOR, statement, *values)
        took = monotonic() - began
        await asyncio.sleep(CALM_SECONDS)
        say(f"{what} in {took:.1f} s; longest without a transfer {self.load.longest:.1f} s")

    async def end_load(self) -> None:
        """End the load, when what waits for an answer has one."""
        self.load.ended = True
        assert self.sending
        await self.sending

    async def play(self, action: Callable[[], Awaitable[str]]) -> str:
        """Do something under load."""
        self.sending = asyncio.create_task(self.load.run())
        await asyncio.sleep(CALM_SECONDS)
        return await action()


async def found(servers: ClusterServers, location: Location, name: str) -> Transfers:
    """Make the cluster and a bank on it, with standbys where they are promoted."""
    await servers.start()
    await migrate(location.dsn, is_distributed=True)
    credentials, payees = await failover.prepare(location)
    if name == "failover":
        for each in (WORKERS[0], COORDINATOR):
            await servers.replicate(each)
    return Transfers(credentials, payees)


def main() -> None:
    """Play a drill, and compare what was acknowledged with what is there."""
    name, programs = sys.argv[1:]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        servers = ClusterServers(folder, Path(programs))
        stack.callback(servers.stop)
        hosts = (COORDINATOR, f"{COORDINATOR}-standby") if name == "failover" else (COORDINATOR,)
        servers.ports = dict(zip(hosts, free_ports(len(hosts)), strict=True))
        location = Location(servers.address(*hosts), folder / "bank")
        location.state_dir.mkdir()
        load = asyncio.run(found(servers, location, name))
        environment = Wiring(dict(os.environ)).environment(
            location.settings(),
            location.dsn,
            log_level="ERROR",
            port=PORT,
            http_port=PORT + 20_000,
            behind_proxy="yes",
            trusted_proxies="127.0.0.1",
        )
        drill = Drill(servers, load, environment)
        with drill.processes:
            drill.start()
            sleep(1)
            said = asyncio.run(drill.play(getattr(drill, name)))
        say(f"{said} {asyncio.run(failover.compare(location.dsn, load.acknowledged))}; answers {dict(load.counts)}")
        verified = subprocess.run(child_command_line("verify"), env=environment, check=False, capture_output=True)
        say(f"verify: {'clean' if verified.returncode == 0 else verified.stdout.decode() + verified.stderr.decode()}")


if __name__ == "__main__":
    main()
