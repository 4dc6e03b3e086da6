"""`billfold openapi` and `billfold deprecations`: what the API is, and who calls what will go."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from billfold.cli.context import cli_context
from billfold.cli.output import console, example, print_success, table
from billfold.cli.resources import run_with_connection

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection

openapi = typer.Typer(
    no_args_is_help=True, help="Print an OpenAPI document.", epilog=example("billfold openapi partner > partner.json")
)

_CALLS = """
SELECT p.slug, u.username, d.operation, d.calls, d.first_at, d.last_at
  FROM deprecated_call d
  LEFT JOIN partner_user u ON u.user_id = d.caller LEFT JOIN partner p USING (partner_id)
 ORDER BY d.last_at DESC, d.operation
"""


@openapi.callback()
def about() -> None:
    """Print an OpenAPI document."""


@openapi.command(epilog=example("billfold openapi auth > auth.json"))
def auth(ctx: typer.Context) -> None:
    """Print the OpenAPI 3.1 document of the authorization server; it needs no database."""
    ground = cli_context(ctx)
    sys.stdout.buffer.write(ground.auth_openapi(ground.settings()) + b"\n")


@openapi.command(epilog=example("billfold openapi partner --all > partner.json"))
def partner(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Deprecated operations as well.")] = False,
) -> None:
    """Print the OpenAPI 3.1 document of the Partner API; it needs no database."""
    ground = cli_context(ctx)
    sys.stdout.buffer.write(ground.openapi(ground.settings(), everything=everything) + b"\n")


@openapi.command(epilog=example("billfold openapi customer > customer.json"))
def customer(ctx: typer.Context) -> None:
    """Print the OpenAPI 3.1 document of the Customer API; it needs no database."""
    ground = cli_context(ctx)
    sys.stdout.buffer.write(ground.customer_openapi(ground.settings()) + b"\n")


def deprecations(ctx: typer.Context) -> None:
    """List who still calls operations that will go away, and how often."""

    async def work(conn: Connection) -> list[Record]:
        return list(await conn.fetch(_CALLS))

    rows = run_with_connection(cli_context(ctx), work)
    if not rows:
        print_success("Nobody has called a deprecated operation.")
        return
    console.print(
        table(
            "",
            ("partner", "user", "operation", "calls>", "first", "last"),
            [
                (
                    row["slug"] or "-",
                    row["username"] or "-",
                    row["operation"],
                    row["calls"],
                    f"{row['first_at']:%Y-%m-%d}",
                    f"{row['last_at']:%Y-%m-%d %H:%M}",
                )
                for row in rows
            ],
        )
    )
