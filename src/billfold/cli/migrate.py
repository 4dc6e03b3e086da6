"""`billfold migrate`: the schema of the database, and the initialization of the bank."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import asyncpg
import typer

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError
from billfold.cli.output import console, print_line
from billfold.cli.resources import with_connection
from billfold.migrations import runner
from billfold.platform.logs import configure_logging

if TYPE_CHECKING:
    from billfold.cli.context import CliContext
    from billfold.platform.database.pool import Connection

_CREATE = (
    "Let an administrator create the database, its owner and the role billfold_app as docs/operate/install.md shows:"
    " `CREATE ROLE billfold_app NOLOGIN; GRANT billfold_app TO <the owner>;`. Migrate as the owner."
)

group = CommandGroup("migrate", "Migrate the database to this release's schema, or back.", example="up")


@group.command("up")
def up(
    context: CliContext,
    *,
    new_domain: Annotated[
        bool, typer.Option("--new-domain", help="The bank moves to BILLFOLD_DOMAIN; passkeys are registered again.")
    ] = False,
) -> str:
    """Apply pending migrations, and initialize the bank if there is none yet."""
    settings = context.settings()
    configure_logging("ERROR")  # a command prints its own result
    with context.database(settings, print_line) as database:

        async def run() -> list[str]:
            steps = await with_connection(database.dsn, _migrate)
            await context.initialize_database(settings, database.dsn, new_domain=new_domain, progress=print_line)
            return steps

        steps = asyncio.run(run())
    return f"{len(steps)} migrations applied." if steps else "Nothing was pending."


async def _migrate(conn: Connection) -> list[str]:
    encoding = await conn.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise CliError(f"The database's encoding is {encoding}, not UTF8.", _CREATE)
    try:
        return await runner.up(conn, print_line)
    except asyncpg.InsufficientPrivilegeError as error:
        raise CliError(f"This user may not migrate the database: {error.args[0]}.", _CREATE) from error


@group.command("down --to 0 --yes")
def down(
    context: CliContext,
    *,
    to: Annotated[int, typer.Option(min=0, help="The version to go back to.")] = 0,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
) -> str:
    """Revert migrations. Their data is lost."""
    settings = context.settings()
    if settings.is_production:
        raise CliError(
            "Migrations of a production bank cannot be reverted: its ledger would be lost.",
            "Restore a backup taken before the migration instead.",
        )
    if not yes and not typer.confirm(f"Everything above version {to} will be lost. Continue?"):
        raise typer.Abort
    with context.database(settings, print_line) as database:
        steps = asyncio.run(with_connection(database.dsn, lambda conn: runner.down(conn, to)))
    return f"Reverted: {', '.join(steps) or 'nothing'}."


@group.command("status")
def status(context: CliContext) -> str:
    """List pending migrations; exits with 1 when there are any."""
    with context.database(context.settings(), lambda _: None) as database:
        steps = asyncio.run(with_connection(database.dsn, runner.pending))
    for step in steps:
        console.print(f"pending: {step}")
    if steps:
        raise CliError(f"{len(steps)} migrations are pending.", "Run `billfold migrate up`.")
    return "The database schema is up to date."
