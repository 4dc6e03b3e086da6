"""Processor time of a transfer on a cluster against one server: `python -m benchmarks.cluster_cost BIN`.

Banks on one server and on a cluster with different numbers of shards take turns, with the programs of one PostgreSQL,
which has Citus (in the folder BIN). An engine transfers between customers drawn at random: all at once, then at half
the rate of the slowest.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from statistics import median
from time import process_time

import asyncpg
import msgspec

from benchmarks.bank_workload import BankWorkload, bank_process
from benchmarks.cluster_servers import COORDINATOR, DATABASE, WORKERS, ClusterServers
from benchmarks.dataset import Location, pocket_of, transfer
from benchmarks.measurements import cpu_seconds, percentile
from benchmarks.throwaway_server import migrate
from benchmarks.worker_processes import Worker
from billfold.payments.on_us.commands import TransferOnUs
from billfold.platform import ids
from billfold.platform.clock import monotonic

SHARDS = (8, 16, 32)
ONE, NODES = "single", (COORDINATOR, *WORKERS)
CUSTOMERS, TRANSFERS, ROUNDS = 600, 3_000, 5
_CENTS = 100_50


class Cost(msgspec.Struct):
    """So many transfers: seconds from the first to the last, processor time in milliseconds and times of each."""

    seconds: float
    python_ms: float
    times_ms: list[float]
    postgres_ms: float = 0.0

    def per_transfer(self) -> float:
        """Return the processor time of one, of all processes together."""
        return (self.python_ms + self.postgres_ms) / len(self.times_ms)


class TransferWorkload(BankWorkload):
    """One engine that transfers between its customers."""

    async def transfers(self, count: int, per_second: float | None = None) -> Cost:
        """Transfer so often, all at once or at a rate."""
        draw = Random(ids.new().int)
        places = [(nth, pocket_of(nth)) for nth in self._portals]
        pairs = (draw.sample(places, 2) for _ in range(count))
        commands = [transfer(ids.new(), payer, payee, _CENTS) for payer, payee in pairs]
        began, spent = monotonic(), process_time()

        async def submit(nth: int, command: TransferOnUs) -> float:
            at = began
            if per_second is not None:
                at += nth / per_second
                await asyncio.sleep(at - monotonic())
            await self._bank.engine.submit(command)
            return (monotonic() - at) * 1e3

        times = await asyncio.gather(*(submit(*each) for each in enumerate(commands)))
        return Cost(monotonic() - began, (process_time() - spent) * 1e3, times)


class Bank(msgspec.Struct):
    """A bank, the processes it costs, and what each round found."""

    worker: Worker
    servers: Sequence[int]
    full: list[Cost] = msgspec.field(default_factory=list)
    half: list[Cost] = msgspec.field(default_factory=list)

    def transfers(self, count: int, per_second: float | None = None) -> Cost:
        """Transfer, and see what the servers spend."""
        before = sum(map(cpu_seconds, self.servers))
        cost: Cost = self.worker.call("transfers", count, per_second)
        cost.postgres_ms = (sum(map(cpu_seconds, self.servers)) - before) * 1e3
        return cost

    def row(self, costs: Sequence[Cost], one: Sequence[Cost]) -> str:
        """Return medians of the rounds, and their ratio to what one server spent in the same round."""
        count = len(costs[0].times_ms)
        ratios = [cost.per_transfer() / alone.per_transfer() for cost, alone in zip(costs, one, strict=True)]
        return (
            f"{median(count / each.seconds for each in costs):6.0f} a second"
            f"{median(each.python_ms for each in costs) / count:7.3f}"
            f"{median(each.postgres_ms for each in costs) / count:7.3f}"
            f"{median(ratios):7.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            f"   p50 {median(percentile(each.times_ms, 50) for each in costs):6.1f}"
            f" p99 {median(percentile(each.times_ms, 99) for each in costs):6.1f} ms"
        )


async def location_of(servers: ClusterServers, folder: Path, shards: int) -> Location:
    """Make a database on the cluster with so many shards, or on the single server, and migrate it."""
    name = f"bank{shards}"
    nodes = NODES if shards else (ONE,)
    for node in nodes:
        await servers.run(node, f"CREATE DATABASE {name} TEMPLATE template0")
    dsns = [servers.address(node).replace(DATABASE, name) for node in nodes]
    if shards:
        for dsn in dsns:
            await _run(dsn, "CREATE EXTENSION citus")
        ports = [servers.ports[node] for node in nodes]
        await _run(dsns[0], f"SELECT citus_set_coordinator_host('127.0.0.1', {ports[0]})")
        for port in ports[1:]:
            await _run(dsns[0], f"SELECT citus_add_node('127.0.0.1', {port})")
        await _run(dsns[0], f"ALTER DATABASE {name} SET citus.shard_count = {shards}")
    await migrate(dsns[0], is_distributed=bool(shards))
    location = Location(dsns[0], folder / name)
    location.state_dir.mkdir()
    return location


async def _run(dsn: str, statement: str) -> None:
    conn = await asyncpg.connect(dsn)
    try:
        await conn.execute(statement)
    finally:
        await conn.close()


def measure(banks: dict[int, Bank]) -> None:
    """Let the banks take turns; print what each spent."""
    for number in range(ROUNDS + 1):
        for bank in banks.values():
            bank.full.append(bank.transfers(TRANSFERS))
        per_second = min(TRANSFERS / bank.full[-1].seconds for bank in banks.values()) / 2
        for bank in banks.values():
            bank.half.append(bank.transfers(TRANSFERS // 2, per_second))
        print(f"round {number}", file=sys.stderr)  # noqa: T201
    for load in ("full", "half"):
        one = getattr(banks[0], load)[1:]  # the first is to warm up
        for shards, bank in banks.items():
            print(f"{load} {shards:3} shards", bank.row(getattr(bank, load)[1:], one))  # noqa: T201


def main() -> None:
    """Make the servers and banks, and measure."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        servers = ClusterServers(folder, Path(sys.argv[1]))
        stack.callback(servers.stop)
        asyncio.run(servers.start())
        asyncio.run(servers.make(ONE))
        for node in (ONE, *NODES):  # what it would do in one round is owed to all
            asyncio.run(servers.run(node, "ALTER SYSTEM SET autovacuum = off"))
            asyncio.run(servers.run(node, "SELECT pg_reload_conf()"))
        banks = {}
        for shards in (0, *map(int, sys.argv[2:] or SHARDS)):
            location = asyncio.run(location_of(servers, folder, shards))
            worker = stack.enter_context(bank_process(location, TransferWorkload, first=True))
            worker.call("create", CUSTOMERS)
            banks[shards] = Bank(worker, [servers.pid(node) for node in (NODES if shards else (ONE,))])
        measure(banks)


if __name__ == "__main__":
    main()
