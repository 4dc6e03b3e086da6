"""`billfold doctor`: checks everything a bank needs, and names the next step for the first failure."""

import asyncio
import json
import shutil
import socket
from collections.abc import Awaitable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from cryptography import x509
from rich.markup import escape
from rich.table import Table

from billfold.cli.command import CommandGroup, console, print_error
from billfold.cli.context import CliError
from billfold.identity.partners.store import list_partners
from billfold.migrations import runner
from billfold.monitoring.database_health import check_replicas_read, check_server
from billfold.monitoring.health import HealthCheck, check_bank, failed_check
from billfold.monitoring.node_health import check_nodes
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection, connect, find_owner
from billfold.platform.settings.settings import Settings
from billfold.platform.settings.validation import SettingsError
from billfold.wiring.cli.serve import check_folders
from billfold.wiring.cli_context import Wiring

top = CommandGroup()
CERTIFICATE_WARNING = timedelta(days=14)
CONNECT_SECONDS = 10.0
COMMAND_SECONDS = 60.0
DISK_FREE_MIN = 500 * 2**20
_OPERATORS = """
SELECT count(*) FROM membership
 WHERE customer_id = (SELECT bank_customer_id FROM bank) AND role <> 'SERVICE' AND status <> 'DEACTIVATED'
"""


@top.command("doctor --json", "doctor")
def doctor(
    context: Wiring, *, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False
) -> None:
    """Check settings, database, schema, clock, certificate and due work; print what to do next. Changes nothing."""
    checks = run_health_checks(context)
    failed = [check for check in checks if check.next_step]
    if as_json:
        rows = [{**check._asdict(), "ok": not check.next_step} for check in checks]
        typer.echo(json.dumps({"ok": not failed, "checks": rows}))
    else:
        icons = [("[red]✗[/]" if check.next_step else "[green]✓[/]") for check in checks]
        shown = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for mark, check in zip(icons, checks, strict=True):
            shown.add_row(mark, check.what, escape(check.found))
        console.print(shown)
    for each in failed:
        print_error(f"{each.what}: {each.found}", "\n  ".join(filter(None, (each.next_step, each.detail))))
    if failed:
        raise typer.Exit(1)


def run_health_checks(context: Wiring) -> list[HealthCheck]:
    """Return the results, in the order in which they depend on each other."""
    try:
        settings = context.settings()
    except SettingsError as wrong:
        return [HealthCheck("settings", each.sentence, "Set this variable.") for each in wrong.mistakes]
    checks = [HealthCheck("settings", f"{settings.environment}, state in {settings.state_dir}")]
    checks += asyncio.run(_check_machine(context, settings))
    partners: list[str] = []
    try:
        dsn = context.running_database(settings)
        checks += asyncio.run(_check_database(context, settings, dsn, partners))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        checks.append(_finding("database", error))
    return [*checks, *_check_server(context, settings, partners)]


async def _check_machine(context: Wiring, settings: Settings) -> list[HealthCheck]:
    looks = {
        "disk": _disk(settings),
        "adapters": _adapters(context, settings),
        "linking provider": _linking_provider(context, settings),
        "file store": _file_store(context, settings),
    }
    return [await _attempt(what, look) for what, look in looks.items()]


async def _check_database(context: Wiring, settings: Settings, dsn: str, partners: list[str]) -> list[HealthCheck]:
    """Check the bank through a read-only connection."""
    read_only = {"default_transaction_read_only": "on"}
    conn = await connect(dsn, timeout=CONNECT_SECONDS, command_timeout=COMMAND_SECONDS, server_settings=read_only)
    try:
        kind = "embedded PostgreSQL" if settings.database_url is None else "your PostgreSQL"
        checks = [HealthCheck("database", f"{kind} answers"), *await check_server(conn)]
        checks.append(await _schema(conn))
        if checks[-1].next_step:
            return checks
        checks += await check_nodes(conn)
        checks.append(await _attempt("rights", _rights(settings, conn)))
        if settings.database_replica_url is not None:
            checks.append(await check_replicas_read(conn, settings.database_replica_url))
        checks.append(await _attempt("bank", _bank(context, settings, conn)))
        if not checks[-1].next_step:
            checks += await check_bank(conn, settings)
            partners += [partner.slug for partner in await list_partners(conn)]
            checks += await _people(conn, settings, partners)
        return checks
    finally:
        await conn.close()


async def _schema(conn: Connection) -> HealthCheck:
    try:
        pending = await runner.pending(conn)
    except runner.MigrationError as error:
        return HealthCheck("schema", f"{error}", error.next_step)
    if pending:
        return HealthCheck("schema", f"{len(pending)} migrations pending", "Run `billfold migrate up`.")
    return HealthCheck("schema", "up to date")


async def _attempt(what: str, look: Awaitable[HealthCheck]) -> HealthCheck:
    try:
        return await look
    except Exception as error:  # noqa: BLE001 - a check that fails is a finding, not the end of the others
        return _finding(what, error)


def _finding(what: str, error: Exception) -> HealthCheck:
    if isinstance(error, CliError):
        return HealthCheck(what, str(error), error.next_step)
    return failed_check(what, error)


async def _disk(settings: Settings) -> HealthCheck:
    """Check the disk: files of the rails and uploads that do not fit are not lost, but delayed."""
    free = {folder: shutil.disk_usage(there).free for folder, there in check_folders(settings).items()}
    tightest = min(free, key=free.__getitem__)
    found = f"{free[tightest] // 2**20:,} MiB are free in {tightest}"
    return HealthCheck("disk", found, "Free space: writes are about to fail." if free[tightest] < DISK_FREE_MIN else "")


async def _adapters(context: Wiring, settings: Settings) -> HealthCheck:
    return HealthCheck("adapters", context.check_adapters(settings))


async def _linking_provider(context: Wiring, settings: Settings) -> HealthCheck:
    return HealthCheck("linking provider", await context.check_linking_provider(settings))


async def _file_store(context: Wiring, settings: Settings) -> HealthCheck:
    return HealthCheck("file store", await context.check_file_store(settings))


async def _rights(settings: Settings, conn: Connection) -> HealthCheck:
    """Check the database rights: an injected statement can do whatever its user may, as the owner everything."""
    owner = await find_owner(conn, "ledger_head")
    if owner is None:
        return HealthCheck("rights", "the application adds to the ledger and owns nothing")
    split = "Log in as a member of billfold_app, and migrate by BILLFOLD_DATABASE_OWNER_URL: docs/operate/install.md."
    return HealthCheck("rights", f"{owner} owns the tables", split if settings.is_production else "")


async def _bank(context: Wiring, settings: Settings, conn: Connection) -> HealthCheck:
    await context.check_bank(conn, settings)
    return HealthCheck("bank", "seed, key and domain are its own")


async def _people(conn: Connection, settings: Settings, partners: Sequence[str]) -> list[HealthCheck]:
    """Check that somebody can work with a production bank: partners by their programs, operators in the console."""
    if not settings.is_production:
        return []
    found = {
        "partners": (len(partners), "Run `billfold partner create SLUG --name NAME`."),
        "operators": (await conn.fetchval(_OPERATORS), "Run `billfold users add`: docs/operate/users.md."),
    }
    return [HealthCheck(what, f"{count or 'none yet'}", "" if count else step) for what, (count, step) in found.items()]


def _check_server(context: Wiring, settings: Settings, partners: Sequence[str]) -> Iterator[HealthCheck]:
    try:
        yield _certificate(context, settings, partners)
    except Exception as error:  # noqa: BLE001 - a certificate that cannot be read is a finding
        yield _finding("certificate", error)
    if _answers(settings.host, settings.port):
        yield HealthCheck("server", f"answers on port {settings.port}")
    else:
        command = "serve" if settings.is_production else "sandbox"
        found = f"nothing answers on port {settings.port}"
        yield HealthCheck("server", found, f"Run `billfold {command}`.")


def _certificate(context: Wiring, settings: Settings, partners: Sequence[str]) -> HealthCheck:
    report = context.inspect_certificate(settings, partners)
    if report is not None and report.uncovered:
        found = f"{settings.tls_certificate} is not for {', '.join(report.uncovered)}"
        return HealthCheck("certificate", found, "Have it issued for these names too.")
    if report is None and settings.behind_proxy:
        return HealthCheck("certificate", "the proxy's")
    own = settings.tls_certificate or settings.state_dir / "tls" / "server.pem"
    if not own.exists():
        return HealthCheck("certificate", "none yet", "Run `billfold sandbox`, which makes one.")
    return _expiry(x509.load_pem_x509_certificate(own.read_bytes()), wall_now())


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
