"""`billfold doctor`: checks everything a bank needs, and names the next step for the first failure."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import Awaitable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple

import asyncpg
import typer
from cryptography import x509
from rich.markup import escape
from rich.table import Table

from billfold.access.partners.store import list_partners
from billfold.bills.rules.freshness import market_data_states
from billfold.bills.store import load_market
from billfold.cli.command import CommandGroup
from billfold.cli.context import CliContext, CliError
from billfold.cli.folders import check_folders
from billfold.cli.output import console, format_eastern, print_error
from billfold.ledger.jobs.due_work import next_due
from billfold.migrations import runner
from billfold.payments.crypto.deposits.store import list_cursors, list_deposits
from billfold.payments.crypto.deposits.types import DepositStatus
from billfold.payments.crypto.withdrawals.store.transactions import list_blocked
from billfold.payments.files import retries
from billfold.platform.clock import business_now, read_clock, wall_now
from billfold.platform.database.failed_work import list_failed
from billfold.platform.database.shortage import error_summary
from billfold.platform.settings.mistakes import SettingsError
from billfold.reports.proofs.roots.store import find_root, list_refusals

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection
    from billfold.platform.settings.settings import Settings

top = CommandGroup()
CERTIFICATE_WARNING = timedelta(days=14)
BACKLOG_LIMIT = timedelta(minutes=5)
CONNECT_SECONDS = 10.0
DISK_FREE_MIN = 500 * 2**20

UNREAD_LIMIT = timedelta(minutes=15)
"""A worker asks the nodes every few seconds."""
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


@top.command("doctor --json", "doctor")
def doctor(
    context: CliContext, *, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False
) -> None:
    """Check settings, database, schema, clock, certificate and due work; print the next step. Changes nothing."""
    checks = run_health_checks(context)
    first = next((check for check in checks if check.next_step), None)
    if as_json:
        rows = [{**check._asdict(), "ok": not check.next_step} for check in checks]
        typer.echo(json.dumps({"ok": first is None, "checks": rows}))
    else:
        icons = [("[red]✗[/]" if check.next_step else "[green]✓[/]") for check in checks]
        shown = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for mark, check in zip(icons, checks, strict=True):
            shown.add_row(mark, check.what, escape(check.found))
        console.print(shown)
    if first is not None:
        print_error(f"{first.what}: {first.found}", first.next_step)
        raise typer.Exit(1)


def run_health_checks(context: CliContext) -> list[HealthCheck]:
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


async def _check_machine(context: CliContext, settings: Settings) -> list[HealthCheck]:
    looks = {
        "disk": _disk(settings),
        "adapters": _adapters(context, settings),
        "linking provider": _linking_provider(context, settings),
        "file store": _file_store(context, settings),
    }
    return [await _attempt(what, look) for what, look in looks.items()]


async def _check_database(context: CliContext, settings: Settings, dsn: str, partners: list[str]) -> list[HealthCheck]:
    """Look at the bank through a connection that cannot write."""
    conn = await asyncpg.connect(dsn, timeout=CONNECT_SECONDS, server_settings={"default_transaction_read_only": "on"})
    try:
        kind = "embedded PostgreSQL" if settings.database_url is None else "your PostgreSQL"
        checks = [HealthCheck("database", f"{kind} answers")]
        if pending := await runner.pending(conn):
            return [*checks, HealthCheck("schema", f"{len(pending)} migrations pending", "Run `billfold migrate up`.")]
        checks.append(HealthCheck("schema", "up to date"))
        checks.append(await _attempt("bank", _bank(context, settings, conn)))
        if not checks[-1].next_step:
            looks = {
                "clock": _clock,
                "due work": _backlog,
                "audit log": _audit_log,
                "rail files": _rail_files,
                "workers": _failed_work,
                "daily roots": _daily_roots,
                "wallets": _wallets,
                "chains": _chains,
            }
            checks += [await _attempt(what, look(conn)) for what, look in looks.items()]
            checks.append(await _attempt("market data", _market_data(conn, settings)))
            partners += [partner.slug for partner in await list_partners(conn)]
        return checks
    finally:
        await conn.close()


async def _attempt(what: str, look: Awaitable[HealthCheck]) -> HealthCheck:
    try:
        return await look
    except Exception as error:  # noqa: BLE001 - a check that fails is a finding, not the end of the others
        return _finding(what, error)


def _finding(what: str, error: Exception) -> HealthCheck:
    if isinstance(error, CliError):
        return HealthCheck(what, str(error), error.next_step)
    return HealthCheck(what, error_summary(error), "See the log of the database and docs/operate.")


async def _disk(settings: Settings) -> HealthCheck:
    """Files of the rails and uploads that do not fit are lost to nobody, but wait."""
    free = {folder: shutil.disk_usage(there).free for folder, there in check_folders(settings).items()}
    tightest = min(free, key=free.__getitem__)
    found = f"{free[tightest] // 2**20:,} MiB are free in {tightest}"
    return HealthCheck("disk", found, "Free space: writes are about to fail." if free[tightest] < DISK_FREE_MIN else "")


async def _adapters(context: CliContext, settings: Settings) -> HealthCheck:
    return HealthCheck("adapters", context.check_adapters(settings))


async def _linking_provider(context: CliContext, settings: Settings) -> HealthCheck:
    return HealthCheck("linking provider", await context.check_linking_provider(settings))


async def _file_store(context: CliContext, settings: Settings) -> HealthCheck:
    return HealthCheck("file store", await context.check_file_store(settings))


async def _daily_roots(conn: Connection) -> HealthCheck:
    refused = await list_refusals(conn)
    if refused:
        day, reason = refused[0]
        return HealthCheck("daily roots", f"nothing was published of {day}: {reason}", "Run `billfold verify`.")
    last = await find_root(conn)
    return HealthCheck("daily roots", "none yet" if last is None else f"the last is of {last.day}")


async def _bank(context: CliContext, settings: Settings, conn: Connection) -> HealthCheck:
    await context.check_bank(conn, settings)
    return HealthCheck("bank", "seed, key and domain are its own")


async def _now(conn: Connection) -> datetime:
    return business_now(await read_clock(conn), wall_now())


async def _clock(conn: Connection) -> HealthCheck:
    kind = "real clock" if await read_clock(conn) is None else "test clock"
    return HealthCheck("clock", f"{kind}: {format_eastern(await _now(conn))}")


async def _backlog(conn: Connection) -> HealthCheck:
    now, first = await _now(conn), await next_due(conn)
    if first is None or first > now:
        return HealthCheck("due work", f"none; next {format_eastern(first)}" if first else "none")
    waiting = await conn.fetchval(_BACKLOG, now)
    found = f"{waiting} customers since {format_eastern(first)}"
    is_late = now - first > BACKLOG_LIMIT
    return HealthCheck("due work", found, "Start a worker: `billfold worker`." if is_late else "")


async def _audit_log(conn: Connection) -> HealthCheck:
    waiting, since = await conn.fetchrow(_UNSEALED) or (0, None)
    if since is None:
        return HealthCheck("audit log", "sealed")
    is_late = wall_now() - since > UNSEALED_LIMIT
    found = f"{waiting} customers' entries not sealed, since {since:%Y-%m-%d %H:%M} UTC"
    return HealthCheck("audit log", found, "Start a worker: `billfold worker`." if is_late else "")


async def _rail_files(conn: Connection) -> HealthCheck:
    """Files that have arrived and fail: the oldest is named, with its error."""
    waiting = await retries.list_failing(conn)
    if not waiting:
        return HealthCheck("rail files", "none fails")
    first, trouble = waiting[0], retries.retry_state_of(waiting[0])
    reason = trouble.words() if trouble else ""
    more = f"; {len(waiting) - 1} more fail" if waiting[1:] else ""
    return HealthCheck("rail files", f"{first.name}, {reason}{more}", f"Run `billfold files retry {first.file_id}`.")


async def _market_data(conn: Connection, settings: Settings) -> HealthCheck:
    """What no bill can be bought or sold by; the rates come first."""
    market = await load_market(conn, age_max_days=settings.traded_rates_max_age_days)
    rates, *bills = market_data_states(market, await _now(conn))
    first = next((each for each in (rates, *bills) if each.problem), None)
    if first is None:
        return HealthCheck("market data", f"rates of {rates.newest}")
    found = f"{first.what}: {first.newest}; {first.problem}"
    return HealthCheck("market data", found, "Run `billfold market import` with newer files.")


async def _failed_work(conn: Connection) -> HealthCheck:
    """Items that workers have put aside: the one that failed first is named, with its error."""
    failed = await list_failed(conn)
    if not failed:
        return HealthCheck("workers", "nothing fails")
    first, more = failed[0], f"; {len(failed) - 1} more fail" if failed[1:] else ""
    found = f"{first.kind} {first.item}, {first.tries} tries: {first.error}{more}"
    again = f"{first.again_at:%Y-%m-%d %H:%M} UTC"
    return HealthCheck("workers", found, f"Mend what the error names; it is tried again at {again}.")


async def _wallets(conn: Connection) -> HealthCheck:
    """Wallets that cannot pay what waits: the one that has been so for longest is named."""
    blocked = await list_blocked(conn)
    if not blocked:
        return HealthCheck("wallets", "none is blocked")
    first, more = blocked[0], f"; {len(blocked) - 1} more are blocked" if blocked[1:] else ""
    found = (
        f"{first.chain} since {first.problem_since:%Y-%m-%d %H:%M} UTC: {first.problem}, {first.problem_detail}{more}"
    )
    return HealthCheck("wallets", found, "See docs/operate/crypto_withdrawals.md; it goes on by itself.")


async def _chains(conn: Connection) -> HealthCheck:
    """What keeps deposits from being credited, or made the bank bear one; the first is named."""
    lost = await list_deposits(conn, [DepositStatus.REORGED])
    if lost:
        found = f"deposit {lost[0].deposit_id} was reorged on {lost[0].chain} after it was booked ({len(lost)} in all)"
        return HealthCheck("chains", found, "See `billfold crypto deposits list` and docs/operate/crypto.md.")
    cursors = await list_cursors(conn)
    for each in cursors:
        if each.problems or wall_now() - each.agreed_at > UNREAD_LIMIT:
            said = "; ".join(f"{node} {problem}" for node, problem in each.problems.items())
            found = f"{each.chain} is read up to {each.agreed_at:%Y-%m-%d %H:%M} UTC: {said or 'no worker reads it'}"
            return HealthCheck("chains", found, "Mend the nodes, or start a worker: `billfold worker`.")
    return HealthCheck("chains", f"{len(cursors)} are read" if cursors else "none is read")


def _check_server(context: CliContext, settings: Settings, partners: Sequence[str]) -> Iterator[HealthCheck]:
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


def _certificate(context: CliContext, settings: Settings, partners: Sequence[str]) -> HealthCheck:
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
