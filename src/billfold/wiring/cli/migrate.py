"""`billfold migrate`: the schema of the database, and the initialization of the bank."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Annotated

import asyncpg
import typer

from billfold.cli.command import CommandGroup, Row, console, print_line, print_warning
from billfold.cli.context import CliError, with_connection
from billfold.migrations import distribution, runner
from billfold.migrations.cluster_requirements import list_shortfalls
from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import is_distributed
from billfold.platform.settings.settings import Settings
from billfold.wiring.cli_context import Wiring

_CREATE = (
    "Let an administrator create the database, its owner and the role billfold_app as docs/operate/install.md shows:"
    " `CREATE ROLE billfold_app NOLOGIN; GRANT billfold_app TO <the owner>;`. Migrate as the owner."
)
_USED_BY = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'billfold' AND pid <> pg_backend_pid()
"""
_OTHER_OWNER = """
SELECT pg_get_userbyid(relowner) FROM pg_class
 WHERE oid = to_regclass('ledger_head') AND pg_get_userbyid(relowner) <> current_user
"""

_CLUSTER = "docs/operate/distributed.md"

group = CommandGroup("migrate", "Migrate the database to this release's schema, or back.", example="up")


@group.command("up")
def up(
    context: Wiring,
    *,
    new_domain: Annotated[
        bool, typer.Option("--new-domain", help="The bank moves to BILLFOLD_DOMAIN; passkeys are registered again.")
    ] = False,
    while_serving: Annotated[
        bool, typer.Option("--while-serving", help="Apply also what needs a stop while processes run: requests fail.")
    ] = False,
    distributed: Annotated[
        bool, typer.Option("--distributed", help="Distribute an empty database over the nodes of a Citus cluster.")
    ] = False,
) -> str:
    """Apply pending migrations, and initialize the bank if there is none yet.

    The bank may be in use, unless `billfold migrate plan` says that one needs a stop. Can be stopped and resumed.
    """
    settings = context.settings()
    with context.database(settings, print_line) as database:

        async def run() -> list[str]:
            if distributed:
                await with_connection(database.owner_dsn, partial(_check_cluster, settings))
            steps = await with_connection(database.owner_dsn, partial(_migrate, while_serving=while_serving))
            await with_connection(database.owner_dsn, partial(_distribute, wanted=distributed))
            await context.initialize_database(settings, database.owner_dsn, new_domain=new_domain)
            return steps

        steps = asyncio.run(run())
    return f"{len(steps)} migrations applied." if steps else "Nothing was pending."


async def _check_cluster(settings: Settings, conn: Connection) -> None:
    """Raise CliError if there is no cluster, or if it lacks something that production needs."""
    if not await distribution.has_citus(conn):
        raise CliError("This database has no Citus.", "CREATE EXTENSION citus, and add its nodes: " + _CLUSTER)
    lacks = await list_shortfalls(conn) if settings.is_production else []
    if lacks:
        raise CliError("\n  ".join(["The cluster is not ready for production. It lacks:", *lacks]), f"See {_CLUSTER}.")


async def _distribute(conn: Connection, *, wanted: bool) -> None:
    """Distribute the database if requested, or the additions to a distributed one."""
    if not wanted and not await is_distributed(conn):
        return
    for name in await distribution.distribute(conn, print_line):
        print_line(f"Not kept by the database here: {name}")


async def _migrate(conn: Connection, *, while_serving: bool) -> list[str]:
    encoding = await conn.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise CliError(f"The database's encoding is {encoding}, not UTF8.", _CREATE)
    if not await runner.is_empty(conn):
        await _require_owner(conn)
        await _announce_stop(conn, while_serving=while_serving)
    try:
        return await runner.up(conn, print_line)
    except asyncpg.InsufficientPrivilegeError as error:
        raise CliError(f"This user may not migrate the database: {error.args[0]}.", _CREATE) from error


async def _require_owner(conn: Connection) -> None:
    """Raise CliError if something is pending and another user owns the tables: new ones would lack its grants."""
    owner = await conn.fetchval(_OTHER_OWNER)
    if owner is not None and await runner.pending(conn):
        raise CliError(
            f"The tables belong to {owner}: the application could not read tables that another user creates.",
            f"Name {owner} in BILLFOLD_DATABASE_OWNER_URL, or ?role={owner} there if its user is a member of it.",
        )


async def _announce_stop(conn: Connection, *, while_serving: bool) -> None:
    """Report migrations that need a stop. Raises CliError if there are any and the bank is in use."""
    stopping = [step for step in await runner.plan(conn) if step.stop_reason]
    for step in stopping:
        print_warning(f"{step.name} needs a stop: {step.stop_reason}.")
    used_by = await conn.fetchval(_USED_BY) if stopping else 0
    if used_by and not while_serving:
        raise CliError(
            f"The bank is in use: {used_by} connections of `serve`, `worker` or a command are open.",
            "Stop every process of the bank, then repeat; --while-serving continues regardless.",
        )


@group.command("down --to 0 --yes")
def down(
    context: Wiring,
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
        steps = asyncio.run(with_connection(database.owner_dsn, lambda conn: runner.down(conn, to)))
    return f"Reverted: {', '.join(steps) or 'nothing'}."


@group.table("plan", columns=("migration", "the bank", "how"), empty="Nothing is pending.")
def plan(context: Wiring) -> Iterable[Row]:
    """List what `billfold migrate up` would do, and whether the bank may be in use during it."""
    with context.database(context.settings(), lambda _: None) as database:
        steps = asyncio.run(with_connection(database.dsn, runner.plan))
    return [
        (
            step.name,
            f"needs a stop: {step.stop_reason}" if step.stop_reason else "may be in use",
            "in one transaction" if step.in_transaction else "statement by statement, without blocking writes",
        )
        for step in steps
    ]


@group.command("status")
def status(context: Wiring) -> str:
    """List pending migrations, and which schemas this release runs on; exits with 1 when there are any."""
    with context.database(context.settings(), lambda _: None) as database:
        steps = asyncio.run(with_connection(database.dsn, runner.plan))
    for step in steps:
        console.print(f"pending: {step.name}{f' (needs a stop: {step.stop_reason})' if step.stop_reason else ''}")
    newest = runner.read_migrations()[-1].version
    console.print(f"This release runs on schema {newest:04}, and on later ones compatible with it.")
    if steps:
        raise CliError(f"{len(steps)} migrations are pending.", "Run `billfold migrate up`.")
    return "The database schema is up to date."
