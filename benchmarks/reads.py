"""`billfold bench reads`: what a read costs beside an empty answer, and beside a short past.

All over HTTPS against one server in its default installation, every request signed.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import msgspec

from benchmarks.dataset import pocket_of
from benchmarks.ledger_checks import verify_ledger
from benchmarks.load_generator import Call, Credentials, LoadResult, LoadTask, load_process
from benchmarks.long_history import LONG, SHORT, PocketHistory, history_process
from benchmarks.measurements import Figure, Log, Result, figure, peak_memory_of_server, rate
from benchmarks.server import Server
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database

CONNECTIONS = 16
HEALTH = "health, not authenticated"
EMPTY = "empty answer"
POCKET_LEAST = 0.3
SLOWER_MOST = 1.2

EMPTY_PATH = "/api/v2/pocket-configurations/"
_READS = {
    "pocket": ("/api/v2/pockets/{}/", ""),
    # As many as the short history has: both pages are of one length.
    "10 transactions": ("/api/v2/pockets/{}/transactions/", "limit=10"),
    "earnings": ("/api/v2/pockets/{}/earnings/", "period=ytd"),
}


class Read(msgspec.Struct, frozen=True):
    """One kind of request."""

    name: str
    call: Call
    bare: bool = False


def bench_reads(database: Database, sizes: Sizes, log: Log) -> Result:
    """Load both pasts, run every read in every round, and return the figures."""
    with ExitStack() as stack:
        location = database.location("reads")
        history = history_process(location)
        stack.callback(history.close)
        log(f"living through {sizes.history:,} transactions")
        history.prepare(("create", sizes.history))
        histories: list[PocketHistory] = history.prepare(("tell", 0))
        server = Server(location, workers=1)
        stack.callback(server.close)
        credentials: Credentials = history.prepare(("partner", 0))
        server.open()
        loader = load_process(server.ca)
        stack.callback(loader.close)
        reads = _reads()
        rates: dict[str, list[float]] = {read.name: [] for read in reads}
        for number in range(1, sizes.runs + 1):
            for read in reads:
                log(f"run {number}: {read.name}")
                task = LoadTask(
                    calls=[read.call] * sizes.requests,
                    port=server.port,
                    credentials=None if read.bare else credentials,
                    connections=CONNECTIONS,
                )
                outcome: LoadResult = loader.run(task)
                rates[read.name].append(rate([outcome.timing]))
        peaks = {
            "server worker": server.peak_of_worker(),
            "load generator": loader.peak_memory_mib(),
            **peak_memory_of_server(database.pid),
        }
        log("proving the ledger")
        proven = verify_ledger(location)
        return Result(
            name="reads",
            setting={**_setting(histories, sizes), "rows proven after it": proven},
            figures=_figures(rates),
            peak_memory_mib=peaks,
        )


def _reads() -> list[Read]:
    reads = [Read(HEALTH, Call("GET", "/health"), bare=True), Read(EMPTY, Call("GET", EMPTY_PATH))]
    for name, (path, query) in _READS.items():
        for nth in (SHORT, LONG):
            call = Call("GET", path.format(pocket_of(nth)), query)
            reads.append(Read(_named(name, nth), call))
    return reads


def _named(name: str, nth: int) -> str:
    return f"{name}, {'long' if nth == LONG else 'short'} history"


def _figures(rates: dict[str, list[float]]) -> list[Figure]:
    """Each read against the empty answer, then each long past against the short one."""
    health = figure(HEALTH, "per second", rates[HEALTH])
    empty = figure(EMPTY, "per second", rates[EMPTY])
    figures = [health, empty]
    for name in _READS:
        for nth in (SHORT, LONG):
            runs = rates[_named(name, nth)]
            least = POCKET_LEAST if name == "pocket" else None
            figures.append(figure(_named(name, nth), "per second", runs, against=empty, at_least=least))
    for name in _READS:
        short = figure(_named(name, SHORT), "us", _costs(rates[_named(name, SHORT)]))
        figures.append(
            figure(
                f"{name}: long beside short",
                "us",
                _costs(rates[_named(name, LONG)]),
                against=short,
                at_most=SLOWER_MOST,
            )
        )
    return figures


def _costs(rates: list[float]) -> list[float]:
    """Microseconds per request."""
    return [1e6 / per_second for per_second in rates]


def _setting(histories: list[PocketHistory], sizes: Sizes) -> dict[str, Any]:
    return {
        "workers": 1,
        "connections": CONNECTIONS,
        "requests per run": sizes.requests,
        "empty answer": f"GET {EMPTY_PATH}",
        "short history": msgspec.to_builtins(histories[SHORT]),
        "long history": msgspec.to_builtins(histories[LONG]),
    }
