"""`billfold bench payments`: wires from their approval to the queued message, and ACH at size.

Every customer has one wire approved per pass. It is executed as in a server: the request is
read, bills are sold, the money is the rail's and the message waits, in one commit; then the
scheduled job is completed. At last a window and a file of many ACH entries.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import ExitStack
from typing import Any
from uuid import UUID

from benchmarks.ach_files import ach_figures, await_clearing
from benchmarks.baseline import CONNECTIONS, baseline_process
from benchmarks.dataset import (
    DEPOSIT_CENTS,
    Location,
    OpenBank,
    advance_to_next_morning,
    create_bank,
    create_customers,
    customer_of,
    deposit,
    submit_commands,
    vacuum_and_checkpoint,
)
from benchmarks.ledger_checks import check_sums
from benchmarks.measurements import Figure, Log, Result, Timing, figure, peak_memory_of_server, rate
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.wire_approvals import Name, approve_wires
from benchmarks.worker_processes import Worker, run_together
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.approvals.execute_transfers import execute_request
from billfold.platform.clock import monotonic
from billfold.platform.ids import command_id

BARE = "bare transfers"
MIN_RATIO = 0.4
_MAX_PAYERS = 2_000
"""Customers who send a wire in a pass. All of them leave before the next, which takes longer."""
_QUEUED = """
SELECT (SELECT count(*) FROM wire_message)
     - (SELECT count(*) FROM scheduled_job WHERE kind = 'request.execute')
"""


class WireWorkload:
    """One engine, its customers and their counterparties."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._approved: list[Name] = []

    async def prepare(self, task: tuple[str, Any]) -> Any:
        """Settle customers, begin the next morning, approve wires, count them, fill ACH."""
        verb, argument = task
        if verb == "create":
            portals = await create_customers(self._bank, range(argument))
            await submit_commands(
                self._bank, [deposit(nth, portal, DEPOSIT_CENTS, occasion="first") for nth, portal in portals.items()]
            )
            linked = await submit_commands(self._bank, [_link(nth) for nth in range(argument)])
            await vacuum_and_checkpoint(self._bank.pool)
            return [(nth, UUID(str(each["counterparty_id"]))) for nth, each in enumerate(linked)]
        if verb == "clearing":
            await await_clearing(self._bank, *argument)
        elif verb == "morning":
            await advance_to_next_morning(self._bank)
        elif verb == "pass":
            name, payees = argument
            self._approved = await approve_wires(self._bank, name, payees)
            self._bank.engine.forget_all()
            gc.collect()
        else:
            return await self._bank.pool.fetchval(_QUEUED)
        return None

    async def run(self) -> Timing:
        """Carry out the wires of the pass, all at once."""
        started = monotonic()
        await asyncio.gather(*(execute_request(self._bank, *name) for name in self._approved))
        return Timing(len(self._approved), started, monotonic())

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()


async def open_wire_workload(location: Location) -> WireWorkload:
    """Found the bank of an empty database."""
    return WireWorkload(await create_bank(location))


def bench_payments(database: Database, sizes: Sizes, log: Log) -> Result:
    """Run the comparison and return its figures."""
    with ExitStack() as stack:
        bare = baseline_process(database.empty_database("bare"), sizes.customers)
        stack.callback(bare.close)
        location = database.location("payments")
        engines = [_engine(stack, location)]
        log(f"creating {sizes.customers:,} customers with a counterparty each")
        payees = engines[0].prepare(("create", sizes.customers))[:_MAX_PAYERS]
        engines.append(_engine(stack, location))
        variants = {"1 process": engines[:1], "2 processes": engines}
        bares: list[float] = []
        wires: dict[str, list[float]] = {name: [] for name in variants}
        for number in range(1, sizes.runs + 1):
            log(f"run {number}: {BARE}")
            bares.append(rate(bare.run(sizes.bare_transfers)))
            for name, variant in variants.items():
                log(f"run {number}: wires, {name}")
                wires[name].append(_pass(f"{number}, {name}", variant, payees))
        peaks = {
            "bare": bare.peak_memory_mib(),
            "engine": max(each.peak_memory_mib() for each in engines),
            **peak_memory_of_server(database.pid),
        }
        clearing, memory = _clearing(engines[0], location, sizes, log=log)
        log("folding the log against the balances")
        check_sums(location)
    return Result(
        name="payments",
        setting={
            "customers": sizes.customers,
            "wires per run": len(payees),
            "ACH entries": sizes.ach_entries,
            "bare transfers per run": sizes.bare_transfers,
            "bare connections": CONNECTIONS,
        },
        figures=_figures(bares, wires) + clearing,
        peak_memory_mib=peaks | memory,
    )


def _clearing(engine: Worker, location: Location, sizes: Sizes, log: Log) -> tuple[list[Figure], dict[str, float]]:
    log(f"{sizes.ach_entries:,} ACH entries wait")
    engine.prepare(("clearing", (sizes.customers, sizes.ach_entries)))
    return ach_figures(location, sizes.ach_entries, log)


def _figures(bares: list[float], wires: dict[str, list[float]]) -> list[Figure]:
    """The baseline, then every way; the limit binds the best one."""
    base = figure(BARE, "per second", bares)
    best = max(wires, key=lambda name: sum(wires[name]))
    queued = [
        figure(f"wires queued, {name}", "per second", rates, against=base, at_least=MIN_RATIO if name == best else None)
        for name, rates in wires.items()
    ]
    return [base, *queued]


def _engine(stack: ExitStack, location: Location) -> Worker:
    engine = Worker(open_wire_workload, location=location)
    stack.callback(engine.close)
    return engine


def _pass(name: str, engines: list[Worker], payees: list[tuple[int, UUID]]) -> float:
    """Let everybody send one wire, shared out over these engines; return wires per second."""
    engines[0].prepare(("morning", None))
    before: int = engines[0].prepare(("count", None))
    for nth, engine in enumerate(engines):
        engine.prepare(("pass", (name, payees[nth :: len(engines)])))
    timings = run_together(engines)
    queued: int = engines[0].prepare(("count", None)) - before
    assert queued == sum(timing.done for timing in timings), "messages are missing"
    return rate(timings)


def _link(nth: int) -> AddCounterparty:
    return AddCounterparty(
        caller="bench",
        key=command_id("link", str(nth)),
        customers=(customer_of(nth),),
        type="wire",
        counterparty_name={"type": "business", "business_name": "Beta LLC"},
        details={"routing_number": "121182904", "identifier": "5647772655"},
        verification="pre_verified",
        is_screened=True,
    )
