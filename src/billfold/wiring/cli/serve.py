"""`billfold serve` and `billfold worker`: the two kinds of process that run a bank.

`serve` supervises the process of the https port, restarts it when it exits, and rejects plain http itself.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from billfold.audit.seals import FileArchive
from billfold.cli.command import CommandGroup, errors, print_error
from billfold.cli.context import CliError, Database, run_with_connection
from billfold.cli.process_supervisor import Supervisor, exit_with_parent, stop_on_signals
from billfold.cli.python_process import python_command
from billfold.cli.tls import TlsFiles
from billfold.identity.partners.store import list_partners
from billfold.monitoring.management_server import CHECK_SECONDS, manage_children, serve_management
from billfold.monitoring.samples import NO_TRACES, telemetry
from billfold.platform.settings.settings import Settings
from billfold.wiring.cli_context import Wiring


def check_folders(settings: Settings) -> dict[Path, Path]:
    """Return the purpose and path of each configured folder. Raises CliError for one that cannot be written."""
    seals = settings.audit_seals
    folders = (settings.state_dir, settings.files_dir, settings.rails_dir, seals and seals.parent)
    found = {folder: _nearest(folder) for folder in folders if folder is not None}
    for folder, there in found.items():
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            raise CliError(f"{folder} is not a writable folder.", "Give this user access, or set another.")
    if seals is not None and seals.is_dir():
        raise CliError(f"{seals} is a folder.", "Set BILLFOLD_AUDIT_SEALS to the name of a file.")
    if seals is not None and not FileArchive(seals).is_own():
        raise CliError(f"{seals} is not a seal file.", "Set BILLFOLD_AUDIT_SEALS to a new file, or to one of seals.")
    return found


def _nearest(folder: Path) -> Path:
    absolute = folder.absolute()
    return next(each for each in (absolute, *absolute.parents) if each.exists() or each.is_symlink())


HTTPS = "run-https"
_THIS_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what listens on all addresses is called here
top = CommandGroup()


@top.command("serve")
def serve(context: Wiring) -> None:
    """Serve the APIs over https, and reject plain http, until a signal stops it."""
    context.configure_logging()
    settings = context.configured()
    check_folders(settings)
    check_extras(settings)
    with context.database(settings, errors.print) as database:
        asyncio.run(context.check_start(settings, database.dsn))  # once, and not by each child again and again
        _check_certificate(context, settings)
        check_ports(settings)
        asyncio.run(_serve(context, settings, database))


_WORKER_CONNECTIONS_MAX = 20
"""Loops that work alone hold one each with their locks, twelve with three chains, and need others for their work."""


@top.command("worker")
def worker(
    context: Wiring, *, with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False
) -> None:
    """Run due work: day ends, maturities, fees, pending transfers. Several may run."""
    context.configure_logging()
    settings = context.settings()
    if with_parent:
        exit_with_parent()
    check_folders(settings)
    check_extras(settings)
    with context.database(settings, errors.print) as database:
        managed = replace(settings, management_port=None) if with_parent else settings

        async def run() -> None:
            stop = stop_on_signals()
            await context.check_file_store(settings)
            async with serve_management(managed, database.dsn):
                while not stop.is_set():
                    async with (
                        context.bank(settings, database.dsn, pool_max=_WORKER_CONNECTIONS_MAX) as bank,
                        telemetry(bank, "worker"),
                        context.until_paused(settings, stop) as ended,
                    ):
                        await context.work(bank, ended)

        asyncio.run(run())


@top.command(HTTPS, hidden=True)
def run_https(context: Wiring) -> None:
    """Serve https on behalf of `serve` or `sandbox`."""
    context.configure_logging()
    settings = context.configured()
    exit_with_parent()
    context.run_https(settings, tls_files(context, settings))


def check_extras(settings: Settings) -> None:
    """Raise CliError if the settings need a package that is not installed."""
    if settings.traces != NO_TRACES and find_spec("opentelemetry") is None:
        raise CliError("Traces need OpenTelemetry.", "Install it: pip install 'billfold[otel]'.")


def check_ports(settings: Settings) -> None:
    """Raise CliError if the address or one of its ports cannot be opened."""
    if settings.port == settings.http_port:
        raise CliError(f"Port {settings.port} cannot serve https and plain http.", "Give another --http-port.")
    for port in (settings.port, settings.http_port):
        try:
            family, kind, _, _, address = socket.getaddrinfo(settings.host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            raise CliError(
                f"Port {port} of {settings.host} cannot be opened: {error.strerror}.",
                "Stop the process that listens there (another sandbox?), or set another port or BILLFOLD_HOST.",
            ) from None


def _check_certificate(context: Wiring, settings: Settings) -> None:
    partners = run_with_connection(context, list_partners)
    report = context.inspect_certificate(settings, [partner.slug for partner in partners])
    if report is not None and report.uncovered:
        print_error(f"{settings.tls_certificate} is not for {', '.join(report.uncovered)}: those hosts are not served.")


def tls_files(context: Wiring, settings: Settings) -> TlsFiles | None:
    """Return the certificate for every partner's host. The database must be running."""
    partners = run_with_connection(context, list_partners)
    return context.certificates(settings, [partner.slug for partner in partners])


def child_command_line(*command: str) -> Sequence[str]:
    """Return the command line of a child process that runs one of these commands."""
    return python_command("-m", "billfold", *command)


async def start_https(supervisor: Supervisor, logs: Path | None = None) -> None:
    """Start the server of https; without a folder for `logs` it writes to our output."""
    await supervisor.start("https", child_command_line(HTTPS), logs and logs / "https.log")


async def _serve(context: Wiring, settings: Settings, database: Database) -> None:
    stop = stop_on_signals()
    async with manage_children(settings, database.dsn, partial(find_silent_port, settings)) as (managed, counting):
        environment = context.environment(settings, database.dsn) | counting
        supervisor = Supervisor(environment, errors.print, watch=database.restart_if_stopped)
        try:
            async with await context.serve_plain(settings):
                await start_https(supervisor)
                await stop.wait()
                if managed is not None:
                    managed.draining = True
                await asyncio.sleep(settings.drain_seconds)
        finally:
            await supervisor.stop()


async def find_silent_port(settings: Settings) -> str:
    """Return why the https port does not answer, or ""."""
    host = _THIS_HOST.get(settings.host, settings.host)
    tls = None if settings.behind_proxy and settings.tls_certificate is None else _any_certificate()
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            reader, writer = await asyncio.open_connection(host, settings.port, ssl=tls)
            try:
                writer.write(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                answered = (await reader.readline()).startswith(b"HTTP/1.1 ")
            finally:
                writer.close()
    except OSError as error:  # timeouts included
        return f"port {settings.port} does not answer: {type(error).__name__}"
    return "" if answered else f"port {settings.port} does not answer"


def _any_certificate() -> ssl.SSLContext:
    """Return a TLS context that trusts any certificate: it is our own port, and nothing secret is sent."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls
