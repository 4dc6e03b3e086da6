"""`billfold mcp`: a company's agents read its accounts and propose transfers, over the Customer API."""

from pathlib import Path
from typing import Annotated

import typer

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError
from billfold.wiring.cli_context import Wiring

top = CommandGroup()


@top.view("mcp --credentials acme.json --scopes 'pockets.read transfers.read'")
def mcp(
    context: Wiring,
    *,
    credentials: Annotated[
        Path | None,
        typer.Option(
            help="JSON: customer_url, auth_url, client_id, private_key (PEM), kid. Without it: the sandbox's."
        ),
    ] = None,
    scopes: Annotated[str, typer.Option(help="Ask for these only; by default for all of the client.")] = "",
) -> None:
    """Serve the Model Context Protocol on standard input and output.

    An agent reads what the scopes allow. It moves nothing: a transfer that it proposes waits for people to approve it.
    """
    try:
        from billfold_client.mcp_server import run  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise CliError(f"{missing.name} is not installed.", "Install billfold[mcp].") from missing
    run(credentials or context.settings().state_dir / "sandbox.json", scopes)
