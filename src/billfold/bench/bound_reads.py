"""`billfold bench reads --auth dpop`: what a read costs whose token is bound to a key.

Over HTTPS against one server in its default installation. Each request of the Customer API carries
a token that is looked up and a proof that is verified and burnt; nothing of either is remembered.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from uuid import UUID

import httpx
from cryptography.hazmat.primitives.asymmetric import ec

from billfold.bench.bound import Registrar
from billfold.bench.ground import Ground
from billfold.bench.history import SHORT, historian_child
from billfold.bench.load import Call, Credentials, Orders, Outcome, loader_child
from billfold.bench.measure import (
    Chapter,
    Figure,
    Lap,
    Say,
    figure,
    peak_of_family,
    seconds_of,
)
from billfold.bench.proof import prove
from billfold.bench.racers import Child
from billfold.bench.reads import CONNECTIONS, EMPTY, EMPTY_PATH
from billfold.bench.server import Server
from billfold.bench.sizes import Sizes
from billfold.bench.town import customer_of, pocket_of
from billfold.client.proofs import ProofKey
from billfold.domain.oauth import dpop
from billfold.kit.clock import wall_now
from billfold.kit.crypto import Vault

READ_LEAST = 0.2
CHECK_MOST_US = 500.0
PAST = 1_000
"""The most transactions behind the pocket; `reads` shows that their number does not matter."""

_LAP_REQUESTS = 1_000
"""Proofs are good for ten seconds, and are made before a lap begins."""
_PARTNERS, _BOUND_EMPTY = "a pocket, signed by a partner", "empty answer, by DPoP"
_BOUND = "a pocket, by DPoP"
_CHECK, _NEW_KEY = "a check of a proof", "a check of a proof by a key not seen before"
_STRATEGIES = "/api/v2/trading-strategies/"


def bench_bound_reads(ground: Ground, sizes: Sizes, say: Say) -> Chapter:
    """Read a pocket both ways in every round, and check proofs on their own."""
    with ExitStack() as stack:
        place = ground.place("bound_reads")
        historian = historian_child(place)
        stack.callback(historian.close)
        past = min(PAST, sizes.requests)
        say(f"living through {past:,} transactions")
        historian.prepare(("live", past))
        server = Server(place, workers=1)
        stack.callback(server.close)
        credentials: Credentials = historian.prepare(("partner", 0))
        server.open()
        registrar = Registrar(place, server.customer_origin)
        loader = loader_child(server.ca)
        stack.callback(loader.close)
        laps = _Laps(registrar, loader, server, credentials)
        rates: dict[str, list[float]] = {}
        for number in range(1, sizes.runs + 1):
            for name, call in _READS.items():
                say(f"run {number}: {name}")
                found = laps.of(name, call, sizes.requests)
                rates.setdefault(name, []).append(_rate(found))
            say(f"run {number}: checks alone")
            for name, keys in ((_CHECK, 1), (_NEW_KEY, sizes.requests)):
                rates.setdefault(name, []).append(_check_us(sizes.requests, keys))
        peaks = {"server worker": server.peak_of_worker(), **peak_of_family(ground.pid)}
        say("proving the ledger")
        setting = {
            "workers": 1, "connections": CONNECTIONS, "requests per run": sizes.requests,
            "empty answer": f"GET {EMPTY_PATH}", "rows proven after it": prove(place),
        }  # fmt: skip
        return Chapter(
            name="reads --auth dpop", setting=setting, figures=_figures(rates),
            peak_memory_mib=peaks,
        )  # fmt: skip


_READS = {
    EMPTY: Call("GET", EMPTY_PATH),
    _PARTNERS: Call("GET", f"/api/v2/pockets/{pocket_of(SHORT)}/"),
    _BOUND_EMPTY: Call("GET", _STRATEGIES),
    _BOUND: Call("GET", f"/api/v2/pockets/{pocket_of(SHORT)}/"),
}


class _Laps:
    """Runs the same request many times, a few seconds at once."""

    def __init__(
        self, registrar: Registrar, loader: Child, server: Server, credentials: Credentials
    ) -> None:
        self._registrar, self._loader, self._server = registrar, loader, server
        self._credentials = credentials

    def of(self, name: str, call: Call, requests: int) -> list[Lap]:
        """Return the laps of so many requests."""
        customer: UUID = customer_of(SHORT)
        laps = []
        for done in range(0, requests, _LAP_REQUESTS):
            count = min(_LAP_REQUESTS, requests - done)
            bound = name in {_BOUND, _BOUND_EMPTY}
            orders = Orders(
                calls=[call] * count,
                port=self._server.port,
                credentials=self._registrar.bound(customer, count) if bound else self._credentials,
                lines=CONNECTIONS,
            )
            outcome: Outcome = self._loader.run(orders)
            laps.append(outcome.lap)
        return laps


def _rate(laps: list[Lap]) -> float:
    """Return requests per second of laps that ran one after the other."""
    return sum(lap.done for lap in laps) / sum(seconds_of([lap]) for lap in laps)


def _check_us(proofs: int, keys: int) -> float:
    """Return how many microseconds of a core a check takes, of proofs by so many keys in turn.

    Its own time: what else keeps the machine busy is not counted.
    """
    nonces = dpop.Nonces(Vault(bytes(32)))
    makers = [ProofKey(ec.generate_private_key(ec.SECP256R1())) for _ in range(keys)]
    url, token = "https://api.localhost/api/v2/pockets/", "a token"
    sent = [makers[nth % keys].proof("GET", httpx.URL(url), token=token) for nth in range(proofs)]
    started = time.process_time()
    for proof in sent:
        dpop.check(proof, method="GET", url=url, now=wall_now(), nonces=nonces, token=token)
    return (time.process_time() - started) / proofs * 1e6


def _figures(rates: dict[str, list[float]]) -> list[Figure]:
    empty = figure(EMPTY, "per second", rates[EMPTY])
    return [
        empty,
        figure(_PARTNERS, "per second", rates[_PARTNERS], against=empty),
        figure(_BOUND_EMPTY, "per second", rates[_BOUND_EMPTY], against=empty),
        figure(_BOUND, "per second", rates[_BOUND], against=empty, at_least=READ_LEAST),
        figure(_CHECK, "us", rates[_CHECK], at_most=CHECK_MOST_US),
        figure(_NEW_KEY, "us", rates[_NEW_KEY], at_most=CHECK_MOST_US),
    ]
