"""`billfold bench transfers`: signed on-us transfers over HTTPS, and bare ones beside them.

Each request sells bills of the payer, moves the money and buys bills for the payee. The server
is a default installation; a second one with a worker per core runs on the same bank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from random import Random
from statistics import median
from typing import Any
from uuid import UUID

import msgspec

from benchmarks.baseline import baseline_process
from benchmarks.collector_pauses import longest_pause
from benchmarks.counterparties import counterparty_process
from benchmarks.dataset import pocket_of
from benchmarks.ledger_checks import check_sums
from benchmarks.load_generator import CONNECTIONS, Call, Credentials, LoadResult, LoadTask, load_process
from benchmarks.measurements import Figure, Log, Result, cpu_seconds, figure, peak_memory_of_server, rate
from benchmarks.server import Server
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database

BARE = "bare transfers"
WORKERS = (1, 2)
MIN_RATIO = 0.15
MAX_P99_MS = 100.0
WORKER_MOST_MIB = 300.0
COST_CONNECTIONS = (1, 16, 64, 256)
COST_REQUESTS_MIN = 50
"""The kernel counts CPU time in hundredths of a second."""
ALONE_CPU_MS = 3.0
"""What a transfer may cost with one connection, the server and PostgreSQL together."""

_PATH = "/api/v1/transfers/on-us/"
_MAX_CENTS = 2_000_00


class Variant(msgspec.Struct):
    """One server, and what it reached in each run."""

    name: str
    server: Server
    rates: list[float] = msgspec.field(default_factory=list)
    full: list[LoadResult] = msgspec.field(default_factory=list)
    half: list[LoadResult] = msgspec.field(default_factory=list)


class Cost(msgspec.Struct):
    """What transfers cost with some connections, in each run: milliseconds of CPU each, and their times."""

    server_ms: list[float] = msgspec.field(default_factory=list)
    database_ms: list[float] = msgspec.field(default_factory=list)
    loads: list[LoadResult] = msgspec.field(default_factory=list)


class TransferComparison:
    """Everything that runs: the bank's servers, the load generator and the baseline."""

    def __init__(self, database: Database, sizes: Sizes, log: Log, stack: ExitStack) -> None:
        self._sizes = sizes
        self._log = log
        self._database = database
        self._draw = Random(3)
        self.costs = {connections: Cost() for connections in COST_CONNECTIONS}
        self.bare = baseline_process(database.empty_database("bare"), sizes.customers)
        stack.callback(self.bare.close)
        self.location = location = database.location("transfers")
        self.setup = counterparty_process(location)
        stack.callback(self.setup.close)
        log(f"creating {sizes.customers:,} customers with a payee each")
        self._known: list[tuple[int, UUID]] = self.setup.prepare(("create", sizes.customers))
        self.variants = []
        credentials: Credentials = self.setup.prepare(("partner", 0))
        for workers in WORKERS:
            server = Server(location, workers=workers)
            stack.callback(server.close)
            server.open()
            self.variants.append(Variant(f"{workers} worker{'s' if workers > 1 else ''}", server))
        self._credentials = credentials
        self.loader = load_process(self.variants[0].server.ca)
        stack.callback(self.loader.close)

    def round(self, number: int) -> float:
        """Run the baseline, then every server at full and at half load."""
        self._log(f"run {number}: {BARE}")
        bare = rate(self.bare.run(self._sizes.bare_transfers))
        for variant in self.variants:
            self.setup.prepare(("morning", 0))
            self._log(f"run {number}: {variant.name}, full load")
            before = self.setup.prepare(("count", 0))
            full = self._send(variant.server, self._sizes.requests)
            variant.full.append(full)
            variant.rates.append(rate([full.timing]))
            self._log(f"run {number}: {variant.name}, half load")
            half = max(1.0, variant.rates[-1] / 2)
            variant.half.append(self._send(variant.server, round(half * self._sizes.seconds), half))
            sent = full.timing.done + variant.half[-1].timing.done
            assert self.setup.prepare(("count", 0)) - before == sent, "transfers are missing"
        self._log(f"run {number}: cost by connections, {self.variants[0].name}")
        for connections, cost in self.costs.items():
            self._measure_cost(cost, connections)
        return bare

    def _measure_cost(self, cost: Cost, connections: int) -> None:
        """Send a share of the requests from some connections, and see what the server and PostgreSQL spend."""
        server, database = self.variants[0].server.pid, self._database.pid
        count = max(connections, COST_REQUESTS_MIN, self._sizes.requests // len(COST_CONNECTIONS))
        before = cpu_seconds(server), cpu_seconds(database)
        cost.loads.append(self._send(self.variants[0].server, count, connections=connections))
        cost.server_ms.append((cpu_seconds(server) - before[0]) / count * 1e3)
        cost.database_ms.append((cpu_seconds(database) - before[1]) / count * 1e3)

    def longest_pause(self) -> Figure:
        """Return how long the collector keeps a server waiting, under full load, under half of it and after both."""
        self._log("pauses of the garbage collector, 1 worker")
        half = max(1.0, median(self.variants[0].rates) / 2)

        def use(server: Server) -> None:
            self._send(server, self._sizes.requests)
            self._send(server, round(half * self._sizes.seconds), half)

        return longest_pause(self.location, use, times=self._sizes.runs)

    def _send(
        self, server: Server, count: int, per_second: float | None = None, *, connections: int = CONNECTIONS
    ) -> LoadResult:
        outcome: LoadResult = self.loader.run(
            LoadTask(
                calls=transfer_calls(self._known, count, self._draw),
                port=server.port,
                credentials=self._credentials,
                connections=connections,
                per_second=per_second,
            )
        )
        return outcome


def transfer_calls(known: Sequence[tuple[int, UUID]], count: int, draw: Random) -> list[Call]:
    """Return so many transfers of customers drawn at random to the counterparty of each."""
    return [_call(*known[draw.randrange(len(known))], draw) for _ in range(max(1, count))]


def _call(payer: int, counterparty: UUID, draw: Random) -> Call:
    cents = draw.randrange(100, _MAX_CENTS // 100) * 100 + 50
    body = {
        "type": "PEER_TO_PEER",
        "from_account": {"id": str(pocket_of(payer)), "type": "SERVICE_ACCOUNT"},
        "counterparty_id": str(counterparty),
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": cents},
        "description": "Invoice",
    }
    return Call("POST", _PATH, body=msgspec.json.encode(body).decode())


def bench_transfers(database: Database, sizes: Sizes, log: Log) -> Result:
    """Run the comparison and return its figures."""
    with ExitStack() as stack:
        comparison = TransferComparison(database, sizes, log, stack=stack)
        bare = [comparison.round(number) for number in range(1, sizes.runs + 1)]
        pause = comparison.longest_pause()
        servers = {f"server, {variant.name}": variant.server.peak_of_worker() for variant in comparison.variants}
        peaks = {
            **servers,
            "load generator": comparison.loader.peak_memory_mib(),
            **peak_memory_of_server(database.pid),
        }
        log("folding the log against the balances")
        check_sums(comparison.location)
        return Result(
            name="transfers",
            setting=_setting(sizes),
            figures=[
                *_figures(comparison.variants, bare, max(servers.values())),
                *(each for cost in comparison.costs.items() for each in _cost_figures(*cost)),
                pause,
            ],
            peak_memory_mib=peaks,
        )


def _figures(variants: list[Variant], bare: list[float], worker_mib: float) -> list[Figure]:
    base = figure(BARE, "per second", bare)
    best = max(variants, key=lambda variant: sum(variant.rates))
    figures = [base]
    for variant in variants:
        bound = MIN_RATIO if variant is best else None
        figures.append(figure(f"transfers, {variant.name}", "per second", variant.rates, against=base, at_least=bound))
        figures += [
            _latency(f"p50 at full load, {variant.name}", variant.full, lambda one: one.p50_ms),
            _latency(f"p99 at full load, {variant.name}", variant.full, lambda one: one.p99_ms),
            _latency(f"p50 at half load, {variant.name}", variant.half, lambda one: one.p50_ms),
            _latency(
                f"p99 at half load, {variant.name}",
                variant.half,
                lambda one: one.p99_ms,
                at_most=MAX_P99_MS if variant is best else None,
            ),
        ]
    figures.append(figure("memory of a worker", "MiB", [worker_mib], at_most=WORKER_MOST_MIB))
    return figures


def _cost_figures(connections: int, cost: Cost) -> list[Figure]:
    """Return what a transfer costs with some connections. Only a lone one has a limit: others share their batches."""
    suffix = f"{connections} connection{'s' if connections > 1 else ''}"
    whole = [sum(parts) for parts in zip(cost.server_ms, cost.database_ms, strict=True)]
    return [
        figure(f"CPU of a transfer, {suffix}", "ms", whole, at_most=ALONE_CPU_MS if connections == 1 else None),
        figure(f"CPU of the server, {suffix}", "ms", cost.server_ms),
        figure(f"CPU of PostgreSQL, {suffix}", "ms", cost.database_ms),
        _latency(f"p50, {suffix}", cost.loads, lambda one: one.p50_ms),
        _latency(f"p99, {suffix}", cost.loads, lambda one: one.p99_ms),
    ]


def _latency(
    name: str, outcomes: list[LoadResult], which: Callable[[LoadResult], float], at_most: float | None = None
) -> Figure:
    return figure(name, "ms", [which(outcome) for outcome in outcomes], at_most=at_most)


def _setting(sizes: Sizes) -> dict[str, Any]:
    return {
        "customers": sizes.customers,
        "connections": CONNECTIONS,
        "requests per run": sizes.requests,
        "half load": "an open loop at half the rate just measured",
        "seconds at half load": sizes.seconds,
    }
