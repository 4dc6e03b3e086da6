"""The subject of `engine`: whole on-us transfers between customers through the real engine."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import msgspec

from benchmarks.dataset import (
    DEPOSIT_CENTS,
    PARTNER,
    Location,
    OpenBank,
    advance_to_next_morning,
    create_bank,
    create_customers,
    customer_of,
    deposit,
    open_bank,
    pocket_of,
    submit_commands,
    vacuum_and_checkpoint,
)
from benchmarks.measurements import Timing
from benchmarks.worker_processes import Worker
from billfold.ledger.commands import Command
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.on_us.types import TransferOrder
from billfold.platform.clock import monotonic
from billfold.platform.ids import command_id

Pair = tuple[int, int, int]
"""Payer, payee and cents."""

_MAX_CENTS = 20_000_00
# What one transfer leaves is counted in the database, never taken from the code.
_COUNTS = """
SELECT (SELECT count(*) FROM posting) AS legs, (SELECT count(*) FROM command) AS commands,
       (SELECT count(*) FROM account WHERE kind = 'lot') AS lots,
       (SELECT count(*) FROM transfer WHERE status = 'COMPLETED') AS transfers
"""


class Counts(msgspec.Struct, frozen=True):
    """Rows in the database at one moment."""

    legs: int
    commands: int
    lots: int
    transfers: int

    def since(self, earlier: Counts) -> Counts:
        """Return what was added."""
        return Counts(*(getattr(self, name) - getattr(earlier, name) for name in self.__struct_fields__))


class TransferWorkload:
    """One engine that carries out its share of a pass."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._commands: list[Command] = []
        self._laps = 0

    async def prepare(self, task: tuple[str, list[Pair], bool]) -> None:
        """Turn pairs into commands; `cold` forgets every book."""
        name, pairs, cold = task
        self._commands = [transfer_of(name, nth, pair) for nth, pair in enumerate(pairs)]
        if cold:
            self._bank.engine.forget_all()
        gc.collect()

    async def run(self) -> Timing:
        """Submit the share in one go; every transfer must complete."""
        started = monotonic()
        outcomes = await submit_commands(self._bank, self._commands)
        ended = monotonic()
        assert all(outcome["status"] == "COMPLETED" for outcome in outcomes)
        return Timing(len(outcomes), started, ended)

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()


class BankSetup:
    """Creates the customers, steps the clock and counts its rows; never runs while others do."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank

    async def prepare(self, task: tuple[str, Any]) -> Any:
        """Do what is asked: settle, morning or count."""
        verb, argument = task
        if verb == "create":
            portals = await create_customers(self._bank, range(argument))
            await submit_commands(
                self._bank, [deposit(nth, portal, DEPOSIT_CENTS, occasion="first") for nth, portal in portals.items()]
            )
            await vacuum_and_checkpoint(self._bank.pool)
        elif verb == "morning":
            await advance_to_next_morning(self._bank)
        elif verb == "count":
            return Counts(*(await self._bank.pool.fetchrow(_COUNTS) or ()))
        return None

    async def run(self) -> None:
        """Nothing is timed."""

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()


async def open_transfer_workload(location: Location, lanes: int, batch_limit: int) -> TransferWorkload:
    """Open an engine on a founded bank."""
    return TransferWorkload(await open_bank(location, engine_concurrency=lanes, batch_limit=batch_limit))


async def open_bank_setup(location: Location) -> BankSetup:
    """Found the bank of an empty database."""
    return BankSetup(await create_bank(location))


def transfer_process(location: Location, *, lanes: int, batch_limit: int) -> Worker:
    """Return an engine in a process of its own."""
    return Worker(open_transfer_workload, location=location, lanes=lanes, batch_limit=batch_limit)


def setup_process(location: Location) -> Worker:
    """Return the setup in a process of its own."""
    return Worker(open_bank_setup, location=location)


def draw_pairs(draw: Random, customers: int) -> list[Pair]:
    """Pair everybody with somebody, once: each pair pays a drawn amount in one direction."""
    people = list(range(customers))
    draw.shuffle(people)
    # Fifty cents: the sandbox takes some endings of an amount for a wish to be refused.
    return [
        (payer, payee, draw.randrange(100, _MAX_CENTS // 100) * 100 + 50)
        for payer, payee in zip(people[::2], people[1::2], strict=False)
    ]


def transfer_of(name: str, nth: int, pair: Pair) -> TransferOnUs:
    """Return the command of number `nth` of the pairs under a name."""
    payer, payee, cents = pair
    return TransferOnUs(
        caller="bench",
        key=command_id(name, str(nth)),
        customers=(customer_of(payer), customer_of(payee)),
        transfer_id=None,
        type="PEER_TO_PEER",
        from_pocket_id=pocket_of(payer),
        to_pocket_id=pocket_of(payee),
        amount=cents,
        partner_id=PARTNER,
        order=TransferOrder(description="Invoice"),
    )
