"""`billfold doctor`: checks everything a bank needs, and names the next step for the first failure."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import typer
from cryptography import x509
from rich.markup import escape
from rich.table import Table

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliContext, CliError
from billfold.cli.output import console, format_eastern, print_error
from billfold.cli.resources import with_connection
from billfold.ledger.jobs.due_work import next_due
from billfold.migrations import runner
from billfold.payments.files import retries
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.settings.settings import Settings

top = CommandGroup()
CERTIFICATE_WARNING = timedelta(days=14)
BACKLOG_LIMIT = timedelta(minutes=5)

UNSEALED_LIMIT = timedelta(hours=2)
"""A worker seals every hour."""

_UNSEALED = """
SELECT count(*), min(recorded_at) FROM audit_chain_head WHERE entry_no > sealed_no
"""
_BACKLOG = "SELECT count(*) FROM ledger_head WHERE due_at <= $1"


class HealthCheck(NamedTuple):
    """The result of one check. `next_step` is empty when it passed."""

    what: str
    found: str
    next_step: str = ""


@top.command("doctor")
def doctor(context: CliContext) -> None:
    """Check settings, database, schema, clock, certificate and due work; print the next step."""
    checks = run_health_checks(context)
    icons = [("[red]✗[/]" if check.next_step else "[green]✓[/]") for check in checks]
    shown = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for mark, check in zip(icons, checks, strict=True):
        shown.add_row(mark, check.what, escape(check.found))
    console.print(shown)
    first = next((check for check in checks if check.next_step), None)
    if first is not None:
        print_error(f"{first.what}: {first.found}", first.next_step)
        raise typer.Exit(1)


def run_health_checks(context: CliContext) -> list[HealthCheck]:
    """Return the results, in the order in which they depend on each other."""
    settings = context.settings()  # invalid settings end here, with every error named
    checks = [HealthCheck("settings", f"{settings.environment}, state in {settings.state_dir}")]
    try:
        with context.database(settings, lambda _: None) as database:
            kind = "embedded PostgreSQL" if database.embedded else "your PostgreSQL"
            checks.append(HealthCheck("database", f"{kind} answers"))
            checks += asyncio.run(_check_bank(context, settings, database.dsn))
    except CliError as error:
        checks.append(HealthCheck("database", str(error), error.next_step))
    checks += _check_server(settings)
    return checks


async def _check_bank(context: CliContext, settings: Settings, dsn: str) -> list[HealthCheck]:
    pending = await with_connection(dsn, runner.pending)
    if pending:
        return [HealthCheck("schema", f"{len(pending)} migrations pending", "Run `billfold migrate up`.")]
    checks = [HealthCheck("schema", "up to date")]
    try:
        async with context.bank(settings, dsn) as bank:
            checks += [await _clock(bank), await _backlog(bank), await _audit_log(bank)]
            checks.append(await _rail_files(bank))
    except CliError as error:
        checks.append(HealthCheck("bank", str(error), error.next_step))
    return checks


async def _clock(bank: Bank) -> HealthCheck:
    now = await bank.now()
    kind = "test clock" if bank.engine.test_clock else "real clock"
    return HealthCheck("clock", f"{kind}: {format_eastern(now)}")


async def _backlog(bank: Bank) -> HealthCheck:
    now, first = await bank.now(), await next_due(bank)
    if first is None or first > now:
        return HealthCheck("due work", f"none; next {format_eastern(first)}" if first else "none")
    waiting = await bank.pool.fetchval(_BACKLOG, now)
    found = f"{waiting} customers since {format_eastern(first)}"
    is_late = now - first > BACKLOG_LIMIT
    return HealthCheck("due work", found, "Start a worker: `billfold worker`." if is_late else "")


async def _audit_log(bank: Bank) -> HealthCheck:
    waiting, since = await bank.pool.fetchrow(_UNSEALED) or (0, None)
    if since is None:
        return HealthCheck("audit log", "sealed")
    is_late = wall_now() - since > UNSEALED_LIMIT
    found = f"{waiting} customers' entries not sealed, since {since:%Y-%m-%d %H:%M} UTC"
    return HealthCheck("audit log", found, "Start a worker: `billfold worker`." if is_late else "")


async def _rail_files(bank: Bank) -> HealthCheck:
    """Files that have arrived and fail: the oldest is named, with its error."""
    waiting = await retries.list_failing(bank.pool)
    if not waiting:
        return HealthCheck("rail files", "none fails")
    first, trouble = waiting[0], retries.retry_state_of(waiting[0])
    reason = trouble.words() if trouble else ""
    more = f"; {len(waiting) - 1} more fail" if waiting[1:] else ""
    return HealthCheck("rail files", f"{first.name}, {reason}{more}", f"Run `billfold files retry {first.file_id}`.")


def _check_server(settings: Settings) -> Iterator[HealthCheck]:
    certificate = settings.tls_certificate or settings.state_dir / "tls" / "server.pem"
    if settings.behind_proxy and settings.tls_certificate is None:
        yield HealthCheck("certificate", "the proxy's")
    elif not certificate.exists():
        yield HealthCheck("certificate", "none yet", "Run `billfold sandbox`, which makes one.")
    else:
        yield _expiry(x509.load_pem_x509_certificate(certificate.read_bytes()), wall_now())
    if _answers(settings.host, settings.port):
        yield HealthCheck("server", f"answers on port {settings.port}")
    else:
        command = "serve" if settings.is_production else "sandbox"
        found = f"nothing answers on port {settings.port}"
        yield HealthCheck("server", found, f"Run `billfold {command}`.")


def _expiry(certificate: x509.Certificate, wall: datetime) -> HealthCheck:
    ends = certificate.not_valid_after_utc.astimezone(UTC)
    soon = ends - wall < CERTIFICATE_WARNING
    return HealthCheck("certificate", f"valid until {ends:%Y-%m-%d}", "Renew the certificate." if soon else "")


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
