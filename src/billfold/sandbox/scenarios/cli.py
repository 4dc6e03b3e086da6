"""`billfold sandbox play`."""

from typing import Annotated

import typer

from billfold.cli.context import CliContext, CliError
from billfold.cli.output import console, key_value_table
from billfold.sandbox.control.cli import run_task
from billfold.sandbox.scenarios.playing import SCENARIOS


def play(
    context: CliContext,
    name: Annotated[str, typer.Argument(help="The scenario.")] = "",
    *,
    list_all: Annotated[bool, typer.Option("--list", help="List the scenarios.")] = False,
) -> str | None:
    """Play a scenario: real objects and events of a customer of its own, while the clock goes on."""
    if list_all:
        console.print(key_value_table((each.name, each.description) for each in SCENARIOS.values()))
        return None
    if name not in SCENARIOS:
        raise CliError(f"There is no scenario {name!r}.", "See `billfold sandbox play --list`.")
    run_task(context, f"/scenarios/{name}/play/")
    return f"{name} has been played. `billfold sandbox reset` returns to the bank of the beginning."
