"""`billfold openapi` and `billfold deprecations`: the APIs, and who calls deprecated operations."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from billfold.cli.command import CommandGroup, Row

if TYPE_CHECKING:
    from billfold.cli.context import CliContext
    from billfold.platform.database.pool import Connection

group = CommandGroup("openapi", "Print an OpenAPI document.", example="partner > partner.json")
top = CommandGroup()

_CALLS = """
SELECT p.slug, u.username, d.operation, d.calls, d.first_at, d.last_at
  FROM deprecated_call d
  LEFT JOIN partner_user u ON u.user_id = d.caller LEFT JOIN partner p USING (partner_id)
 ORDER BY d.last_at DESC, d.operation
"""


@group.command("auth > auth.json")
def auth(context: CliContext) -> None:
    """Print the OpenAPI 3.1 document of the authorization server; it needs no database."""
    sys.stdout.buffer.write(context.auth_openapi(context.settings()) + b"\n")


@group.command("partner --all > partner.json")
def partner(
    context: CliContext,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include deprecated operations.")] = False,
) -> None:
    """Print the OpenAPI 3.1 document of the Partner API; it needs no database."""
    sys.stdout.buffer.write(context.openapi(context.settings(), everything=everything) + b"\n")


@group.command("customer > customer.json")
def customer(context: CliContext) -> None:
    """Print the OpenAPI 3.1 document of the Customer API; it needs no database."""
    sys.stdout.buffer.write(context.customer_openapi(context.settings()) + b"\n")


@top.table(
    "deprecations",
    columns=("partner", "user", "operation", "calls>", "first", "last"),
    empty="Nobody has called a deprecated operation.",
)
async def deprecations(conn: Connection) -> Iterable[Row]:
    """List who still calls deprecated operations, and how often."""
    return [
        (slug, username, operation, calls, f"{first_at:%Y-%m-%d}", f"{last_at:%Y-%m-%d %H:%M}")
        for slug, username, operation, calls, first_at, last_at in await conn.fetch(_CALLS)
    ]
