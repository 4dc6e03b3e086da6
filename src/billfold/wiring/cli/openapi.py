"""`billfold openapi` and `billfold deprecations`: the APIs, and who calls deprecated operations."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec
import typer

from billfold.apis.customer_api import customer_document
from billfold.apis.partner_api import partner_document, partner_operations
from billfold.cli.command import CommandGroup, Row
from billfold.http.operations import Operation
from billfold.oauth.server.app import auth_document
from billfold.platform.database.connection import Connection
from billfold.wiring.cli_context import Wiring

group = CommandGroup("openapi", "Print an OpenAPI document.", example="partner > partner.json")
top = CommandGroup()

_CALLS = """
SELECT p.slug, u.username, d.operation, d.calls, d.first_at, d.last_at
  FROM deprecated_call d
  LEFT JOIN partner_user u ON u.user_id = d.caller LEFT JOIN partner p USING (partner_id)
 ORDER BY d.last_at DESC, d.operation
"""


@group.command("auth > auth.json")
def auth(context: Wiring) -> None:
    """Print the OpenAPI 3.1 document of the authorization server; it needs no database."""
    _print(auth_document(context.settings()))


@group.command("partner --all > partner.json")
def partner(
    context: Wiring,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include deprecated operations.")] = False,
) -> None:
    """Print the OpenAPI 3.1 document of the Partner API; it needs no database."""
    settings = context.settings()
    sandbox: Sequence[Operation] = ()
    if not settings.is_production:
        from billfold.sandbox.routes.operations import sandbox_operations  # noqa: PLC0415 - production does not import it

        sandbox = sandbox_operations()
    _print(partner_document(settings, partner_operations(sandbox), include_deprecated=everything))


@group.command("customer > customer.json")
def customer(context: Wiring) -> None:
    """Print the OpenAPI 3.1 document of the Customer API; it needs no database."""
    _print(customer_document(context.settings()))


def _print(document: Mapping[str, object]) -> None:
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document)) + b"\n")


@top.table(
    "deprecations",
    columns=("partner", "user", "operation", "calls>", "first", "last"),
    empty="Nobody has called a deprecated operation.",
)
async def deprecations(conn: Connection) -> Iterable[Row]:
    """List who still calls deprecated operations, and how often."""
    return [tuple(each) for each in await conn.fetch(_CALLS)]
