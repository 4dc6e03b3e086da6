"""`billfold bench transfers`: signed on-us transfers over HTTPS, and bare ones next to them.

Each request sells bills of the payer, moves the money and buys bills for the payee. The server
is a default installation; a second one with a worker per core runs on the same bank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from uuid import UUID

import msgspec

from benchmarks.bank_workload import check_sums
from benchmarks.baseline import BARE
from benchmarks.dataset import pocket_of
from benchmarks.load_generator import CONNECTIONS, Call, LoadResult, LoadTask
from benchmarks.measurements import Figure, Result, cpu_seconds, figure, rate
from benchmarks.server import Server
from benchmarks.session import Session
from benchmarks.sizes import Sizes

WORKERS = (1, 2)
MIN_RATIO = 0.15
MAX_P99_MS = 100.0
WORKER_MOST_MIB = 300.0
COST_CONNECTIONS = (1, 16, 64, 256)
COST_REQUESTS_MIN = 50
"""The kernel counts CPU time in hundredths of a second."""
ALONE_CPU_MS = 3.0
"""Maximum cost of a transfer with one connection, the server and PostgreSQL together."""
TRANSFERS_PATH = "/api/v1/transfers/on-us/"

_MAX_CENTS = 2_000_00
_DONE = "SELECT count(*) FROM transfer WHERE status = 'COMPLETED'"


class Variant(msgspec.Struct):
    """One server, and what it reached in each run."""

    name: str
    server: Server
    rates: list[float] = msgspec.field(default_factory=list)
    full: list[LoadResult] = msgspec.field(default_factory=list)
    half: list[LoadResult] = msgspec.field(default_factory=list)


class Cost(msgspec.Struct):
    """The cost of transfers with some connections, in each run: milliseconds of CPU each, and their times."""

    server_ms: list[float] = msgspec.field(default_factory=list)
    database_ms: list[float] = msgspec.field(default_factory=list)
    loads: list[LoadResult] = msgspec.field(default_factory=list)


class TransferComparison:
    """Everything that runs: the bank's servers, the load generator and the baseline."""

    def __init__(self, session: Session) -> None:
        self._session, self._sizes = session, session.sizes
        self._draw = Random(3)
        self.costs = {connections: Cost() for connections in COST_CONNECTIONS}
        self._bare = session.baseline()
        self.location = session.database.location("transfers")
        self._bank = session.bank(self.location)
        session.log(f"creating {self._sizes.customers:,} customers with a payee each")
        self._bank.call("create", self._sizes.customers)
        self._known: list[tuple[int, UUID]] = self._bank.call("counterparties")
        self._credentials = self._bank.call("partner")
        self.variants = [
            Variant(f"{workers} worker{'s' if workers > 1 else ''}", session.server(self.location, workers=workers))
            for workers in WORKERS
        ]
        self.loader = session.load_generator(self.variants[0].server)

    def round(self, number: int) -> float:
        """Run the baseline, then every server at full and at half load; return bare transfers per second."""
        log = self._session.log
        log(f"run {number}: {BARE}")
        bare: float = self._bare.call("per_second", self._sizes.bare_transfers)
        for variant in self.variants:
            self._bank.call("morning")
            log(f"run {number}: {variant.name}, full load")
            before = self._bank.call("fetch", _DONE)
            full = self._send(variant.server, self._sizes.requests)
            variant.full.append(full)
            variant.rates.append(rate([full.timing]))
            log(f"run {number}: {variant.name}, half load")
            variant.half.append(self._half_load(variant.server, variant.rates[-1]))
            sent = full.timing.done + variant.half[-1].timing.done
            assert self._bank.call("fetch", _DONE) - before == sent, "transfers are missing"
        log(f"run {number}: cost by connections, {self.variants[0].name}")
        for connections, cost in self.costs.items():
            self._measure_cost(cost, connections)
        return bare

    def _measure_cost(self, cost: Cost, connections: int) -> None:
        """Send a share of the requests from some connections, and see what the server and PostgreSQL spend."""
        server, database = self.variants[0].server.pid, self._session.database.pid
        count = max(connections, COST_REQUESTS_MIN, self._sizes.requests // len(COST_CONNECTIONS))
        before = cpu_seconds(server), cpu_seconds(database)
        cost.loads.append(self._send(self.variants[0].server, count, connections=connections))
        cost.server_ms.append((cpu_seconds(server) - before[0]) / count * 1e3)
        cost.database_ms.append((cpu_seconds(database) - before[1]) / count * 1e3)

    def _half_load(self, server: Server, full_rate: float) -> LoadResult:
        half = max(1.0, full_rate / 2)
        return self._send(server, round(half * self._sizes.seconds), half)

    def _send(
        self, server: Server, count: int, per_second: float | None = None, *, connections: int = CONNECTIONS
    ) -> LoadResult:
        task = LoadTask(
            calls=transfer_calls(self._known, count, self._draw),
            port=server.port,
            credentials=self._credentials,
            connections=connections,
            per_second=per_second,
        )
        outcome: LoadResult = self.loader.call("send", task)
        return outcome


def transfer_calls(known: Sequence[tuple[int, UUID]], count: int, draw: Random) -> list[Call]:
    """Return so many transfers of customers drawn at random to the counterparty of each."""
    return [_call(*known[draw.randrange(len(known))], draw) for _ in range(max(1, count))]


def _call(payer: int, counterparty: UUID, draw: Random) -> Call:
    # Fifty cents: the sandbox takes some endings of an amount for a wish to be refused.
    cents = draw.randrange(100, _MAX_CENTS // 100) * 100 + 50
    body = {
        "type": "PEER_TO_PEER",
        "from_account": {"id": str(pocket_of(payer)), "type": "SERVICE_ACCOUNT"},
        "counterparty_id": str(counterparty),
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": cents},
        "description": "Invoice",
    }
    return Call("POST", TRANSFERS_PATH, body=msgspec.json.encode(body).decode())


def bench_transfers(session: Session) -> Result:
    """Run the comparison and return its figures."""
    comparison = TransferComparison(session)
    bare = [comparison.round(number) for number in range(1, session.sizes.runs + 1)]
    servers = {f"server, {variant.name}": variant.server.peak_of_worker() for variant in comparison.variants}
    peaks = session.peaks(**servers, load_generator=comparison.loader.peak_memory_mib())
    session.log("folding the log against the balances")
    check_sums(comparison.location)
    return Result(
        name="transfers",
        setting=_setting(session.sizes),
        figures=[
            *_figures(comparison.variants, bare),
            figure("memory of a worker", "MiB", [max(servers.values())], at_most=WORKER_MOST_MIB),
            *(each for cost in comparison.costs.items() for each in _cost_figures(*cost)),
        ],
        peak_memory_mib=peaks,
    )


def _figures(variants: list[Variant], bare: list[float]) -> list[Figure]:
    base = figure(BARE, "per second", bare)
    best = max(variants, key=lambda variant: sum(variant.rates))
    figures = [base]
    for variant in variants:
        name = variant.name
        least, most = (MIN_RATIO, MAX_P99_MS) if variant is best else (None, None)
        figures += [
            figure(f"transfers, {name}", "per second", variant.rates, against=base, at_least=least),
            _latency(f"p50 at full load, {name}", variant.full, lambda one: one.p50_ms),
            _latency(f"p99 at full load, {name}", variant.full, lambda one: one.p99_ms),
            _latency(f"p50 at half load, {name}", variant.half, lambda one: one.p50_ms),
            _latency(f"p99 at half load, {name}", variant.half, lambda one: one.p99_ms, at_most=most),
        ]
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
