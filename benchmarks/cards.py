"""`billfold bench cards`: decisions about purchases next to whole transfers of the same customers.

Everybody pays once per pass, on a business day of its own, every book loaded from the database. Then single
decisions are timed: one after the other, and on schedule at half of the rate that was just measured.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from datetime import date
from random import Random
from typing import Final

from benchmarks.bank_workload import BankWorkload, check_sums
from benchmarks.dataset import customer_of, pocket_of, submit_commands, transfer
from benchmarks.measurements import Result, Timing, figure, percentile, rate
from benchmarks.session import Session
from billfold.ledger.commands import Command
from billfold.payments.cards.authorizations.commands import AuthorizeCard, EntryMode, Merchant, references_of
from billfold.payments.cards.commands import CreateVirtualCard
from billfold.payments.on_us.commands import TransferOnUs
from billfold.platform.clock import monotonic
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id

MIN_RATIO: Final = 0.5
MAX_LATENCY_RATIO: Final = 3.0
LANES, BATCH_LIMIT = 2, 300
_ALONE_MAX: Final = 500
_MILLISECONDS: Final = 1000
_DELI: Final = Merchant(name="Larkmoor Deli", category_code="5812", city="Vantorp", state="NV", country="US")


class CardWorkload(BankWorkload):
    """One engine that carries out transfers and decides about purchases."""

    async def issue(self) -> None:
        """Give every customer a card."""
        today = et_date(await self._bank.now())
        expires_on = today.replace(year=today.year + 3)
        await submit_commands(self._bank, [_card(nth, expires_on) for nth in self._portals])

    async def transfers(self, name: str, people: Sequence[int]) -> Timing:
        """Have each second of these people paid by the one before; every transfer must complete."""
        pairs = zip(people[::2], people[1::2], strict=False)
        timing, outcomes = await self._pass([_transfer(name, *pair) for pair in pairs])
        assert all(outcome["status"] == "COMPLETED" for outcome in outcomes)
        return timing

    async def purchases(self, name: str, people: Sequence[int]) -> Timing:
        """Have each of these people buy something; every purchase must be approved."""
        timing, outcomes = await self._pass([_purchase(name, nth) for nth in people])
        assert all(outcome["decision"] == "APPROVED" for outcome in outcomes)
        return timing

    async def latencies(self, name: str, people: Sequence[int], per_second: float | None) -> list[float]:
        """Return seconds from each purchase to its decision; at a rate they begin on schedule, else one by one."""
        commands = [_purchase(name, nth) for nth in people]
        if per_second is None:
            return [await self._decide(command, monotonic()) for command in commands]
        # What the generator holds is not the bank's: the collector neither walks it nor finds it growing.
        gc.collect()
        gc.freeze()
        started, deciding = monotonic(), []
        async with asyncio.TaskGroup() as tasks:
            for nth, command in enumerate(commands):
                due = started + nth / per_second
                await asyncio.sleep(max(0.0, due - monotonic()))
                deciding.append(tasks.create_task(self._decide(command, due)))
        gc.unfreeze()
        return [each.result() for each in deciding]

    async def _pass(self, commands: Sequence[Command]) -> tuple[Timing, list[dict[str, object]]]:
        """Submit commands in one go, with cold books."""
        self._forget_books()
        started = monotonic()
        outcomes = await submit_commands(self._bank, commands)
        return Timing(len(outcomes), started, monotonic()), outcomes

    async def _decide(self, command: Command, since: float) -> float:
        answer = await self._bank.engine.submit(command)
        assert answer.outcome["decision"] == "APPROVED"
        return monotonic() - since


def bench_cards(session: Session) -> Result:
    """Run transfers and purchases in every round and return the figures."""
    customers, location = session.sizes.customers, session.database.location("cards")
    bank = session.bank(location, CardWorkload, engine_concurrency=LANES, batch_limit=BATCH_LIMIT)
    session.log(f"creating {customers:,} customers with a card each")
    bank.call("create", customers)
    bank.call("issue")
    draw, people = Random(2), list(range(customers))
    transfers, authorized, alone, loaded = list[float](), list[float](), list[float](), list[float]()
    for number in range(1, session.sizes.runs + 1):
        bank.call("morning")
        draw.shuffle(people)
        session.log(f"run {number}: whole transfers")
        transfers.append(rate([bank.call("transfers", f"run {number}", people)]))
        draw.shuffle(people)
        session.log(f"run {number}: authorizations")
        authorized.append(rate([bank.call("purchases", f"run {number}", people)]))
        session.log(f"run {number}: one at a time, and at half load")
        seconds = bank.call("latencies", f"alone {number}", people[:_ALONE_MAX], None)
        alone.append(percentile(seconds, 99) * _MILLISECONDS)
        seconds = bank.call("latencies", f"half load {number}", people, authorized[-1] / 2)
        loaded.append(percentile(seconds, 99) * _MILLISECONDS)
    peaks = session.peaks(engine=bank.peak_memory_mib())
    session.log("folding the log against the balances")
    check_sums(location)
    base, unloaded = figure("whole transfers", "per second", transfers), figure("p99 of a decision alone", "ms", alone)
    return Result(
        name="cards",
        setting={"customers": customers, "lanes x batch": f"{LANES} x {BATCH_LIMIT}"},
        figures=[
            base,
            figure("authorizations", "per second", authorized, against=base, at_least=MIN_RATIO),
            unloaded,
            figure("p99 at half load", "ms", loaded, against=unloaded, at_most=MAX_LATENCY_RATIO),
        ],
        peak_memory_mib=peaks,
    )


def _transfer(name: str, payer: int, payee: int) -> TransferOnUs:
    # Fifty cents: the sandbox takes some endings of an amount for a wish to be refused.
    cents = (100 + payer * 7919 % 20_000) * 100 + 50
    return transfer(command_id(name, str(payer)), (payer, pocket_of(payer)), (payee, pocket_of(payee)), cents)


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
