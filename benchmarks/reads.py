"""`billfold bench reads`: the cost of a read compared with an empty answer, and with a short history.

All over HTTPS against one server in its default installation, every request signed. One Pocket has ten transactions,
the other a million. That past is lived through: the clock walks from day to day, payments arrive before the market
opens, are invested when it does, and every row is written by the engine; at last the ledger is verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time
from itertools import product

from benchmarks.bank_workload import BankWorkload, verify_ledger
from benchmarks.dataset import create_customers, customer_of, deposit, pocket_of, submit_commands, vacuum_and_checkpoint
from benchmarks.load_generator import Call, LoadTask
from benchmarks.measurements import Figure, Result, Timing, figure, rate
from benchmarks.session import Session
from billfold.platform.clock import monotonic
from billfold.platform.dates import et_date, et_instant
from billfold.sandbox.control.clock_stepper import ClockStepper

CONNECTIONS = 16
HEALTH = "health, not authenticated"
EMPTY = "empty answer"
EMPTY_PATH = "/api/v2/pocket-configurations/"
POCKET_LEAST = 0.3
SLOWER_MOST = 1.2
AS_OF_MOST = 2.0
SHORT, LONG = 0, 1
"""The numbers of the two customers."""
SHORT_ROWS = 10

_DAYS = 240
_WEEKS = 4
_BEFORE_OPENING, _AFTER_OPENING = time(7), time(10)
_CENTS = 1_000_00
_BATCH = 2_000
_READS = {
    "pocket": ("/api/v2/pockets/{}/", ""),
    # As many as the short history has: both pages are of one length.
    "10 transactions": ("/api/v2/pockets/{}/transactions/", "limit=10"),
    "earnings": ("/api/v2/pockets/{}/earnings/", "period=ytd"),
}
_ROWS = """
SELECT (SELECT count(*) FROM transaction WHERE customer_id = $1) AS transactions,
       (SELECT count(*) FROM posting WHERE customer_id = $1) AS ledger_rows,
       (SELECT count(*) FROM snapshot WHERE customer_id = $1) AS snapshots,
       (SELECT count(*) FROM account WHERE customer_id = $1 AND kind = 'lot' AND live
           AND credits > debits) AS live_lots
"""


class HistoryWorkload(BankWorkload):
    """Lives through the past of both Pockets."""

    async def live(self, rows: int) -> None:
        """Let so many payments arrive for the long past, and ten for the short one."""
        portals = await create_customers(self._bank, (SHORT, LONG), weeks=_WEEKS)
        days = min(_DAYS, rows // SHORT_ROWS)
        # The short past is spread over the last weeks, so that both hold the same bills.
        short_days = range(days - 2 * SHORT_ROWS, days, 2) if days > 2 * SHORT_ROWS else range(days)
        for day, share in enumerate(shared_out(rows, days)):
            await self._advance_to(_BEFORE_OPENING)
            wires = [deposit(LONG, portals[LONG], _CENTS, f"{day}.{n}") for n in range(share)]
            if day in short_days:
                wires.append(deposit(SHORT, portals[SHORT], _CENTS, f"{day}"))
            await submit_commands(self._bank, wires)
        await self._advance_to(_AFTER_OPENING)
        await vacuum_and_checkpoint(self._bank.pool)

    async def rows_of(self, nth: int) -> dict[str, int]:
        """Return what a customer has behind it, in rows."""
        return dict(await self._bank.pool.fetchrow(_ROWS, customer_of(nth)) or {})

    async def middle(self) -> str:
        """Return the instant in the middle of the past."""
        opened_at = await self._bank.pool.fetchval("SELECT min(opened_at) FROM pocket")
        return f"{opened_at + (await self._bank.now() - opened_at) / 2:%Y-%m-%dT%H:%M:%SZ}"

    async def _advance_to(self, hour: time) -> None:
        day = self._bank.calendars.next_settlement_day(et_date(await self._bank.now()))
        await ClockStepper(self._bank).set_to(et_instant(day, hour))


def shared_out(whole: int, parts: int) -> Sequence[int]:
    """Divide a number into as even parts as can be."""
    return [whole * (n + 1) // parts - whole * n // parts for n in range(parts)]


def bench_reads(session: Session) -> Result:
    """Load both pasts, run every read in every round, verify the ledger, and return the figures."""
    sizes, location = session.sizes, session.database.location("reads")
    history = session.bank(location, HistoryWorkload, batch_limit=_BATCH)
    session.log(f"living through {sizes.history:,} transactions")
    history.call("live", sizes.history)
    credentials, reads = history.call("partner"), _reads(history.call("middle"))
    server = session.server(location)
    loader = session.load_generator(server)
    rates: dict[str, list[float]] = {}
    for number in range(1, sizes.runs + 1):
        for name, call in reads.items():
            session.log(f"run {number}: {name}")
            task = LoadTask(
                calls=[call] * sizes.requests,
                port=server.port,
                credentials=None if name == HEALTH else credentials,
                connections=CONNECTIONS,
            )
            rates.setdefault(name, []).append(rate([loader.call("send", task).timing]))
    peaks = session.peaks(server_worker=server.peak_of_worker(), load_generator=loader.peak_memory_mib())
    session.log("verifying the ledger")
    started = monotonic()
    verified = Timing(verify_ledger(location), started, monotonic())
    return Result(
        name="reads",
        setting={
            "workers": 1,
            "connections": CONNECTIONS,
            "requests per run": sizes.requests,
            "empty answer": f"GET {EMPTY_PATH}",
            "short history": history.call("rows_of", SHORT),
            "long history": history.call("rows_of", LONG),
            "rows verified": verified.done,
        },
        figures=[*_figures(rates), figure("rows verified", "per second", [rate([verified])])],
        peak_memory_mib=peaks,
    )


def _reads(middle: str) -> dict[str, Call]:
    reads = {HEALTH: Call("GET", "/health"), EMPTY: Call("GET", EMPTY_PATH)}
    for (name, (path, query)), nth in product(_READS.items(), (SHORT, LONG)):
        reads[_named(name, nth)] = Call("GET", path.format(pocket_of(nth)), query)
    for name, (path, query) in _READS.items():
        as_of = f"{query}&as_of={middle}" if query else f"as_of={middle}"
        reads[_as_of(name)] = Call("GET", path.format(pocket_of(LONG)), as_of)
    return reads


def _as_of(name: str) -> str:
    return f"{name}, as of the middle of the long history"


def _named(name: str, nth: int) -> str:
    return f"{name}, {'long' if nth == LONG else 'short'} history"


def _figures(rates: dict[str, list[float]]) -> list[Figure]:
    """Each read against the empty answer, then each long past against the short one."""
    empty = figure(EMPTY, "per second", rates[EMPTY])
    figures = [figure(HEALTH, "per second", rates[HEALTH]), empty]
    for name, nth in product(_READS, (SHORT, LONG)):
        least, runs = POCKET_LEAST if name == "pocket" else None, rates[_named(name, nth)]
        figures.append(figure(_named(name, nth), "per second", runs, against=empty, at_least=least))
    for name in _READS:
        short = figure(_named(name, SHORT), "us", _costs(rates[_named(name, SHORT)]))
        costs = _costs(rates[_named(name, LONG)])
        figures.append(figure(f"{name}: long against short", "us", costs, against=short, at_most=SLOWER_MOST))
        now, then = figure(_named(name, LONG), "us", costs), _costs(rates[_as_of(name)])
        figures.append(figure(f"{name}: as of against now", "us", then, against=now, at_most=AS_OF_MOST))
    return figures


def _costs(rates: list[float]) -> list[float]:
    """Microseconds per request."""
    return [1e6 / per_second for per_second in rates]
