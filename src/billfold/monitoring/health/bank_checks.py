"""Checks of a bank in its database, each by an index: its clock, what is late, what fails, what is not proven."""

from collections.abc import Awaitable, Sequence
from datetime import datetime, timedelta

from billfold.bills.rules.market import Market, market_data_states
from billfold.bills.store import load_market
from billfold.ledger.jobs.due_work import next_due
from billfold.monitoring.health.types import HealthCheck
from billfold.payments.crypto.deposits.rules import DepositStatus
from billfold.payments.crypto.deposits.store import list_cursors, list_deposits
from billfold.payments.crypto.withdrawals.store import list_blocked
from billfold.payments.files import retries
from billfold.payments.files.types import RailFile
from billfold.platform.clock import business_now, wall_now
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Connection
from billfold.platform.database.failed_work import list_failed
from billfold.platform.database.shortage import error_summary
from billfold.platform.dates import format_eastern
from billfold.platform.settings.settings import Settings
from billfold.reports.proofs.roots.store import find_root, list_refusals

REFUSED_FOR = timedelta(days=1)
"""For how long a refused file is named, unless it comes again under its name."""
BACKLOG_LIMIT = timedelta(minutes=5)
UNREAD_LIMIT = timedelta(minutes=15)
"""A worker asks the nodes every few seconds."""
UNSEALED_LIMIT = timedelta(hours=2)
"""A worker seals every hour."""

_UNSEALED = """
SELECT count(*), min(recorded_at) FROM audit_chain_head WHERE entry_no > sealed_no
"""
_BACKLOG = "SELECT count(*) FROM ledger_head WHERE due_at <= $1"


async def check_bank(conn: Connection, settings: Settings, market: Market | None = None) -> list[HealthCheck]:
    """Return what is found of a bank. A check that fails is a finding, not the end of the others.

    The `market` is loaded if none is given.
    """
    looks = {
        "clock": _clock,
        "due work": _backlog,
        "audit log": _audit_log,
        "rail files": _rail_files,
        "workers": failed_work,
        "daily roots": _daily_roots,
        "wallets": _wallets,
        "chains": _chains,
    }
    checks = [await _attempt(what, look(conn)) for what, look in looks.items()]
    return [*checks, await _attempt("market data", _market_data(conn, settings, market))]


async def _attempt(what: str, look: Awaitable[HealthCheck]) -> HealthCheck:
    try:
        return await look
    except Exception as error:  # noqa: BLE001 - as `check_bank` says
        return HealthCheck(what, error_summary(error), "See the log of the database and docs/operate.")


async def _daily_roots(conn: Connection) -> HealthCheck:
    refused = await list_refusals(conn)
    if refused:
        day, reason = refused[0]
        return HealthCheck("daily roots", f"nothing was published of {day}: {reason}", "Run `billfold verify`.")
    last = await find_root(conn)
    return HealthCheck("daily roots", "none yet" if last is None else f"the last is of {last.day}")


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
    """Files that have arrived and fail, then those that were refused: the oldest is named, with its error."""
    waiting = await retries.list_failing(conn)
    if not waiting:
        return _refused_files(await retries.list_refused(conn, await _now(conn) - REFUSED_FOR))
    first, trouble = waiting[0], retries.retry_state_of(waiting[0])
    reason = trouble.words() if trouble else ""
    more = f"; {len(waiting) - 1} more fail" if waiting[1:] else ""
    step = f"Run `billfold files retry {first.file_id}`, or propose to `close` it there."
    return HealthCheck("rail files", f"{first.name}, {reason}{more}", step)


def _refused_files(refused: Sequence[RailFile]) -> HealthCheck:
    if not refused:
        return HealthCheck("rail files", "none fails")
    first, more = refused[0], f"; {len(refused) - 1} more were refused" if refused[1:] else ""
    found = f"{first.rail} file {first.name} is refused since {format_eastern(first.created_at)}{more}"
    step = (
        f"See why: `billfold files show {first.file_id}`. Nothing of it was booked: have it corrected and sent again."
    )
    return HealthCheck("rail files", found, step)


async def _market_data(conn: Connection, settings: Settings, market: Market | None) -> HealthCheck:
    """What no bill can be bought or sold by; the rates come first."""
    market = market or await load_market(conn, age_max_days=settings.traded_rates_max_age_days)
    rates, *bills = market_data_states(market, await _now(conn))
    first = next((each for each in (rates, *bills) if each.problem), None)
    if first is None:
        return HealthCheck("market data", f"rates of {rates.newest}")
    found = f"{first.what}: {first.newest}; {first.problem}"
    return HealthCheck("market data", found, "Run `billfold market import` with newer files.")


async def failed_work(conn: Connection) -> HealthCheck:
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
