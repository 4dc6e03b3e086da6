"""`billfold bench payments`: wires from their approval to the queued message, and ACH at size.

Every customer has one wire approved per pass. It is carried out as the door does that: the request
is read, bills are sold, the money is the rail's and the message waits, in one commit; then the
request is off the agenda. At last a window and a file of many ACH entries.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import ExitStack
from typing import Any
from uuid import UUID

from billfold.bench.ach_files import ach_figures, await_clearing
from billfold.bench.approving import Name, approve_wires
from billfold.bench.bare import CONNECTIONS, bare_child
from billfold.bench.ground import Ground
from billfold.bench.measure import Chapter, Figure, Lap, Say, figure, peak_of_family, rate
from billfold.bench.proof import check_sums
from billfold.bench.racers import Child, run_together
from billfold.bench.sizes import Sizes
from billfold.bench.town import (
    DEPOSIT_CENTS,
    OpenBank,
    Place,
    customer_of,
    deposit,
    found_bank,
    next_morning,
    put_away,
    settle,
    submit_everything,
)
from billfold.engine.approved import carry_out_request
from billfold.flows.counterparty_commands import AddCounterparty
from billfold.kit.clock import monotonic
from billfold.kit.ids import command_id

BARE = "bare transfers"
RATIO_LEAST = 0.4
_PAYERS_MOST = 2_000
"""Customers who send a wire in a pass. All of them leave before the next, which takes longer."""
_QUEUED = """
SELECT (SELECT count(*) FROM wire_message)
     - (SELECT count(*) FROM agenda WHERE kind = 'request.execute')
"""


class Payers:
    """One engine, its customers and their counterparties."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._approved: list[Name] = []

    async def prepare(self, orders: tuple[str, Any]) -> Any:  # noqa: ANN401 - per verb
        """Settle customers, begin the next morning, approve wires, count them, fill ACH."""
        verb, argument = orders
        if verb == "settle":
            portals = await settle(self._bank, range(argument))
            await submit_everything(
                self._bank,
                [deposit(nth, portal, DEPOSIT_CENTS, "first") for nth, portal in portals.items()],
            )
            linked = await submit_everything(self._bank, [_link(nth) for nth in range(argument)])
            await put_away(self._bank.pool)
            return [(nth, UUID(str(each["counterparty_id"]))) for nth, each in enumerate(linked)]
        if verb == "clearing":
            await await_clearing(self._bank, *argument)
        elif verb == "morning":
            await next_morning(self._bank)
        elif verb == "pass":
            name, payees = argument
            self._approved = await approve_wires(self._bank, name, payees)
            self._bank.engine.forget_all()
            gc.collect()
        else:
            return await self._bank.pool.fetchval(_QUEUED)
        return None

    async def run(self) -> Lap:
        """Carry out the wires of the pass, all at once."""
        started = monotonic()
        await asyncio.gather(*(carry_out_request(self._bank, *name) for name in self._approved))
        return Lap(len(self._approved), started, monotonic())

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()


async def open_payers(place: Place) -> Payers:
    """Found the bank of an empty database."""
    return Payers(await found_bank(place))


def bench_payments(ground: Ground, sizes: Sizes, say: Say) -> Chapter:
    """Run the comparison and return its figures."""
    with ExitStack() as stack:
        bare = bare_child(ground.empty_database("bare"), sizes.customers)
        stack.callback(bare.close)
        place = ground.place("payments")
        engines = [_engine(stack, place)]
        say(f"settling {sizes.customers:,} customers with a counterparty each")
        payees = engines[0].prepare(("settle", sizes.customers))[:_PAYERS_MOST]
        engines.append(_engine(stack, place))
        ways = {"1 process": engines[:1], "2 processes": engines}
        bares: list[float] = []
        wires: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(1, sizes.runs + 1):
            say(f"run {number}: {BARE}")
            bares.append(rate(bare.run(sizes.bare_transfers)))
            for name, way in ways.items():
                say(f"run {number}: wires, {name}")
                wires[name].append(_pass(f"{number}, {name}", way, payees))
        peaks = {
            "bare": bare.peak_memory_mib(),
            "engine": max(each.peak_memory_mib() for each in engines),
            **peak_of_family(ground.pid),
        }
        clearing, memory = _clearing(engines[0], place, sizes, say)
        say("folding the log against the balances")
        check_sums(place)
    return Chapter(
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


def _clearing(
    engine: Child, place: Place, sizes: Sizes, say: Say
) -> tuple[list[Figure], dict[str, float]]:
    say(f"{sizes.ach_entries:,} ACH entries wait")
    engine.prepare(("clearing", (sizes.customers, sizes.ach_entries)))
    return ach_figures(place, sizes.ach_entries, say)


def _figures(bares: list[float], wires: dict[str, list[float]]) -> list[Figure]:
    """The baseline, then every way; the limit binds the best one."""
    base = figure(BARE, "per second", bares)
    best = max(wires, key=lambda name: sum(wires[name]))
    queued = [
        figure(
            f"wires queued, {name}", "per second", rates, against=base,
            at_least=RATIO_LEAST if name == best else None,
        )
        for name, rates in wires.items()
    ]  # fmt: skip
    return [base, *queued]


def _engine(stack: ExitStack, place: Place) -> Child:
    engine = Child(open_payers, place=place)
    stack.callback(engine.close)
    return engine


def _pass(name: str, engines: list[Child], payees: list[tuple[int, UUID]]) -> float:
    """Let everybody send one wire, shared out over these engines; return wires per second."""
    engines[0].prepare(("morning", None))
    before: int = engines[0].prepare(("count", None))
    for nth, engine in enumerate(engines):
        engine.prepare(("pass", (name, payees[nth :: len(engines)])))
    laps = run_together(engines)
    queued: int = engines[0].prepare(("count", None)) - before
    assert queued == sum(lap.done for lap in laps), "messages are missing"
    return rate(laps)


def _link(nth: int) -> AddCounterparty:
    return AddCounterparty(
        caller="bench",
        key=command_id("link", str(nth)),
        customers=(customer_of(nth),),
        type="wire",
        counterparty_name={"type": "business", "business_name": "Beta LLC"},
        details={"routing_number": "121182904", "identifier": "5647772655"},
        verification="pre_verified",
    )
