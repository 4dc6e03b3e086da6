"""`billfold doctor`: looks at everything a bank needs, and says what to do about the first gap."""

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

from billfold.cli.context import CannotGoOn, Ground, ground_of
from billfold.cli.output import complain, console, eastern
from billfold.ledger.jobs.due_work import next_due
from billfold.payments.files import exceptions
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.settings.settings import Settings

EXPIRES_SOON = timedelta(days=14)
LATE = timedelta(minutes=5)

UNSEALED = timedelta(hours=2)
"""A worker seals every hour."""

_UNSEALED = """
SELECT count(*), min(recorded_at) FROM audit_head WHERE entry_no > sealed_no
"""
_BACKLOG = "SELECT count(*) FROM head WHERE due_at <= $1"


class Check(NamedTuple):
    """One thing that was looked at. `next_step` is empty when it is well."""

    what: str
    found: str
    next_step: str = ""


def doctor(ctx: typer.Context) -> None:
    """Check settings, database, schema, clock, certificate and due work; say what to do next."""
    ground = ground_of(ctx)
    checks = examine(ground)
    marks = [("[red]✗[/]" if check.next_step else "[green]✓[/]") for check in checks]
    shown = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for mark, check in zip(marks, checks, strict=True):
        shown.add_row(mark, check.what, escape(check.found))
    console.print(shown)
    first = next((check for check in checks if check.next_step), None)
    if first is not None:
        complain(f"{first.what}: {first.found}", first.next_step)
        raise typer.Exit(1)


def examine(ground: Ground) -> list[Check]:
    """Return what was found, in the order in which things depend on each other."""
    settings = ground.settings()  # wrong settings end here, with every mistake named
    checks = [Check("settings", f"{settings.environment}, state in {settings.state_dir}")]
    try:
        with ground.database(settings, lambda _: None) as database:
            kind = "embedded PostgreSQL" if database.embedded else "your PostgreSQL"
            checks.append(Check("database", f"{kind} answers"))
            checks += asyncio.run(_examine_bank(ground, settings, database.dsn))
    except CannotGoOn as gap:
        checks.append(Check("database", str(gap), gap.next_step))
    checks += _examine_server(settings)
    return checks


async def _examine_bank(ground: Ground, settings: Settings, dsn: str) -> list[Check]:
    pending = await ground.pending_migrations(dsn)
    if pending:
        return [Check("schema", f"{len(pending)} steps pending", "Run `billfold migrate up`.")]
    checks = [Check("schema", "this release's")]
    try:
        async with ground.bank(settings, dsn) as bank:
            checks += [await _clock(bank), await _backlog(bank), await _audit_log(bank)]
            checks.append(await _rail_files(bank))
    except CannotGoOn as gap:
        checks.append(Check("bank", str(gap), gap.next_step))
    return checks


async def _clock(bank: Bank) -> Check:
    now = await bank.now()
    kind = "test clock" if bank.engine.test_clock else "real clock"
    return Check("clock", f"{kind}: {eastern(now)}")


async def _backlog(bank: Bank) -> Check:
    now, first = await bank.now(), await next_due(bank)
    if first is None or first > now:
        return Check("due work", f"none; next {eastern(first)}" if first else "none")
    waiting = await bank.pool.fetchval(_BACKLOG, now)
    found = f"{waiting} customers since {eastern(first)}"
    late = now - first > LATE
    return Check("due work", found, "Start a worker: `billfold worker`." if late else "")


async def _audit_log(bank: Bank) -> Check:
    waiting, since = await bank.pool.fetchrow(_UNSEALED) or (0, None)
    if since is None:
        return Check("audit log", "sealed")
    late = wall_now() - since > UNSEALED
    found = f"{waiting} customers' entries not sealed, since {since:%Y-%m-%d %H:%M} UTC"
    return Check("audit log", found, "Start a worker: `billfold worker`." if late else "")


async def _rail_files(bank: Bank) -> Check:
    """Files that have arrived and cannot be finished: the oldest is named, and what is wrong."""
    waiting = await exceptions.list_in_trouble(bank.pool)
    if not waiting:
        return Check("rail files", "none waits")
    first, trouble = waiting[0], exceptions.trouble_of(waiting[0])
    said = trouble.words() if trouble else ""
    more = f"; {len(waiting) - 1} more wait" if waiting[1:] else ""
    return Check(
        "rail files", f"{first.name}, {said}{more}", f"Run `billfold files retry {first.file_id}`."
    )


def _examine_server(settings: Settings) -> Iterator[Check]:
    certificate = settings.tls_certificate or settings.state_dir / "tls" / "server.pem"
    if settings.behind_proxy and settings.tls_certificate is None:
        yield Check("certificate", "the proxy's")
    elif not certificate.exists():
        yield Check("certificate", "none yet", "Run `billfold sandbox`, which makes one.")
    else:
        yield _expiry(x509.load_pem_x509_certificate(certificate.read_bytes()), wall_now())
    if _answers(settings.host, settings.port):
        yield Check("server", f"answers on port {settings.port}")
    else:
        command = "serve" if settings.is_production else "sandbox"
        found = f"nothing answers on port {settings.port}"
        yield Check("server", found, f"Run `billfold {command}`.")


def _expiry(certificate: x509.Certificate, wall: datetime) -> Check:
    ends = certificate.not_valid_after_utc.astimezone(UTC)
    soon = ends - wall < EXPIRES_SOON
    return Check(
        "certificate", f"valid until {ends:%Y-%m-%d}", "Renew the certificate." if soon else ""
    )


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
