"""`billfold bench`: the benchmarks of the source checkout. The wheel does not include them."""

from __future__ import annotations

from importlib import import_module

import typer

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError

top = CommandGroup()
ARGUMENTS_AS_THEY_ARE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@top.command("bench", context_settings=ARGUMENTS_AS_THEY_ARE)
def bench(ctx: typer.Context) -> None:
    """Measure this machine on a temporary database; `--help` lists the options in a checkout."""
    try:
        app = import_module("benchmarks.cli").app
    except ModuleNotFoundError:
        raise CliError("The benchmarks come with the source checkout.", "Clone it and run `make bench`.") from None
    raise typer.Exit(app(ctx.args, prog_name="billfold bench", standalone_mode=False))
