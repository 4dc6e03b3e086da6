"""`billfold bench cards`: purchases authorised by the engine, beside whole transfers of the same customers and day.

Everybody pays once by card: the books are read from the database, bills are sold and their cash is held. Then the time
of one decision: alone, and while purchases come at half the rate that was measured, on schedule.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import ExitStack
from datetime import date
from random import Random
from typing import Any, Final

from benchmarks.dataset import Location, OpenBank, customer_of, open_bank, pocket_of, submit_commands
from benchmarks.engine_transfers import draw_pairs, setup_process, transfer_process
from benchmarks.ledger_checks import check_sums
from benchmarks.measurements import Log, Result, Timing, figure, peak_memory_of_server, percentile, rate
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker
from billfold.ledger.commands import Command
from billfold.payments.cards.authorizations.commands import AuthorizeCard, references_of
from billfold.payments.cards.authorizations.types import EntryMode, Merchant
from billfold.payments.cards.commands import CreateVirtualCard
from billfold.platform.clock import monotonic
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id

MIN_RATIO: Final = 0.5
MAX_LATENCY_RATIO: Final = 3.0
LANES, BATCH_LIMIT = 2, 300
_ALONE_MAX: Final = 500
_MILLISECONDS: Final = 1000
_DELI: Final = Merchant(name="Larkmoor Deli", category_code="5812", city="Vantorp", state="NV", country="US")


class CardWorkload:
    """One engine that decides about purchases."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._commands: list[Command] = []

    async def prepare(self, task: tuple[str, Any]) -> Any:
        """Issue cards, make the purchases of a pass, or time decisions one by one."""
        verb, argument = task
        if verb == "issue":
            today = et_date(await self._bank.now())
            await submit_commands(
                self._bank, [_card(nth, today.replace(year=today.year + 3)) for nth in range(argument)]
            )
        elif verb == "pass":
            name, people = argument
            self._commands = [_purchase(name, nth) for nth in people]
            self._bank.engine.forget_all()
            gc.collect()
        else:
            return await self._latencies(*argument)
        return None

    async def run(self) -> Timing:
        """Submit the pass in one go; every purchase must be approved."""
        started = monotonic()
        outcomes = await submit_commands(self._bank, self._commands)
        ended = monotonic()
        assert all(outcome["decision"] == "APPROVED" for outcome in outcomes)
        return Timing(len(outcomes), started, ended)

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _latencies(self, name: str, people: list[int], per_second: float | None) -> list[float]:
        """Return seconds from each purchase to its decision; at a rate they begin on schedule, else one by one."""
        commands = [_purchase(name, nth) for nth in people]
        if per_second is None:
            return [await self._decide(command, monotonic()) for command in commands]
        # What the generator holds is not the bank's: the collector neither walks it nor finds it growing.
        gc.collect()
        gc.freeze()
        latencies, started = list[float](), monotonic()
        async with asyncio.TaskGroup() as deciding:
            for nth, command in enumerate(commands):
                due = started + nth / per_second
                await asyncio.sleep(max(0.0, due - monotonic()))
                deciding.create_task(self._decide(command, due)).add_done_callback(
                    lambda decided: latencies.append(decided.result())
                )
        gc.unfreeze()
        return latencies

    async def _decide(self, command: Command, since: float) -> float:
        answer = await self._bank.engine.submit(command)
        assert answer.outcome["decision"] == "APPROVED"
        return monotonic() - since


async def open_card_workload(location: Location) -> CardWorkload:
    """Open an engine on a founded bank."""
    return CardWorkload(await open_bank(location, engine_concurrency=LANES, batch_limit=BATCH_LIMIT))


class CardComparison:
    """The processes of the comparison, on one database."""

    def __init__(self, database: Database, sizes: Sizes, log: Log, stack: ExitStack) -> None:
        self._sizes, self._log, self._draw = sizes, log, Random(2)
        self.location = database.location("cards")
        self._setup = setup_process(self.location)
        stack.callback(self._setup.close)
        log(f"creating {sizes.customers:,} customers with a card each")
        self._setup.prepare(("create", sizes.customers))
        self._transfers = transfer_process(self.location, lanes=LANES, batch_limit=BATCH_LIMIT)
        stack.callback(self._transfers.close)
        self.cards = Worker(open_card_workload, location=self.location)
        stack.callback(self.cards.close)
        self.cards.prepare(("issue", sizes.customers))

    def round(self, number: int) -> tuple[float, float, float, float]:
        """Return transfers and authorisations per second, and the p99 of a decision alone and at half load in ms."""
        self._setup.prepare(("morning", None))
        pairs = draw_pairs(self._draw, self._sizes.customers)
        self._log(f"run {number}: whole transfers")
        transfers = rate([self._transfers.run((f"run {number}", pairs, True))])
        people = list(range(self._sizes.customers))
        self._draw.shuffle(people)
        self._log(f"run {number}: authorisations")
        authorised = rate([self.cards.run(("pass", (f"run {number}", people)))])
        self._log(f"run {number}: one at a time, and at half load")
        alone = self.cards.prepare(("latency", (f"alone {number}", people[:_ALONE_MAX], None)))
        loaded = self.cards.prepare(("latency", (f"half load {number}", people, authorised / 2)))
        return transfers, authorised, percentile(alone, 99) * _MILLISECONDS, percentile(loaded, 99) * _MILLISECONDS


def bench_cards(database: Database, sizes: Sizes, log: Log) -> Result:
    """Run the comparison and return its figures."""
    with ExitStack() as stack:
        comparison = CardComparison(database, sizes, log, stack)
        rounds = [comparison.round(number) for number in range(1, sizes.runs + 1)]
        peaks = {"engine": comparison.cards.peak_memory_mib(), **peak_memory_of_server(database.pid)}
        log("folding the log against the balances")
        check_sums(comparison.location)
    transfers, authorised, alone, loaded = (list(each) for each in zip(*rounds, strict=True))
    base, unloaded = figure("whole transfers", "per second", transfers), figure("p99 of a decision alone", "ms", alone)
    return Result(
        name="cards",
        setting={"customers": sizes.customers, "lanes x batch": f"{LANES} x {BATCH_LIMIT}"},
        figures=[
            base,
            figure("authorisations", "per second", authorised, against=base, at_least=MIN_RATIO),
            unloaded,
            figure("p99 at half load", "ms", loaded, against=unloaded, at_most=MAX_LATENCY_RATIO),
        ],
        peak_memory_mib=peaks,
    )


def _card(nth: int, expires_on: date) -> CreateVirtualCard:
    return CreateVirtualCard(
        caller="bench",
        key=command_id("card", str(nth)),
        customers=(customer_of(nth),),
        card_id=command_id("card", str(nth)),
        pocket_id=pocket_of(nth),
        name="Debit card",
        last_four="4242",
        expires_on=expires_on,
    )


def _purchase(name: str, nth: int) -> AuthorizeCard:
    """Return a purchase of $12.50 by customer number `nth`."""
    card_id, reference = command_id("card", str(nth)), f"{name}:{nth}".replace(" ", "-")
    return AuthorizeCard(
        caller="bench",
        key=command_id("purchase", f"{name}:{nth}"),
        customers=(customer_of(nth),),
        references=references_of(card_id, reference),
        card_id=card_id,
        network_reference=reference,
        merchant=_DELI,
        entry_mode=EntryMode.CHIP,
        amount=12_50,
    )
