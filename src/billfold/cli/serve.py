"""`billfold serve` and `billfold worker`: the two kinds of process a bank is made of.

`serve` looks after two processes, one for each port, and starts them again when they die.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from billfold.access.partners.store import list_partners
from billfold.cli.context import CliContext, Database, cli_context
from billfold.cli.output import errors
from billfold.cli.resources import run_with_connection
from billfold.platform.logs import configure_logging
from billfold.sandbox.process_supervisor import Supervisor, exit_with_parent

if TYPE_CHECKING:
    from billfold.platform.network.tls import TlsFiles
    from billfold.platform.settings.settings import Settings

HTTPS, HTTP = "run-https", "run-plain"


def serve(ctx: typer.Context) -> None:
    """Answer the Partner API over https, and refuse plain http, until told to stop."""
    ground = cli_context(ctx)
    settings = ground.settings()
    configure_logging(settings.log_level)
    with ground.database(settings, errors.print) as database:
        asyncio.run(_serve(ground, settings, database))


def worker(
    ctx: typer.Context, *, with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False
) -> None:
    """Do what is due: day ends, maturities, fees, waiting transfers. Several may run."""
    ground = cli_context(ctx)
    settings = ground.settings()
    configure_logging(settings.log_level)
    if with_parent:
        exit_with_parent()
    with ground.database(settings, errors.print) as database:

        async def run() -> None:
            stop = stop_on_signals()
            async with ground.bank(settings, database.dsn) as bank:
                await ground.work(bank, stop)

        asyncio.run(run())


def run_https(ctx: typer.Context) -> None:
    """Serve https on behalf of `serve` or `sandbox`."""
    ground = cli_context(ctx)
    settings = ground.settings()
    configure_logging(settings.log_level)
    exit_with_parent()
    ground.run_https(settings, tls_files(ground, settings))


def run_http(ctx: typer.Context) -> None:
    """Refuse plain http on behalf of `serve` or `sandbox`."""
    ground = cli_context(ctx)
    settings = ground.settings()
    exit_with_parent()

    async def run() -> None:
        await ground.run_plain(settings, stop_on_signals())

    asyncio.run(run())


def tls_files(ground: CliContext, settings: Settings) -> TlsFiles | None:
    """Return the certificate for every partner's host. The database must be there."""
    partners = run_with_connection(ground, list_partners)
    return ground.certificates(settings, [partner.slug for partner in partners])


def stop_on_signals() -> asyncio.Event:
    """Return what is set when this process is asked to end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


def child_command_line(ground: CliContext, *command: str) -> Sequence[str]:
    """Return how a child process runs a command of ours."""
    return (*ground.program(), *command)


async def _serve(ground: CliContext, settings: Settings, database: Database) -> None:
    stop = stop_on_signals()
    environment = ground.environment(settings, database.dsn)
    supervisor = Supervisor(environment, errors.print, watch=database.restart_if_stopped)
    await supervisor.start("https", child_command_line(ground, HTTPS))
    await supervisor.start("plain http", child_command_line(ground, HTTP))
    try:
        await stop.wait()
    finally:
        await supervisor.stop()
