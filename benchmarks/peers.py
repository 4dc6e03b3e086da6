"""`billfold bench peers`: whole transfers of ours next to plain ones of other ledgers, from one client to hundreds.

Ours sells bills of the payer, moves the money, buys bills for the payee, and proves all of it: eight postings, signed,
over TLS. Theirs moves one amount, over plain HTTP. All are durable, idempotent, and refuse an overdraft.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import Protocol
from uuid import UUID

import msgspec

from benchmarks.load_generator import Call, Credentials, LoadResult, LoadTask, PlainHeaders
from benchmarks.measurements import Figure, Result, figure, rate
from benchmarks.peer_ledgers import Ledger
from benchmarks.session import Session
from benchmarks.transfers import transfer_calls

CONNECTIONS = (1, 16, 64, 256)
ALONE = 1
_SHARE = {1: 0.1, 16: 0.5}
"""The fraction of a full run sent over few connections, which would take as long as all others together."""


class Subject(Protocol):
    """One ledger under load: where it listens, and how requests to it prove who asks."""

    name: str
    port: int
    credentials: Credentials | PlainHeaders

    def transfers(self, count: int) -> list[Call]:
        """Return so many transfers between accounts drawn at random."""


class Billfold:
    """The bank: its own server, each customer with one payee."""

    name = "billfold"

    def __init__(self, session: Session) -> None:
        location = session.database.location("peers")
        self.bank = session.bank(location)
        self.bank.call("create", session.sizes.customers)
        self._known: list[tuple[int, UUID]] = self.bank.call("counterparties")
        self.credentials: Credentials | PlainHeaders = self.bank.call("partner")
        self.server = session.server(location, workers=len(os.sched_getaffinity(0)))
        self.port = self.server.port
        self._draw = Random(3)

    def transfers(self, count: int) -> list[Call]:
        """Return transfers of customers drawn at random."""
        return transfer_calls(self._known, count, self._draw)


class Peer:
    """A ledger that somebody started next to the bank."""

    def __init__(self, ledger: Ledger, accounts: int) -> None:
        ledger.open_accounts(accounts)
        self.name, self.port = ledger.name, ledger.address.port
        self.credentials: Credentials | PlainHeaders = ledger.headers()
        self.transfers = ledger.transfers


class Measured(msgspec.Struct):
    """The results of one subject, by connections and run. `same_load` is at half load of a peer, by its name."""

    by_connections: dict[int, list[LoadResult]] = msgspec.field(default_factory=dict)
    half: list[LoadResult] = msgspec.field(default_factory=list)
    same_load: dict[str, list[LoadResult]] = msgspec.field(default_factory=dict)
    refused: int = 0

    def rates(self, connections: int) -> list[float]:
        """Return transfers per second of each run."""
        return [rate([each.timing]) for each in self.by_connections[connections]]

    @property
    def best(self) -> list[float]:
        """Return transfers per second of each run with the connections at which it is fastest."""
        return max(map(self.rates, self.by_connections), key=sum)


class Comparison:
    """The load generator and the subjects, which take turns."""

    def __init__(self, session: Session, ledgers: Sequence[Ledger]) -> None:
        self._session, sizes = session, session.sizes
        session.log(f"creating {sizes.customers:,} customers with a payee each")
        self.ours = Billfold(session)
        self._loader = session.load_generator(self.ours.server)
        self.peers: list[Peer] = []
        for ledger in ledgers:
            session.log(f"opening {sizes.customers:,} accounts of {ledger.name}")
            self.peers.append(Peer(ledger, sizes.customers))
        self._subjects: list[Subject] = [self.ours, *self.peers]
        self.measured = {subject.name: Measured() for subject in self._subjects}

    def round(self, number: int) -> None:
        """Run every subject at every number of connections, and ours at the half load of each peer."""
        self.ours.bank.call("morning")  # what was bought the day before is sold from today's lots
        for subject in self._subjects:
            found = self.measured[subject.name]
            for connections in CONNECTIONS:
                self._session.log(f"run {number}: {subject.name}, {connections} connections")
                count = max(20, round(self._session.sizes.requests * _SHARE.get(connections, 1.0)))
                outcome = self._send(subject, count, connections)
                found.by_connections.setdefault(connections, []).append(outcome)
            self._session.log(f"run {number}: {subject.name}, half load")
            found.half.append(self._half_load(subject, found))
        for peer in self.peers:
            self._session.log(f"run {number}: {self.ours.name}, half load of {peer.name}")
            outcome = self._half_load(self.ours, self.measured[peer.name])
            self.measured[self.ours.name].same_load.setdefault(peer.name, []).append(outcome)

    def _half_load(self, subject: Subject, of: Measured) -> LoadResult:
        half = max(1.0, of.best[-1] / 2)
        count = max(1, round(half * self._session.sizes.seconds))
        return self._send(subject, count, max(CONNECTIONS), half)

    def _send(self, subject: Subject, count: int, connections: int, per_second: float | None = None) -> LoadResult:
        task = LoadTask(
            calls=subject.transfers(count),
            port=subject.port,
            credentials=subject.credentials,
            connections=connections,
            per_second=per_second,
        )
        outcome: LoadResult = self._loader.call("send", task)
        self.measured[subject.name].refused += outcome.refused
        return outcome


def bench_peers(session: Session, ledgers: Sequence[Ledger] = ()) -> Result:
    """Compare the bank with these ledgers. Raises WorkloadError when one does not answer as it should."""
    comparison = Comparison(session, ledgers)
    for number in range(1, session.sizes.runs + 1):
        comparison.round(number)
    figures = [each for found in comparison.measured.items() for each in _figures(*found)]
    ours = comparison.measured[comparison.ours.name]
    for peer in comparison.peers:
        figures += _beside(ours, comparison.measured[peer.name], peer.name)
    return Result(
        name="peers",
        setting={
            "accounts": session.sizes.customers,
            "requests per run": session.sizes.requests,
            "half load": "an open loop at half the best rate just measured",
            "peers": ", ".join(peer.name for peer in comparison.peers) or "nothing",
        },
        figures=figures,
        peak_memory_mib=session.peaks(),
    )


def _figures(name: str, found: Measured) -> list[Figure]:
    figures = []
    for connections, outcomes in found.by_connections.items():
        at = f"{name}, {connections} connection{'s' if connections > 1 else ''}"
        figures += [
            figure(f"{at}: transfers", "per second", found.rates(connections)),
            figure(f"{at}: p50", "ms", [each.p50_ms for each in outcomes]),
            figure(f"{at}: p99", "ms", [each.p99_ms for each in outcomes]),
        ]
    figures += [
        figure(f"{name}: p50 at half load", "ms", [each.p50_ms for each in found.half]),
        figure(f"{name}: p99 at half load", "ms", [each.p99_ms for each in found.half]),
    ]
    if found.refused:
        figures.append(figure(f"{name}: refused", "transfers", [found.refused], at_most=0))
    return figures


def _beside(ours: Measured, theirs: Measured, peer: str) -> list[Figure]:
    """Return ours relative to a peer: faster at best, sooner alone, and sooner at half of what the peer can do."""
    rates = figure(f"{peer}: transfers at best", "per second", theirs.best)
    alone = figure(f"{peer}: p50 of one alone", "ms", [each.p50_ms for each in theirs.by_connections[ALONE]])
    half = figure(f"{peer}: p99 at its half load", "ms", [each.p99_ms for each in theirs.half])
    own_alone = [each.p50_ms for each in ours.by_connections[ALONE]]
    own_half = [each.p99_ms for each in ours.same_load[peer]]
    return [
        figure(f"transfers at best, next to {peer}", "per second", ours.best, against=rates, at_least=1.0),
        figure(f"p50 of one alone, next to {peer}", "ms", own_alone, against=alone, at_most=1.0),
        figure(f"p99 at its half load, next to {peer}", "ms", own_half, against=half, at_most=1.0),
    ]
