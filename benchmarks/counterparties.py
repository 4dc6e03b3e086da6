"""The people of `transfers`: everybody funded, everybody with one payee he may pay."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

from benchmarks.dataset import (
    DEPOSIT_CENTS,
    Location,
    OpenBank,
    advance_to_next_morning,
    create_bank,
    create_customers,
    deposit,
    submit_commands,
    vacuum_and_checkpoint,
)
from benchmarks.load_generator import Credentials
from benchmarks.partner_setup import add_counterparties, create_partner
from benchmarks.worker_processes import Worker

_DONE = "SELECT count(*) FROM transfer WHERE status = 'COMPLETED'"


class CounterpartySetup:
    """Settles them, turns the clock, and counts what was transferred."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank

    async def prepare(self, task: tuple[str, int]) -> Any:
        """Settle a number, make the partner, let a day pass, or count."""
        verb, number = task
        if verb == "create":
            return await self._create(number)
        if verb == "partner":
            credentials: Credentials = await create_partner(self._bank)
            return credentials
        if verb == "morning":
            return await advance_to_next_morning(self._bank)
        return await self._bank.pool.fetchval(_DONE)

    async def run(self) -> None:
        """Nothing is timed."""

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _create(self, number: int) -> list[tuple[int, UUID]]:
        """Fund everybody and return payers with the counterparty each may pay."""
        portals = await create_customers(self._bank, range(number))
        await submit_commands(
            self._bank, [deposit(nth, portal, DEPOSIT_CENTS, occasion="first") for nth, portal in portals.items()]
        )
        people = list(range(number))
        Random(4).shuffle(people)
        circle = list(zip(people, [*people[1:], people[0]], strict=True))
        counterparties = await add_counterparties(self._bank, circle)
        await vacuum_and_checkpoint(self._bank.pool)
        return [(payer, known) for (payer, _), known in zip(circle, counterparties, strict=True)]


async def open_counterparty_setup(location: Location) -> CounterpartySetup:
    """Found the bank of an empty database."""
    return CounterpartySetup(await create_bank(location))


def counterparty_process(location: Location) -> Worker:
    """Return them in a process of its own."""
    return Worker(open_counterparty_setup, location=location)
