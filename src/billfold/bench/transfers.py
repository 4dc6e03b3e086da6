"""`billfold bench transfers`: signed on-us transfers over HTTPS, and bare ones beside them.

Each request sells bills of the payer, moves the money and buys bills for the payee. The server
is a default installation; a second one with a worker per core runs on the same bank.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any
from uuid import UUID

import msgspec

from billfold.bench.bare import bare_child
from billfold.bench.ground import Ground
from billfold.bench.load import CONNECTIONS, Call, Credentials, Orders, Outcome, loader_child
from billfold.bench.measure import Chapter, Figure, Say, figure, peak_of_family, rate
from billfold.bench.payees import payees_child
from billfold.bench.proof import check_sums
from billfold.bench.server import Server
from billfold.bench.sizes import Sizes
from billfold.bench.town import pocket_of

BARE = "bare transfers"
WORKERS = (1, 2)
RATIO_LEAST = 0.15
P99_MOST_MS = 100.0
WORKER_MOST_MIB = 300.0

_PATH = "/api/v1/transfers/on-us/"
_MOST_CENTS = 2_000_00


class Way(msgspec.Struct):
    """One server, and what it reached in each run."""

    name: str
    server: Server
    rates: list[float] = msgspec.field(default_factory=list)
    full: list[Outcome] = msgspec.field(default_factory=list)
    half: list[Outcome] = msgspec.field(default_factory=list)


class Traffic:
    """Everything that runs: the bank's servers, the load generator and the baseline."""

    def __init__(self, ground: Ground, sizes: Sizes, say: Say, stack: ExitStack) -> None:
        self._sizes = sizes
        self._say = say
        self._draw = Random(3)
        self.bare = bare_child(ground.empty_database("bare"), sizes.customers)
        stack.callback(self.bare.close)
        self.place = place = ground.place("transfers")
        self.payees = payees_child(place)
        stack.callback(self.payees.close)
        say(f"settling {sizes.customers:,} customers with a payee each")
        self._known: list[tuple[int, UUID]] = self.payees.prepare(("settle", sizes.customers))
        self.ways = []
        credentials: Credentials = self.payees.prepare(("partner", 0))
        for workers in WORKERS:
            server = Server(place, workers=workers)
            stack.callback(server.close)
            server.open()
            self.ways.append(Way(f"{workers} worker{'s' if workers > 1 else ''}", server))
        self._credentials = credentials
        self.loader = loader_child(self.ways[0].server.ca)
        stack.callback(self.loader.close)

    def round(self, number: int) -> float:
        """Run the baseline, then every server at full and at half load."""
        self._say(f"run {number}: {BARE}")
        bare = rate(self.bare.run(self._sizes.bare_transfers))
        for way in self.ways:
            self.payees.prepare(("morning", 0))
            self._say(f"run {number}: {way.name}, full load")
            before = self.payees.prepare(("count", 0))
            full = self._send(way, self._sizes.requests)
            way.full.append(full)
            way.rates.append(rate([full.lap]))
            self._say(f"run {number}: {way.name}, half load")
            half = max(1.0, way.rates[-1] / 2)
            way.half.append(self._send(way, round(half * self._sizes.seconds), half))
            sent = full.lap.done + way.half[-1].lap.done
            assert self.payees.prepare(("count", 0)) - before == sent, "transfers are missing"
        return bare

    def _send(self, way: Way, count: int, per_second: float | None = None) -> Outcome:
        drawn = [self._known[self._draw.randrange(len(self._known))] for _ in range(max(1, count))]
        outcome: Outcome = self.loader.run(
            Orders(
                calls=[self._call(*payer) for payer in drawn],
                port=way.server.port,
                credentials=self._credentials,
                per_second=per_second,
            )
        )
        return outcome

    def _call(self, payer: int, counterparty: UUID) -> Call:
        cents = self._draw.randrange(100, _MOST_CENTS // 100) * 100 + 50
        body = {
            "type": "PEER_TO_PEER",
            "from_account": {"id": str(pocket_of(payer)), "type": "SERVICE_ACCOUNT"},
            "counterparty_id": str(counterparty),
            "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": cents},
            "description": "Invoice",
        }
        return Call("POST", _PATH, body=msgspec.json.encode(body).decode())


def bench_transfers(ground: Ground, sizes: Sizes, say: Say) -> Chapter:
    """Run the comparison and return its figures."""
    with ExitStack() as stack:
        traffic = Traffic(ground, sizes, say, stack)
        bare = [traffic.round(number) for number in range(1, sizes.runs + 1)]
        servers = {f"server, {way.name}": way.server.peak_of_worker() for way in traffic.ways}
        peaks = {
            **servers,
            "load generator": traffic.loader.peak_memory_mib(),
            **peak_of_family(ground.pid),
        }
        say("folding the log against the balances")
        check_sums(traffic.place)
        return Chapter(
            name="transfers",
            setting=_setting(sizes),
            figures=_figures(traffic.ways, bare, max(servers.values())),
            peak_memory_mib=peaks,
        )


def _figures(ways: list[Way], bare: list[float], worker_mib: float) -> list[Figure]:
    base = figure(BARE, "per second", bare)
    best = max(ways, key=lambda way: sum(way.rates))
    figures = [base]
    for way in ways:
        bound = RATIO_LEAST if way is best else None
        figures.append(
            figure(f"transfers, {way.name}", "per second", way.rates, against=base, at_least=bound)
        )
        figures += [
            _latency(f"p50 at full load, {way.name}", way.full, lambda one: one.p50_ms),
            _latency(f"p99 at full load, {way.name}", way.full, lambda one: one.p99_ms),
            _latency(f"p50 at half load, {way.name}", way.half, lambda one: one.p50_ms),
            _latency(
                f"p99 at half load, {way.name}", way.half, lambda one: one.p99_ms,
                P99_MOST_MS if way is best else None,
            ),
        ]  # fmt: skip
    figures.append(figure("memory of a worker", "MiB", [worker_mib], at_most=WORKER_MOST_MIB))
    return figures


def _latency(
    name: str,
    outcomes: list[Outcome],
    which: Callable[[Outcome], float],
    at_most: float | None = None,
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
