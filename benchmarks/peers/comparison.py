"""`billfold bench peers`: whole transfers of ours beside plain ones of other ledgers, from one client to hundreds.

Ours sells bills of the payer, moves the money, buys bills for the payee, and proves all of it: eight postings, signed,
over TLS. Theirs moves one amount, over plain HTTP. All are durable, idempotent, and refuse an overdraft.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

from benchmarks.load_generator import LoadResult, LoadTask, load_process
from benchmarks.measurements import Figure, Log, Result, figure, rate
from benchmarks.peers.ledgers import Ledger
from benchmarks.peers.subjects import Billfold, Peer, Subject
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker

CONNECTIONS = (1, 16, 64, 256)
ALONE = 1
_SHARE = {1: 0.1, 16: 0.5}
"""How much of a full run is sent over few connections, which would take as long as all others together."""


def _of_each_step() -> dict[int, list[float]]:
    return {connections: [] for connections in CONNECTIONS}


class Measured(msgspec.Struct):
    """What one subject reached, a value per run. `same_load_p99` is at half load of a peer, by its name."""

    rates: dict[int, list[float]] = msgspec.field(default_factory=_of_each_step)
    p50: dict[int, list[float]] = msgspec.field(default_factory=_of_each_step)
    p99: dict[int, list[float]] = msgspec.field(default_factory=_of_each_step)
    cpu_ms: dict[int, list[float]] = msgspec.field(default_factory=_of_each_step)
    half_p50: list[float] = msgspec.field(default_factory=list)
    half_p99: list[float] = msgspec.field(default_factory=list)
    same_load_p99: dict[str, list[float]] = msgspec.field(default_factory=dict)
    refused: int = 0
    sent: int = 0
    bytes_each: float | None = None

    @property
    def best(self) -> int:
        """Return the number of connections at which it is fastest."""
        return max(CONNECTIONS, key=lambda connections: sum(self.rates[connections]))

    @property
    def half_rate(self) -> float:
        """Return half of what it did last at its best, per second."""
        return max(1.0, self.rates[self.best][-1] / 2)


class Comparison:
    """The load generator and the subjects, which take turns."""

    def __init__(self, subjects: Sequence[Subject], loader: Worker, sizes: Sizes, log: Log) -> None:
        self._subjects = subjects
        self._loader = loader
        self._sizes = sizes
        self._log = log
        self.measured = {subject.name: Measured() for subject in subjects}

    def run(self) -> None:
        """Run every subject at every number of connections, as often as the sizes say."""
        before = {subject.name: subject.bytes_stored() for subject in self._subjects}
        for number in range(1, self._sizes.runs + 1):
            for subject in self._subjects:
                self._round(subject, number)
            ours, *peers = self._subjects
            for peer in peers:
                self._log(f"run {number}: {ours.name}, half load of {peer.name}")
                outcome = self._half_load(ours, self.measured[peer.name].half_rate)
                self.measured[ours.name].same_load_p99.setdefault(peer.name, []).append(outcome.p99_ms)
        for subject in self._subjects:
            size, earlier = subject.bytes_stored(), before[subject.name]
            found = self.measured[subject.name]
            if size is not None and earlier is not None and found.sent:
                found.bytes_each = (size - earlier) / found.sent

    def _round(self, subject: Subject, number: int) -> None:
        found = self.measured[subject.name]
        subject.new_day()
        for connections in CONNECTIONS:
            self._log(f"run {number}: {subject.name}, {connections} connections")
            count = max(20, round(self._sizes.requests * _SHARE.get(connections, 1.0)))
            spent = subject.cpu_seconds()
            outcome = self._send(found, subject.task(count, connections))
            found.rates[connections].append(rate([outcome.timing]))
            found.p50[connections].append(outcome.p50_ms)
            found.p99[connections].append(outcome.p99_ms)
            now = subject.cpu_seconds()
            if spent is not None and now is not None:
                found.cpu_ms[connections].append((now - spent) / outcome.timing.done * 1e3)
        self._log(f"run {number}: {subject.name}, half load")
        outcome = self._half_load(subject, found.half_rate)
        found.half_p50.append(outcome.p50_ms)
        found.half_p99.append(outcome.p99_ms)

    def _half_load(self, subject: Subject, per_second: float) -> LoadResult:
        count = max(1, round(per_second * self._sizes.seconds))
        return self._send(self.measured[subject.name], subject.task(count, max(CONNECTIONS), per_second))

    def _send(self, found: Measured, task: LoadTask) -> LoadResult:
        outcome: LoadResult = self._loader.run(task)
        found.sent += outcome.timing.done
        found.refused += outcome.refused
        return outcome


def bench_peers(database: Database, sizes: Sizes, log: Log, ledgers: Sequence[Ledger] = ()) -> Result:
    """Compare the bank with these ledgers. Raises WorkloadError when one does not answer as it should."""
    with ExitStack() as stack:
        log(f"creating {sizes.customers:,} customers with a payee each")
        ours = Billfold(database, sizes.customers, stack)
        peers = []
        for ledger in ledgers:
            log(f"opening {sizes.customers:,} accounts of {ledger.name}")
            peers.append(Peer(ledger, sizes.customers))
        loader = load_process(ours.ca)
        stack.callback(loader.close)
        comparison = Comparison([ours, *peers], loader, sizes, log)
        comparison.run()
        return Result(
            name="peers",
            setting={
                "accounts": sizes.customers,
                "requests per run": sizes.requests,
                "half load": "an open loop at half the best rate just measured",
                "beside": ", ".join(peer.name for peer in peers) or "nothing",
            },
            figures=_figures(ours, peers, comparison.measured),
            peak_memory_mib={"load generator": loader.peak_memory_mib()},
        )


def _figures(ours: Subject, peers: Sequence[Subject], measured: dict[str, Measured]) -> list[Figure]:
    figures: list[Figure] = []
    for subject in (ours, *peers):
        figures += _of_subject(subject, measured[subject.name])
    for peer in peers:
        figures += _beside(measured[ours.name], measured[peer.name], peer.name)
    return figures


def _of_subject(subject: Subject, found: Measured) -> list[Figure]:
    name = subject.name
    figures = []
    for connections in CONNECTIONS:
        at = f"{name}, {connections} connection{'s' if connections > 1 else ''}"
        figures += [
            figure(f"{at}: transfers", "per second", found.rates[connections]),
            figure(f"{at}: p50", "ms", found.p50[connections]),
            figure(f"{at}: p99", "ms", found.p99[connections]),
        ]
        if found.cpu_ms[connections]:
            figures.append(figure(f"{at}: processor time of a transfer", "ms", found.cpu_ms[connections]))
    postings = [each * subject.postings for each in found.rates[found.best]]
    figures += [
        figure(f"{name}: postings", "per second", postings),
        figure(f"{name}: p50 at half load", "ms", found.half_p50),
        figure(f"{name}: p99 at half load", "ms", found.half_p99),
    ]
    if found.bytes_each is not None:
        figures.append(figure(f"{name}: stored for a transfer", "bytes", [found.bytes_each]))
    if found.refused:
        figures.append(figure(f"{name}: refused", "transfers", [found.refused], at_most=0))
    return figures


def _beside(ours: Measured, theirs: Measured, peer: str) -> list[Figure]:
    """Return ours relative to a peer: faster at best, sooner alone, and sooner at half of what the peer can do."""
    pairs = [
        ("transfers at best", "per second", ours.rates[ours.best], theirs.rates[theirs.best], True),
        ("p50 of one alone", "ms", ours.p50[ALONE], theirs.p50[ALONE], False),
        ("p99 at its half load", "ms", ours.same_load_p99[peer], theirs.half_p99, False),
    ]
    figures = []
    for name, unit, own, other, more_is_better in pairs:
        base = figure(f"{peer}: {name}", unit, other)
        bounds = {"at_least": 1.0} if more_is_better else {"at_most": 1.0}
        figures.append(figure(f"{name}, beside {peer}", unit, own, against=base, **bounds))
    return figures
