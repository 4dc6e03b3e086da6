"""All operations of the sandbox, ready to be mounted on the Partner API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from litestar import Router
from litestar.di import Provide

from billfold.engine.bank import Bank
from billfold.engine.stepping import Stepping
from billfold.interfaces.sandbox import clock, money, people
from billfold.interfaces.sandbox.simulation import Simulation

HANDLERS: Sequence[Any] = (
    money.fund,
    money.wire,
    people.enrol,
    people.set_pocket,
    clock.show,
    clock.advance,
    clock.set_clock,
    clock.run_to_next_event,
    clock.freeze,
    clock.resume,
)


def sandbox_router(simulation: Simulation) -> Router:
    """Return the routes, with the simulated world they let act and the clock they move."""
    walking: list[Stepping] = []

    async def stepping_of(bank: Bank) -> Stepping:
        if not walking:
            walking.append(Stepping(bank))
        return walking[0]

    async def simulated() -> Simulation:
        return simulation

    return Router(
        "/",
        route_handlers=list(HANDLERS),
        dependencies={"stepping": Provide(stepping_of), "simulation": Provide(simulated)},
    )
