"""`billfold openapi` and `billfold deprecations`: the APIs, and who calls deprecated operations."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec
import typer

from billfold.apis.customer_api import customer_document
from billfold.apis.partner_api import partner_document, partner_operations
from billfold.cli.command import CommandGroup, Row
from billfold.cli.context import CliError
from billfold.documentation.collections import COLLECTIONS, with_samples
from billfold.http.operations import Operation
from billfold.oauth.server.app import auth_document
from billfold.platform.database.connection import Connection
from billfold.wiring.cli_context import Wiring

OPENAPI = "openapi"
Form = Annotated[
    str,
    typer.Option(
        "--as", help="openapi, or requests for an HTTP client: postman, bruno (an archive), http (for editors)."
    ),
]
group = CommandGroup(
    "openapi",
    "Print an OpenAPI document, or its operations for Postman, Bruno and editors.",
    example="partner --as postman > partner.json",
)
top = CommandGroup()

_CALLS = """
SELECT p.slug, u.username, d.operation, d.calls, d.first_at, d.last_at
  FROM deprecated_call d
  LEFT JOIN partner_user u ON u.user_id = d.caller LEFT JOIN partner p USING (partner_id)
 ORDER BY d.last_at DESC, d.operation
"""


@group.command("auth > auth.json")
def auth(context: Wiring, *, form: Form = OPENAPI) -> None:
    """Print the OpenAPI 3.1 document of the authorization server; it needs no database."""
    _print("auth", auth_document(context.settings()), form)


@group.command("partner --all > partner.json")
def partner(
    context: Wiring,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include deprecated operations.")] = False,
    form: Form = OPENAPI,
) -> None:
    """Print the OpenAPI 3.1 document of the Partner API; it needs no database."""
    settings = context.settings()
    sandbox: Sequence[Operation] = ()
    if not settings.is_production:
        from billfold.sandbox.routes.operations import sandbox_operations  # noqa: PLC0415 - production does not import it

        sandbox = sandbox_operations()
    document = partner_document(settings, partner_operations(sandbox), include_deprecated=everything)
    _print("partner", document, form)


@group.command("customer > customer.json", "customer --as bruno > bruno.zip")
def customer(context: Wiring, *, form: Form = OPENAPI) -> None:
    """Print the OpenAPI 3.1 document of the Customer API; it needs no database."""
    _print("customer", customer_document(context.settings()), form)


def _print(api: str, document: Mapping[str, object], form: str) -> None:
    if form == OPENAPI:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(with_samples(api, document))) + b"\n")
        return
    if form not in COLLECTIONS:
        raise CliError(f"{form} is not a form of a document.", f"One of {', '.join([OPENAPI, *COLLECTIONS])}.")
    _, _, make = COLLECTIONS[form]
    sys.stdout.buffer.write(make(api, document))


@top.table(
    "deprecations",
    columns=("partner", "user", "operation", "calls>", "first", "last"),
    empty="Nobody has called a deprecated operation.",
)
async def deprecations(conn: Connection) -> Iterable[Row]:
    """List who still calls deprecated operations, and how often."""
    return [tuple(each) for each in await conn.fetch(_CALLS)]
