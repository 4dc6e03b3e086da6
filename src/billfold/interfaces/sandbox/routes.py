"""All operations of the sandbox, ready to be mounted on the Partner API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litestar.handlers import HTTPRouteHandler

from billfold.engine.stepping import Stepping
from billfold.interfaces.sandbox import (
    ach,
    clock,
    counterparties,
    custody,
    money,
    people,
    webhook,
    wires,
)

if TYPE_CHECKING:
    from litestar import Litestar

    from billfold.engine.bank import Bank
    from billfold.interfaces.sandbox.simulation import Simulation

ROUTES: list[HTTPRouteHandler] = [
    ach.send_entry,
    ach.submit,
    ach.move,
    money.fund,
    money.wire,
    counterparties.end_verification,
    custody.security_transfer,
    people.enrol,
    people.set_pocket,
    clock.show,
    clock.advance,
    clock.set_clock,
    clock.run_to_next_event,
    clock.freeze,
    clock.resume,
    webhook.simulate,
    wires.submit,
    wires.acknowledge,
    wires.reject,
    wires.give_back,
    wires.ask_for,
]


def set_up(app: Litestar, bank: Bank, simulation: Simulation) -> None:
    """Give the routes of an application the clock they move and the world they let act."""
    app.state.stepping = Stepping(bank)
    app.state.simulation = simulation
