"""`billfold simulate`: the simulation of the source checkout. The wheel does not include it."""

from importlib import import_module

import typer

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError
from billfold.wiring.cli.bench import ARGUMENTS_AS_THEY_ARE

top = CommandGroup()


@top.command("simulate", context_settings=ARGUMENTS_AS_THEY_ARE)
def simulate(ctx: typer.Context) -> None:
    """Run the whole bank in one process on simulated time, with faults at every step, in a checkout."""
    try:
        app = import_module("simulation.cli").app
    except ModuleNotFoundError:
        raise CliError("The simulation comes with the source checkout.", "Clone it.") from None
    raise typer.Exit(app(ctx.args, prog_name="billfold simulate", standalone_mode=False))
