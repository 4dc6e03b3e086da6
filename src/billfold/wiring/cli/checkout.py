"""`billfold bench` and `billfold simulate`: programs of the source checkout. The wheel does not include them."""

from importlib import import_module
from typing import NoReturn

import typer

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError

top = CommandGroup()
ARGUMENTS_AS_THEY_ARE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@top.command("bench", context_settings=ARGUMENTS_AS_THEY_ARE)
def bench(ctx: typer.Context) -> None:
    """Measure this machine on a temporary database; `--help` lists the options in a checkout."""
    _run(ctx, "bench", "benchmarks.cli")


@top.command("simulate", context_settings=ARGUMENTS_AS_THEY_ARE)
def simulate(ctx: typer.Context) -> None:
    """Run the whole bank in one process on simulated time, with faults at every step, in a checkout."""
    _run(ctx, "simulate", "simulation.cli")


def _run(ctx: typer.Context, command: str, module: str) -> NoReturn:
    try:
        app = import_module(module).app
    except ModuleNotFoundError:
        raise CliError(f"The {module.partition('.')[0]} program comes with the source checkout.", "Clone it.") from None
    raise typer.Exit(app(ctx.args, prog_name=f"billfold {command}", standalone_mode=False))
