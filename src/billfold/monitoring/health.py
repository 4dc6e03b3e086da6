"""Checks of a bank in its database, each by an index: its clock, late and failing work, missing proofs."""

from collections.abc import Awaitable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from billfold.bills.rules.market import Market, market_data_states
from billfold.bills.store import load_market
from billfold.ledger.scheduler import SET_APART, next_due
from billfold.payments.crypto.deposits.rules import DepositStatus
from billfold.payments.crypto.deposits.store import list_cursors, list_deposits
from billfold.payments.crypto.withdrawals.store import list_blocked
from billfold.payments.files import retries
from billfold.payments.files.types import RailFile
from billfold.platform.clock import business_now, wall_now
from billfold.platform.database.background_work import list_failed
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Connection
from billfold.platform.database.shortage import error_summary, plain_error
from billfold.platform.dates import et_date, format_day, format_moment
from billfold.platform.money import format_usd
from billfold.platform.settings.settings import Settings
from billfold.reports.proofs.roots.store import find_root, list_refusals
from billfold.trading.fix.store import OPEN_IN_SQL as OPEN_MESSAGES
from billfold.trading.settlement.store import OPEN_IN_SQL as OPEN_INSTRUCTIONS


class HealthCheck(NamedTuple):
    """The result of one check. `next_step` is empty when it passed; `detail` is for engineers."""

    what: str
    found: str
    next_step: str = ""
    detail: str = ""


def failed_check(what: str, error: Exception) -> HealthCheck:
    """Return the result of a check that itself failed."""
    summary = error_summary(error)
    step = "Have an engineer look in the log of the database; docs/operate has the causes."
    return HealthCheck(what, f"not checked: {plain_error(summary)}", step, summary)


REFUSED_FOR = timedelta(days=1)
"""Time for which a refused file is reported, unless it arrives again under its name."""
BACKLOG_LIMIT = timedelta(minutes=5)
UNREAD_LIMIT = timedelta(minutes=15)
"""A worker asks the nodes every few seconds."""
UNSEALED_LIMIT = timedelta(hours=2)
"""A worker seals every hour."""

_UNSEALED = """
SELECT count(*), min(recorded_at) FROM audit_chain_head WHERE entry_no > sealed_no
"""
_BACKLOG = f"""
WITH apart AS MATERIALIZED ({SET_APART}),
     late AS (SELECT due_at, customer_id IN (SELECT customer_id FROM apart) AS is_apart
                FROM ledger_head WHERE due_at <= $1)
SELECT count(*) FILTER (WHERE NOT is_apart), min(due_at) FILTER (WHERE NOT is_apart),
       count(*) FILTER (WHERE is_apart), min(due_at) FILTER (WHERE is_apart) FROM late
"""


async def check_bank(conn: Connection, settings: Settings, market: Market | None = None) -> list[HealthCheck]:
    """Return the findings about a bank. A check that fails is a finding, and does not stop the others.

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
        **({"trading desk": _trading_desk, "settlement": _settlement} if settings.dealers else {}),
        **({"liquidity": _liquidity} if settings.reserve_floor_cents is not None else {}),
    }
    checks = [await _run_check(what, look(conn)) for what, look in looks.items()]
    return [*checks, await _run_check("market data", _market_data(conn, settings, market))]


async def _run_check(what: str, look: Awaitable[HealthCheck]) -> HealthCheck:
    try:
        return await look
    except Exception as error:  # noqa: BLE001 - as `check_bank` says
        return failed_check(what, error)


async def _daily_roots(conn: Connection) -> HealthCheck:
    refused = await list_refusals(conn)
    if refused:
        day, reason = refused[0]
        found = f"nothing was published of {format_day(day)}: {reason}"
        return HealthCheck("daily roots", found, "Run `billfold verify`.")
    last = await find_root(conn)
    shown = "none yet" if last is None else f"the last is of {format_day(last.day)}"
    return HealthCheck("daily roots", shown)


async def _now(conn: Connection) -> datetime:
    return business_now(await read_clock(conn), wall_now())


async def _clock(conn: Connection) -> HealthCheck:
    kind = "real clock" if await read_clock(conn) is None else "test clock"
    return HealthCheck("clock", f"{kind}: {format_moment(await _now(conn))}")


async def _backlog(conn: Connection) -> HealthCheck:
    now, first = await _now(conn), await next_due(conn)
    if first is None or first > now:
        return HealthCheck("due work", f"none; next {format_moment(first)}" if first else "none")
    waiting, since, apart, apart_since = await conn.fetchrow(_BACKLOG, now) or (0, None, 0, None)
    parts = [f"{waiting} customers since {format_moment(since)}"] if since else []
    step = "Start a worker: `billfold worker`." if since and now - since > BACKLOG_LIMIT else ""
    if apart_since:
        parts.append(f"{apart} set apart, the first since {format_moment(apart_since)}: the bank closes without them")
        step = step or "Mend the cause that `billfold due-work list` names, then `billfold due-work retry`."
    return HealthCheck("due work", "; ".join(parts) or "none", step)


async def _audit_log(conn: Connection) -> HealthCheck:
    waiting, since = await conn.fetchrow(_UNSEALED) or (0, None)
    if since is None:
        return HealthCheck("audit log", "sealed")
    is_late = wall_now() - since > UNSEALED_LIMIT
    found = f"{waiting} customers' entries not sealed, since {format_moment(since)}"
    return HealthCheck("audit log", found, "Start a worker: `billfold worker`." if is_late else "")


async def _rail_files(conn: Connection) -> HealthCheck:
    """Check files that have arrived and fail, then those that were refused: the oldest is named, with its error."""
    waiting = await retries.list_failing(conn)
    if not waiting:
        return _refused_files(await retries.list_refused(conn, await _now(conn) - REFUSED_FOR))
    first, trouble = waiting[0], retries.retry_state_of(waiting[0])
    reason = trouble.words() if trouble else ""
    more = f"; {len(waiting) - 1} more fail" if waiting[1:] else ""
    step = f"Run `billfold files retry {first.file_id}`, or propose to `close` it there."
    found = f"{first.name} is not booked yet, {plain_error(reason)}{more}"
    return HealthCheck("rail files", found, step, reason)


def _refused_files(refused: Sequence[RailFile]) -> HealthCheck:
    if not refused:
        return HealthCheck("rail files", "none fails")
    first, more = refused[0], f"; {len(refused) - 1} more were refused" if refused[1:] else ""
    found = f"{first.rail} file {first.name} is refused since {format_moment(first.created_at)}{more}"
    step = f"See why: `billfold files show {first.file_id}`. Nothing of it was booked: have it corrected and resent."
    return HealthCheck("rail files", found, step)


_WAITS = """
SELECT count(*), sum(w.amount)::bigint, min(m.send_at) FROM wire_message m JOIN wire w USING (customer_id, wire_id)
 WHERE m.file_id IS NULL AND w.reason = 'WAITING_FOR_FUNDS'
"""


async def _liquidity(conn: Connection) -> HealthCheck:
    """Check for wires that wait for funds of the bank."""
    waiting, cents, since = await conn.fetchrow(_WAITS) or (0, 0, None)
    if since is None:
        return HealthCheck("liquidity", "no wire waits for funds")
    found = f"{waiting} wires of {format_usd(cents)} wait for funds since {format_moment(since)}"
    return HealthCheck(
        "liquidity", found, "See `billfold liquidity show`: fund the reserve, or release with two people."
    )


# Only if nothing came after the refusal.
_LATE_FETCH = """
SELECT source, refused_at, refusal FROM market_fetch
 WHERE refused_at > $1 AND refused_at > coalesce(added_at, '-infinity') ORDER BY refused_at DESC LIMIT 1
"""
_DESK = f"""
SELECT (SELECT count(*) FROM dealer_order WHERE status = 'UNKNOWN'), (SELECT reason FROM trading_desk WHERE paused),
       (SELECT count(*) FROM dealer_message WHERE {OPEN_MESSAGES}),
       (SELECT array_agg(ARRAY[dealer, problem] ORDER BY dealer) FROM dealer_session
         WHERE problem IS NOT NULL AND NOT is_on)
"""


async def _trading_desk(conn: Connection) -> HealthCheck:
    """Check for orders and messages that need a person, for sessions that fail, and for a paused desk."""
    unknown, paused, messages, failing = await conn.fetchrow(_DESK) or (0, None, 0, None)
    if unknown:
        step = "Ask the dealers, then `billfold desk report` or `billfold desk enter`."
        found = f"{unknown} orders may or may not be filled: the dealer does not answer"
        return HealthCheck("trading desk", found, step)
    if messages:
        found = f"{messages} messages of dealers were held or refused"
        return HealthCheck("trading desk", found, "See why: `billfold desk messages`.")
    if failing:
        found = "; ".join(f"no session with {dealer}, {plain_error(problem)}" for dealer, problem in failing)
        step = "Call the dealer; work its orders by hand."
        return HealthCheck("trading desk", found, step, "; ".join(": ".join(each) for each in failing))
    step = "Resume it: `billfold desk resume`." if paused else ""
    return HealthCheck("trading desk", f"paused: {paused}" if paused else "running", step)


_SETTLEMENT = f"""
SELECT held, rejected, fails, since FROM (
  SELECT count(*) FILTER (WHERE status = 'REJECTED') AS rejected, count(*) FILTER (WHERE settles_on < $1) AS fails,
         min(settles_on) AS since
    FROM settlement_instruction WHERE {OPEN_INSTRUCTIONS} AND units <> settled_units) i
 CROSS JOIN (SELECT count(*) AS held FROM settlement_difference WHERE status = 'HELD') d
"""


async def _settlement(conn: Connection) -> HealthCheck:
    """Check for confirmations and rejections that need a person, and for fails."""
    held, rejected, fails, since = await conn.fetchrow(_SETTLEMENT, et_date(await _now(conn))) or (0, 0, 0, None)
    if held or rejected:
        found = f"{held} confirmations differ, {rejected} instructions are rejected"
        return HealthCheck("settlement", found, "See them: `billfold settlement show`.")
    return HealthCheck("settlement", f"{fails} fails since {format_day(since)}" if since and fails else "nothing fails")


async def _market_data(conn: Connection, settings: Settings, market: Market | None) -> HealthCheck:
    """Check the market data without which bills cannot be traded; the rates come first."""
    ages = settings.traded_rates_max_age_days, settings.quotes_age_max
    market = market or await load_market(conn, age_max_days=ages[0], quotes_age_max=ages[1])
    rates, *bills = market_data_states(market, await _now(conn))
    first = next((each for each in (rates, *bills) if each.problem), None)
    if first is None:
        late = await conn.fetchrow(_LATE_FETCH, wall_now() - REFUSED_FOR)
        if late and settings.market_sources:
            found = f"{late['source']} was refused at {format_moment(late['refused_at'])}: {late['refusal']}"
            return HealthCheck("market data", found, "See `billfold market status`; docs/operate/market_data.md.")
        return HealthCheck("market data", f"rates of {rates.newest}")
    found = f"{first.what}: {first.newest}; {first.problem}"
    return HealthCheck("market data", found, "Run `billfold market import` with newer files.")


async def failed_work(conn: Connection) -> HealthCheck:
    """Check items of workers that failed: the one that failed first is named, with its error."""
    failed = await list_failed(conn)
    if not failed:
        return HealthCheck("workers", "nothing fails")
    first, more = failed[0], f"; {len(failed) - 1} more fail" if failed[1:] else ""
    times = "once" if first.tries == 1 else f"{first.tries} times"
    found = f"{first.kind.replace('_', ' ')} failed {times}, {plain_error(first.error)}{more}"
    step = f"Have an engineer fix the cause. It is tried again {format_moment(first.again_at)}."
    return HealthCheck("workers", found, step, f"{first.kind} {first.item}: {first.error}")


async def _wallets(conn: Connection) -> HealthCheck:
    """Check wallets that cannot pay pending withdrawals: the one blocked for longest is named."""
    blocked = await list_blocked(conn)
    if not blocked:
        return HealthCheck("wallets", "none is blocked")
    first, more = blocked[0], f"; {len(blocked) - 1} more are blocked" if blocked[1:] else ""
    since = f" since {format_moment(first.problem_since)}" if first.problem_since else ""
    found = f"{first.chain}{since}: {plain_error(first.problem_detail or '')}{more}"
    step = "See docs/operate/crypto_withdrawals.md; it continues automatically."
    return HealthCheck("wallets", found, step, first.problem_detail or "")


async def _chains(conn: Connection) -> HealthCheck:
    """Check for deposits that cannot be credited or that cost the bank money; the first is named."""
    lost = await list_deposits(conn, [DepositStatus.REORGED])
    if lost:
        found = f"deposit {lost[0].deposit_id} was reorged on {lost[0].chain} after it was booked ({len(lost)} in all)"
        return HealthCheck("chains", found, "See `billfold crypto deposits list` and docs/operate/crypto.md.")
    cursors = await list_cursors(conn)
    for each in cursors:
        if each.problems or wall_now() - each.agreed_at > UNREAD_LIMIT:
            said = "; ".join(f"{node} {problem}" for node, problem in each.problems.items())
            found = f"{each.chain} is read up to {format_moment(each.agreed_at)}: {said or 'no worker reads it'}"
            return HealthCheck("chains", found, "Fix the nodes, or start a worker: `billfold worker`.")
    return HealthCheck("chains", f"{len(cursors)} read" if cursors else "none is read")


COUNT_MAX = 10_000
"""Counting stops here."""
_QUEUES = f"""
SELECT 'Customers with work due', (SELECT min(due_at) FROM ledger_head WHERE due_at <= $1),
       (SELECT count(*) FROM (SELECT 1 FROM ledger_head WHERE due_at <= $1 LIMIT {COUNT_MAX}) q), $1::timestamptz
 UNION ALL
SELECT 'Scheduled jobs', (SELECT min(due_at) FROM scheduled_job WHERE due_at <= $1),
       (SELECT count(*) FROM (SELECT 1 FROM scheduled_job WHERE due_at <= $1 LIMIT {COUNT_MAX}) q), $1
 UNION ALL
SELECT 'Webhook deliveries', (SELECT min(due_at) FROM subscription_queue WHERE due_at <= $2),
       (SELECT count(*) FROM (SELECT 1 FROM delivery WHERE due_at IS NOT NULL LIMIT {COUNT_MAX}) q), $2
 UNION ALL
SELECT 'Files of the rails', (SELECT min(created_at) FROM rail_file WHERE done_at IS NULL),
       (SELECT count(*) FROM (SELECT 1 FROM rail_file WHERE done_at IS NULL LIMIT {COUNT_MAX}) q), $1
"""
_WAITING = f"""
SELECT (SELECT count(*) FROM freeze_proposal WHERE status IN ('PROPOSED', 'CONFIRMED')) AS proposals,
       (SELECT count(*) FROM reconciliation_break WHERE status = 'OPEN') AS breaks,
       (SELECT count(*) FROM suspense_item WHERE status = 'HELD') AS suspense,
       (SELECT count(*) FROM card_dispute WHERE status IN ('OPENED', 'PROVISIONALLY_CREDITED')) AS disputes,
       (SELECT count(*) FROM dealer_message WHERE {OPEN_MESSAGES}) AS dealer_messages,
       (SELECT count(*) FROM settlement_difference WHERE status = 'HELD') AS differences
"""
_CLAIMS = "SELECT name, until FROM work_claim WHERE until > $1 ORDER BY name"


class QueueLag(NamedTuple):
    """A queue: its length (at most COUNT_MAX is counted), and the waiting time of its first item."""

    queue: str
    waiting: int
    waited: timedelta | None


async def read_lags(conn: Connection, *, now: datetime, wall: datetime) -> list[QueueLag]:
    """Return each queue of the bank; `now` is business time."""
    rows = await conn.fetch(_QUEUES, now, wall)
    return [
        QueueLag(name, count, None if since is None else max(at - since, timedelta()))
        for name, since, count, at in rows
    ]


async def count_waiting(conn: Connection) -> dict[str, int]:
    """Return how much of each kind waits for an operator, besides reviews."""
    return dict(await conn.fetchrow(_WAITING) or {})


async def list_claims(conn: Connection, wall: datetime) -> list[tuple[str, datetime]]:
    """Return the work that a process has claimed, and until when."""
    return [(row["name"], row["until"]) for row in await conn.fetch(_CLAIMS, wall)]
