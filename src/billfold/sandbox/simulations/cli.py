"""`billfold sandbox simulations`."""

from typing import Annotated

import msgspec
import typer

from billfold.cli.output import console, table
from billfold.sandbox.simulations.catalogue import magic_values, simulations


def list_simulations(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, for programs.")] = False
) -> None:
    """List what a sandbox simulates, and the values that its counterparts obey."""
    found = simulations()
    if as_json:
        values = [each._asdict() for each in magic_values()]
        typer.echo(msgspec.json.encode({"items": found, "magic_values": values}))
        return
    rows = [(each.path.removeprefix("/api/v1/sandbox/"), each.summary, ", ".join(each.events)) for each in found]
    console.print(table("Simulations, below /api/v1/sandbox/", ("path", "what happens", "events"), rows))
    console.print(table("Magic values", ("field", "value", "effect"), [each[1:] for each in magic_values()]))
