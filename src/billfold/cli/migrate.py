"""`billfold migrate`: the shape of the database, and the bank founded in it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from billfold.cli.context import CliError, cli_context
from billfold.cli.output import console, example, print_line, print_success
from billfold.platform.logs import configure_logging

app = typer.Typer(
    no_args_is_help=True,
    help="Bring the database to this release's shape, or back.",
    epilog=example("billfold migrate up"),
)


@app.command(epilog=example("billfold migrate up"))
def up(ctx: typer.Context) -> None:
    """Apply what is pending, and found the bank if there is none yet."""
    ground = cli_context(ctx)
    settings = ground.settings()
    configure_logging("ERROR")  # a command says itself what came of it
    with ground.database(settings, print_line) as database:

        async def run() -> list[str]:
            steps = await ground.migrate_up(database.dsn, print_line)
            await ground.initialize_database(settings, database.dsn)
            return steps

        steps = asyncio.run(run())
    print_success(f"{len(steps)} steps applied." if steps else "Nothing was pending.")


@app.command(epilog=example("billfold migrate down --to 0 --yes"))
def down(
    ctx: typer.Context,
    *,
    to: Annotated[int, typer.Option(min=0, help="The version to go back to.")] = 0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take steps back. What they held is lost."""
    ground = cli_context(ctx)
    settings = ground.settings()
    if settings.is_production:
        raise CliError(
            "The steps of a real bank are not taken back: its ledger would be lost.",
            "Restore a backup taken before the step instead.",
        )
    if not yes and not typer.confirm(f"Everything above version {to} will be lost. Go on?"):
        raise typer.Abort
    with ground.database(settings, print_line) as database:
        steps = asyncio.run(ground.migrate_down(database.dsn, to))
    print_success(f"Taken back: {', '.join(steps) or 'nothing'}.")


@app.command(epilog=example("billfold migrate status"))
def status(ctx: typer.Context) -> None:
    """Say which steps are still to be done; ends with 1 when there are any."""
    ground = cli_context(ctx)
    with ground.database(ground.settings(), lambda _: None) as database:
        steps = asyncio.run(ground.pending_migrations(database.dsn))
    for step in steps:
        console.print(f"pending: {step}")
    if steps:
        raise CliError(f"{len(steps)} steps are pending.", "Run `billfold migrate up`.")
    print_success("The database has this release's shape.")
