"""Measures each step of a bank's days per customer and Pocket, in processor time, bytes and log of each server.

`python -m benchmarks.growth CUSTOMERS POCKETS` makes a bank on one server, `... WORKERS BIN` on a Citus cluster of so
many workers (BIN: the programs of a PostgreSQL that has Citus). Its Pockets are funded and pay each other on some days;
then it walks on until a fee was charged, bills have matured and a month has statements. Not the time counts, but what
the bank's process and the servers spend: all of them share this machine.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID

import asyncpg

from benchmarks import dataset
from benchmarks.bank_workload import create_partner
from benchmarks.cluster_servers import COORDINATOR, ClusterServers
from benchmarks.dataset import Location, customer_of, submit_commands, transfer
from benchmarks.failover import say
from benchmarks.measurements import cpu_seconds, peak_memory_mib
from benchmarks.server import free_ports
from benchmarks.throwaway_server import migrate, throwaway_server
from billfold.events.sequencer import sequence_events
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import ScheduledJob
from billfold.payments.clearing.rules import BANK_DAY_CLOSED_JOB
from billfold.platform.clock import monotonic
from billfold.platform.database.connection import connect
from billfold.platform.dates import et_date, et_instant
from billfold.platform.ids import command_id, derive
from billfold.reports.statements.store import Month
from billfold.reports.statements.worker import make_statements
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.verify.runner import verify_bank

WEEKS = 13
DAYS_OF_TRANSFERS = 4
DAYS_MAX = 110
VERIFIED_MAX = 10_000
CUSTOMERS_WITH_STATEMENTS = 5
BANK = "bank"

_DISK = "SELECT pg_database_size(current_database()), pg_current_wal_lsn() - '0/0'::pg_lsn"
_BOOK = "SELECT avg(octet_length(serialized_book)) FROM ledger_head"
_LOTS = "SELECT count(*) FROM account WHERE live AND kind = 'lot'"
_CALLER = "growth"
_CENTS = 1_250_50


class Node(NamedTuple):
    """A database server: its process, and the address of the bank's database on it."""

    pid: int
    dsn: str


class Bytes(NamedTuple):
    """The size of a database, and how much its server has ever written to its log."""

    disk: int
    log: int


class Meter:
    """Adds up what the bank's process and the servers have spent, and prints it per item."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes

    def read(self) -> dict[str, float]:
        """Return the processor seconds that each has spent so far."""
        spent = {name: cpu_seconds(node.pid) for name, node in self._nodes.items()}
        return {BANK: sum(os.times()[:4]), **spent}

    @contextmanager
    def step(self, name: str, count: int | Callable[[], int]) -> Iterator[None]:
        """Measure a step of so many items."""
        before, began = self.read(), monotonic()
        yield
        items = count if isinstance(count, int) else count()
        spent = {each: after - before[each] for each, after in self.read().items()}
        self.say(name, items, spent, monotonic() - began)

    def say(self, name: str, items: int, spent: Mapping[str, float], seconds: float) -> None:
        """Print a row: microseconds per item of the bank, the coordinator or only server, and all workers."""
        each = {key: value / max(items, 1) * 1e6 for key, value in spent.items()}
        workers = sum(value for key, value in each.items() if key not in (BANK, COORDINATOR))
        row = f"{each[BANK]:.1f} | {each[COORDINATOR]:.1f} | {workers:.1f}"
        say(f"| {name} | {items} | {row} | {seconds:.1f} s |")

    async def bytes(self) -> dict[str, Bytes]:
        """Return what each server holds."""
        found = {}
        for name, node in self._nodes.items():
            conn = await asyncpg.connect(node.dsn)
            await conn.execute("CHECKPOINT")
            found[name] = Bytes(*map(int, await conn.fetchrow(_DISK) or ()))
            await conn.close()
        return found

    def say_bytes(self, name: str, items: int, before: Mapping[str, Bytes], after: Mapping[str, Bytes]) -> None:
        """Print what an item has added to each server."""
        each = (
            f"{node}: {(end.disk - before[node].disk) / items:.0f} B, log {(end.log - before[node].log) / items:.0f} B"
            for node, end in after.items()
        )
        say(f"bytes of {name}: {'; '.join(each)}")


class Growth:
    """A bank whose customers have some Pockets each."""

    def __init__(self, bank: Bank, dsn: str, meter: Meter, *, customers: int, pockets: int) -> None:
        self._bank, self._dsn, self._meter, self._customers = bank, dsn, meter, customers
        self._pockets = [
            (nth, derive(dataset.SEED, command_id(_CALLER, f"{nth}"), 1 + each))
            if each
            else (nth, dataset.pocket_of(nth))
            for each in range(pockets)
            for nth in range(customers)
        ]
        self._stepper = ClockStepper(bank)
        self._roots: dict[str, float] = {}
        self._make_root = bank.job_runners[BANK_DAY_CLOSED_JOB]
        bank.job_runners = {**bank.job_runners, BANK_DAY_CLOSED_JOB: self._root}

    async def play(self) -> None:
        """Play and measure everything."""
        portals = await self._open()
        await self._morning()
        before = await self._meter.bytes()
        with self._meter.step("deposit that is invested, per Pocket", len(self._pockets)):
            await self._submit(
                [
                    dataset.deposit(nth, portals[each], dataset.DEPOSIT_CENTS, "growth", pocket_id=each)
                    for nth, each in self._pockets
                ]
            )
        self._meter.say_bytes("a deposit", len(self._pockets), before, await self._meter.bytes())
        await self._close("deposits")
        for day in range(1, DAYS_OF_TRANSFERS + 1):
            await self._transfers(day)
        month = Month.of(await self._bank.now())
        await self._walk_on()
        await self._statements(month)
        if len(self._pockets) <= VERIFIED_MAX:
            await self._verify()
        say(f"peak memory of the bank's process: {peak_memory_mib(os.getpid()):.0f} MiB")

    async def _open(self) -> dict[UUID, UUID]:
        """Make the customers; return the portal of each Pocket."""
        bank, before = self._bank, await self._meter.bytes()
        await create_partner(bank)
        with self._meter.step("customer with a Pocket", self._customers):
            portals = await dataset.create_customers(bank, range(self._customers), weeks=WEEKS)
        found = {dataset.pocket_of(nth): portal for nth, portal in portals.items()}
        others = self._pockets[self._customers :]
        if others:
            with self._meter.step("further Pocket", len(others)):
                found |= await dataset.open_pockets(bank, others, weeks=WEEKS)
        self._meter.say_bytes("an open Pocket", len(found), before, await self._meter.bytes())
        return found

    async def _transfers(self, day: int) -> None:
        """Let each Pocket pay or be paid, number the events, and close the day."""
        await self._morning()
        order, before = list(self._pockets), await self._meter.bytes()
        Random(day).shuffle(order)
        pairs = [pair for pair in zip(order[::2], order[1::2], strict=False) if pair[0][0] != pair[1][0]]
        with self._meter.step(f"transfer, day {day}", len(pairs)):
            await self._submit([transfer(command_id(f"day {day}", str(e[0][1])), *e, _CENTS) for e in pairs])
        numbered = 0
        with self._meter.step(f"event that gets its numbers, day {day}", lambda: numbered):
            numbered = await sequence_events(self._bank.pool, now=await self._bank.now())
        self._meter.say_bytes("a transfer", len(pairs), before, await self._meter.bytes())
        size, lots = [await self._bank.pool.fetchval(each) for each in (_BOOK, _LOTS)]
        say(f"a customer's book: {size:.0f} B; {lots / len(self._pockets):.1f} lots of each Pocket")
        await self._close(f"transfers, day {day}")

    async def _morning(self) -> None:
        await dataset.advance_to_next_morning(self._bank)

    async def _submit(self, commands: list[Command]) -> None:
        self._bank.engine.books.clear()
        await submit_commands(self._bank, commands)

    async def _close(self, name: str) -> None:
        """Walk to the close of the day; what the root costs is measured by itself."""
        self._bank.engine.books.clear()
        held, day = await self._meter.bytes(), et_date(await self._bank.now())
        before, began, self._roots = self._meter.read(), monotonic(), {}
        status = await self._stepper.set_to(self._bank.calendars.closes_at(day))
        self._say_day(name, status.happened, before, monotonic() - began)
        self._meter.say_bytes("a Pocket's close", len(self._pockets), held, await self._meter.bytes())

    def _say_day(self, name: str, happened: Mapping[str, int], before: Mapping[str, float], seconds: float) -> None:
        spent = {each: after - before[each] - self._roots.get(each, 0.0) for each, after in self._meter.read().items()}
        moved = max((happened.get(kind, 0) for kind in ("close", "charge", "mature", "invest")), default=0)
        kinds = ", ".join(f"{kind} {count}" for kind, count in happened.items())
        if moved:
            self._meter.say(f"day: {name}; per Pocket that is due ({kinds})", moved, spent, seconds)
            self._meter.say("its daily root, per customer", self._customers, self._roots, 0.0)

    async def _root(self, bank: Bank, job: ScheduledJob) -> None:
        """Make a daily root, measured."""
        before = self._meter.read()
        await self._make_root(bank, job)
        spent = {each: after - before[each] for each, after in self._meter.read().items()}
        self._roots = {each: seconds + self._roots.get(each, 0.0) for each, seconds in spent.items()}

    async def _walk_on(self) -> None:
        """Walk from day to day until bills have matured, fees were charged and the month is over."""
        seen, began = Counter[str](), et_date(await self._bank.now())
        day = began
        while (day - began).days < DAYS_MAX and not (seen["charge"] and seen["mature"] and day.month != began.month):
            day = self._bank.calendars.next_settlement_day(day)
            before, at, self._roots = self._meter.read(), monotonic(), {}
            status = await self._stepper.set_to(et_instant(day, dataset.TEN_O_CLOCK))
            self._say_day(f"{day}", status.happened, before, monotonic() - at)
            seen.update(status.happened)

    async def _statements(self, month: Month) -> None:
        """Make the statements of some customers for a month."""
        made = 0
        with self._meter.step("statement", lambda: made):
            for nth in range(CUSTOMERS_WITH_STATEMENTS):
                made += await make_statements(self._bank, customer_of(nth), month)

    async def _verify(self) -> None:
        conn = await connect(self._dsn)
        try:
            with self._meter.step("verify, per Pocket", len(self._pockets)):
                report = await verify_bank(conn, dsn=self._dsn)
        finally:
            await conn.close()
        assert report.is_clean, str(report.first)
        say(f"verify read {sum(report.checked.values())} rows")


async def _play(location: Location, nodes: Mapping[str, Node], customers: int, pockets: int) -> None:
    say(f"| Step | Items | {BANK}, us | {COORDINATOR}, us | workers, us | Time |\n|---|---|---|---|---|---|")
    opened = await dataset.create_bank(location)
    try:
        await Growth(opened.bank, location.dsn, Meter(nodes), customers=customers, pockets=pockets).play()
    finally:
        await opened.close()


async def _distribute(servers: ClusterServers, dsn: str) -> dict[str, Node]:
    """Make the nodes, and the tables on them."""
    await servers.start()
    await migrate(dsn, is_distributed=True)
    return {name: Node(servers.pid(name), servers.address(name)) for name in servers.names}


def main() -> None:
    """Measure one bank."""
    customers, pockets = map(int, sys.argv[1:3])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        if sys.argv[3:]:
            workers = int(sys.argv[3])
            servers = ClusterServers(folder, Path(sys.argv[4]), f"citus.shard_count = {4 * workers}\n", workers=workers)
            stack.callback(servers.stop)
            servers.ports = {COORDINATOR: free_ports(1)[0]}
            location = Location(servers.address(COORDINATOR), folder / "bank-keys")
            location.state_dir.mkdir()
            nodes = asyncio.run(_distribute(servers, location.dsn))
        else:
            database = stack.enter_context(throwaway_server(folder))
            location = database.location("growth")
            nodes = {COORDINATOR: Node(database.pid, location.dsn)}
        asyncio.run(_play(location, nodes, customers, pockets))


if __name__ == "__main__":
    main()
