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

from benchmarks.dataset import customer_of, pocket_of
from benchmarks.dpop_clients import TokenIssuer
from benchmarks.ledger_checks import verify_ledger
from benchmarks.load_generator import Call, Credentials, LoadResult, LoadTask, load_process
from benchmarks.long_history import SHORT, history_process
from benchmarks.measurements import Figure, Log, Result, Timing, figure, peak_memory_of_server, seconds_of
from benchmarks.reads import CONNECTIONS, EMPTY, EMPTY_PATH
from benchmarks.server import Server
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker
from billfold.access.oauth import dpop
from billfold.client.keys import ProofKey
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault

MIN_READ_RATIO = 0.2
MAX_CHECK_US = 500.0
PAST = 1_000
"""The most transactions behind the pocket; `reads` shows that their number does not matter."""

_RUN_REQUESTS = 1_000
"""Proofs are good for ten seconds, and are made before a run begins."""
_PARTNERS, _BOUND_EMPTY = "a pocket, signed by a partner", "empty answer, by DPoP"
_BOUND = "a pocket, by DPoP"
_CHECK, _NEW_KEY = "a check of a proof", "a check of a proof by a key not seen before"
_STRATEGIES = "/api/v2/trading-strategies/"


def bench_bound_reads(database: Database, sizes: Sizes, log: Log) -> Result:
    """Read a pocket both ways in every round, and check proofs on their own."""
    with ExitStack() as stack:
        location = database.location("bound_reads")
        history = history_process(location)
        stack.callback(history.close)
        past = min(PAST, sizes.requests)
        log(f"living through {past:,} transactions")
        history.prepare(("create", past))
        server = Server(location, workers=1)
        stack.callback(server.close)
        credentials: Credentials = history.prepare(("partner", 0))
        server.open()
        token_issuer = TokenIssuer(location, server.customer_origin)
        loader = load_process(server.ca)
        stack.callback(loader.close)
        timings = _Timings(token_issuer, loader, server, credentials=credentials)
        rates: dict[str, list[float]] = {}
        for number in range(1, sizes.runs + 1):
            for name, call in _READS.items():
                log(f"run {number}: {name}")
                found = timings.of(name, call, sizes.requests)
                rates.setdefault(name, []).append(_rate(found))
            log(f"run {number}: checks alone")
            for name, keys in ((_CHECK, 1), (_NEW_KEY, sizes.requests)):
                rates.setdefault(name, []).append(_check_us(sizes.requests, keys))
        peaks = {"server worker": server.peak_of_worker(), **peak_memory_of_server(database.pid)}
        log("proving the ledger")
        setting = {
            "workers": 1,
            "connections": CONNECTIONS,
            "requests per run": sizes.requests,
            "empty answer": f"GET {EMPTY_PATH}",
            "rows proven after it": verify_ledger(location),
        }
        return Result(name="reads --auth dpop", setting=setting, figures=_figures(rates), peak_memory_mib=peaks)


_READS = {
    EMPTY: Call("GET", EMPTY_PATH),
    _PARTNERS: Call("GET", f"/api/v2/pockets/{pocket_of(SHORT)}/"),
    _BOUND_EMPTY: Call("GET", _STRATEGIES),
    _BOUND: Call("GET", f"/api/v2/pockets/{pocket_of(SHORT)}/"),
}


class _Timings:
    """Runs the same request many times, a few seconds at once."""

    def __init__(self, token_issuer: TokenIssuer, loader: Worker, server: Server, credentials: Credentials) -> None:
        self._token_issuer, self._loader, self._server = (token_issuer, loader, server)
        self._credentials = credentials

    def of(self, name: str, call: Call, requests: int) -> list[Timing]:
        """Return the timings of so many requests."""
        customer: UUID = customer_of(SHORT)
        timings = []
        for done in range(0, requests, _RUN_REQUESTS):
            count = min(_RUN_REQUESTS, requests - done)
            bound = name in {_BOUND, _BOUND_EMPTY}
            task = LoadTask(
                calls=[call] * count,
                port=self._server.port,
                credentials=self._token_issuer.bound(customer, count) if bound else self._credentials,
                connections=CONNECTIONS,
            )
            outcome: LoadResult = self._loader.run(task)
            timings.append(outcome.timing)
        return timings


def _rate(timings: list[Timing]) -> float:
    """Return requests per second of runs that ran one after the other."""
    return sum(timing.done for timing in timings) / sum(seconds_of([timing]) for timing in timings)


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
        dpop.verify_proof(proof, method="GET", url=url, now=wall_now(), nonces=nonces, token=token)
    return (time.process_time() - started) / proofs * 1e6


def _figures(rates: dict[str, list[float]]) -> list[Figure]:
    empty = figure(EMPTY, "per second", rates[EMPTY])
    return [
        empty,
        figure(_PARTNERS, "per second", rates[_PARTNERS], against=empty),
        figure(_BOUND_EMPTY, "per second", rates[_BOUND_EMPTY], against=empty),
        figure(_BOUND, "per second", rates[_BOUND], against=empty, at_least=MIN_READ_RATIO),
        figure(_CHECK, "us", rates[_CHECK], at_most=MAX_CHECK_US),
        figure(_NEW_KEY, "us", rates[_NEW_KEY], at_most=MAX_CHECK_US),
    ]
