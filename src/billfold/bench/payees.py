"""The people of `transfers`: everybody funded, everybody with one payee he may pay."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

from billfold.bench.load import Credentials
from billfold.bench.partner import enrol_partner, introduce
from billfold.bench.racers import Child
from billfold.bench.town import (
    DEPOSIT_CENTS,
    OpenBank,
    Place,
    deposit,
    found_bank,
    next_morning,
    put_away,
    settle,
    submit_everything,
)

_DONE = "SELECT count(*) FROM transfer WHERE status = 'COMPLETED'"


class Payees:
    """Settles them, turns the clock, and counts what was transferred."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank

    async def prepare(self, orders: tuple[str, int]) -> Any:  # noqa: ANN401 - per verb
        """Settle a number, make the partner, let a day pass, or count."""
        verb, number = orders
        if verb == "settle":
            return await self._settle(number)
        if verb == "partner":
            credentials: Credentials = await enrol_partner(self._bank)
            return credentials
        if verb == "morning":
            return await next_morning(self._bank)
        return await self._bank.pool.fetchval(_DONE)

    async def run(self) -> None:
        """It runs no races."""

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _settle(self, number: int) -> list[tuple[int, UUID]]:
        """Fund everybody and return payers with the counterparty each may pay."""
        portals = await settle(self._bank, range(number))
        await submit_everything(
            self._bank,
            [deposit(nth, portal, DEPOSIT_CENTS, "first") for nth, portal in portals.items()],
        )
        people = list(range(number))
        Random(4).shuffle(people)
        circle = list(zip(people, [*people[1:], people[0]], strict=True))
        counterparties = await introduce(self._bank, circle)
        await put_away(self._bank.pool)
        return [(payer, known) for (payer, _), known in zip(circle, counterparties, strict=True)]


async def open_payees(place: Place) -> Payees:
    """Found the bank of an empty database."""
    return Payees(await found_bank(place))


def payees_child(place: Place) -> Child:
    """Return them in a process of its own."""
    return Child(open_payees, place=place)
