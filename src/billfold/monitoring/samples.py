"""Samples of metrics: connections and queue of this process, and figures of the bank from its database."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import SET_APART
from billfold.payments.clearing.rules import RAILS
from billfold.platform.clock import business_now
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Connection
from billfold.platform.dates import ET, et_instant
from billfold.platform.telemetry import metrics
from billfold.platform.telemetry.tracing import start_tracing, tracing
from billfold.reconciliation.types import Cause
from billfold.trading.fix.store import OPEN_IN_SQL as OPEN_MESSAGES
from billfold.trading.settlement.store import OPEN_IN_SQL as OPEN_INSTRUCTIONS
from billfold.trading.settlement.store import UNSETTLED_BY_DEALER
from billfold.trading.store import LIVE_IN_SQL
from billfold.trading.types import OrderStatus

NO_TRACES = "none"
SAMPLE_SECONDS = 2.0


@asynccontextmanager
async def telemetry(bank: Bank, role: str) -> AsyncIterator[None]:
    """Count and record spans in this process while the context lasts, according to the settings."""
    if bank.settings.traces != NO_TRACES:
        start_tracing(role)
    try:
        async with _counted(bank):
            yield
    finally:
        await asyncio.to_thread(tracing.stop)


@asynccontextmanager
async def _counted(bank: Bank) -> AsyncIterator[None]:
    if bank.settings.management_port is None:
        yield
        return
    metrics.start_metrics()
    task = asyncio.create_task(_sample(bank))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _sample(bank: Bank) -> None:
    while True:
        open_, idle = bank.pool.get_size(), bank.pool.get_idle_size()
        metrics.POOL_CONNECTIONS.set(open_ - idle, "used")
        metrics.POOL_CONNECTIONS.set(idle, "idle")
        metrics.POOL_CONNECTIONS_MAX.set(bank.pool.get_max_size())
        metrics.COMMANDS_WAITING.set(bank.engine.waiting)
        await asyncio.sleep(SAMPLE_SECONDS)


class DatabaseGauge(NamedTuple):
    """One metric whose values are read from the database; each row of its query is labels and the value."""

    name: str
    about: str
    query: str = ""
    labels: Sequence[str] = ()


class MetricSample(NamedTuple):
    """The data of one metric."""

    gauge: DatabaseGauge
    values: Sequence[tuple[Sequence[str], float]]


COUNT_MAX = 10_000
RECONCILED_DAYS = 7
_TIMEOUT_MILLISECONDS = 5_000


def _seconds_since(instant: str, now: str) -> str:
    return f"greatest(0, coalesce(extract(epoch FROM {now} - {instant}), 0))::float8"


_ORDER_STATUSES = ", ".join(f"'{each}'" for each in OrderStatus)
_CAUSES = ", ".join(f"'{each}'" for each in Cause)
GAUGES = (
    DatabaseGauge(
        "billfold_due_work_lag_seconds",
        "Age of the oldest due work of a customer that is not set apart.",
        f"""SELECT {_seconds_since("min(due_at)", "$1::timestamptz")} FROM ledger_head
             WHERE due_at <= $1 AND customer_id NOT IN ({SET_APART})""",
    ),
    DatabaseGauge(
        "billfold_customers_set_apart",
        "Customers whose due work fails, so that the bank closes its days without them.",
        f"SELECT count(*)::float8 FROM ({SET_APART}) apart",
    ),
    DatabaseGauge(
        "billfold_scheduled_jobs_late",
        "Scheduled jobs whose time has come, by kind; `ach.window` is a window that was missed.",
        f"""SELECT kind, count(*)::float8 FROM (
              SELECT kind FROM scheduled_job WHERE due_at <= $1::timestamptz - interval '1 minute' LIMIT {COUNT_MAX}
            ) late GROUP BY kind""",
        labels=("kind",),
    ),
    DatabaseGauge(
        "billfold_scheduled_job_lag_seconds",
        "Age of the oldest due scheduled job.",
        f"SELECT {_seconds_since('min(due_at)', '$1::timestamptz')} FROM scheduled_job",
    ),
    DatabaseGauge(
        "billfold_webhook_queue",
        "Events that wait to be delivered, the second and later ones of a queue included.",
        f"SELECT count(*)::float8 FROM (SELECT 1 FROM delivery WHERE due_at IS NOT NULL LIMIT {COUNT_MAX}) waiting",
    ),
    DatabaseGauge(
        "billfold_webhook_queue_age_seconds",
        "Age of the oldest pending delivery.",
        f"SELECT {_seconds_since('min(due_at)', '$2::timestamptz')} FROM subscription_queue",
    ),
    DatabaseGauge(
        "billfold_rail_files_waiting",
        "Files of the rails that are not finished, by rail and direction.",
        "SELECT rail, direction, count(*)::float8 FROM rail_file WHERE done_at IS NULL GROUP BY rail, direction",
        labels=("rail", "direction"),
    ),
    DatabaseGauge(
        "billfold_rail_file_age_seconds",
        "Age of the oldest file of the rails that is not finished, by rail and direction.",
        f"""SELECT rail, direction, {_seconds_since("min(created_at)", "$1::timestamptz")}
              FROM rail_file WHERE done_at IS NULL GROUP BY rail, direction""",
        labels=("rail", "direction"),
    ),
    DatabaseGauge(
        "billfold_suspense_items",
        "Payments held in suspense, by rail.",
        f"""SELECT rail, count(*)::float8 FROM (
              SELECT rail FROM suspense_item WHERE status = 'HELD' LIMIT {COUNT_MAX}) held GROUP BY rail""",
        labels=("rail",),
    ),
    DatabaseGauge(
        "billfold_desk_orders",
        "Orders to dealers that are live or were decided within a day, by status; UNKNOWN needs a person.",
        f"""SELECT s.status, count(o.order_id)::float8 FROM unnest(ARRAY[{_ORDER_STATUSES}]) s(status)
              LEFT JOIN dealer_order o
                ON o.status = s.status
               AND (o.status IN {LIVE_IN_SQL} OR o.decided_at > $1::timestamptz - interval '1 day')
             GROUP BY s.status""",
        labels=("status",),
    ),
    DatabaseGauge(
        "billfold_desk_messages",
        "Messages of dealers that a person has to see, by status: HELD or REFUSED.",
        f"""SELECT s.status, count(m.message_id)::float8 FROM unnest(ARRAY['HELD', 'REFUSED']) s(status)
              LEFT JOIN (SELECT message_id, status FROM dealer_message WHERE {OPEN_MESSAGES}) m ON m.status = s.status
             GROUP BY s.status""",
        labels=("status",),
    ),
    DatabaseGauge(
        "billfold_desk_session_on",
        "1 while the session with a dealer over FIX is logged on, by dealer.",
        "SELECT dealer, is_on::int::float8 FROM dealer_session",
        labels=("dealer",),
    ),
    DatabaseGauge(
        "billfold_settlement_instructions",
        "Instructions to the custodian that are not settled, by status.",
        f"SELECT status, count(*)::float8 FROM settlement_instruction WHERE {OPEN_INSTRUCTIONS} GROUP BY status",
        labels=("status",),
    ),
    DatabaseGauge(
        "billfold_settlement_fail_age_days",
        "Days since the oldest instruction that is not settled was due.",
        f"""SELECT greatest(0, ($1::timestamptz AT TIME ZONE 'America/New_York')::date - min(settles_on))::float8
              FROM settlement_instruction WHERE {OPEN_INSTRUCTIONS} AND units <> settled_units HAVING count(*) > 0""",
    ),
    DatabaseGauge(
        "billfold_settlement_differences",
        "Confirmations of the custodian that wait for two people.",
        "SELECT count(*)::float8 FROM settlement_difference WHERE status = 'HELD'",
    ),
    DatabaseGauge(
        "billfold_desk_paused",
        "1 while the trading desk is paused.",
        "SELECT count(*)::float8 FROM trading_desk WHERE paused",
    ),
    DatabaseGauge(
        "billfold_wires_waiting_cents",
        "Cents of wires that wait for funds of the bank.",
        """SELECT coalesce(sum(w.amount), 0)::float8 FROM wire_message m JOIN wire w USING (customer_id, wire_id)
            WHERE m.file_id IS NULL AND w.reason = 'WAITING_FOR_FUNDS'""",
    ),
    DatabaseGauge(
        "billfold_dealer_unsettled_cents",
        "Unsettled money with each dealer, payments and receipts added up.",
        UNSETTLED_BY_DEALER,
        labels=("dealer",),
    ),
    DatabaseGauge(
        "billfold_market_rates_days",
        "Calendar days since the day of the newest rates.",
        "SELECT ($1::timestamptz::date - max(day))::float8 FROM bill_rate",
    ),
    DatabaseGauge(
        "billfold_market_quotes_age_seconds",
        "Age of the oldest of dealers' quotes that bills are priced by.",
        f"""SELECT {_seconds_since("oldest_at", "$1::timestamptz")}
              FROM price_strike ORDER BY struck_at DESC LIMIT 1""",
    ),
    DatabaseGauge(
        "billfold_market_fetch_age_seconds",
        "Time since a source of market data was fetched, and since something of it was refused, by source.",
        f"""SELECT source, 'fetched', {_seconds_since("fetched_at", "$2::timestamptz")} FROM market_fetch
             UNION ALL SELECT source, 'refused', {_seconds_since("refused_at", "$2::timestamptz")}
              FROM market_fetch WHERE refused_at IS NOT NULL""",
        labels=("source", "state"),
    ),
    DatabaseGauge(
        "billfold_breaks_open",
        "Open breaks between the ledger and the statements of others, by cause.",
        f"""SELECT c.cause, count(b.break_id)::float8 FROM unnest(ARRAY[{_CAUSES}]) c(cause)
              LEFT JOIN reconciliation_break b ON b.status = 'OPEN' AND b.cause = c.cause GROUP BY c.cause""",
        labels=("cause",),
    ),
    DatabaseGauge(
        "billfold_breaks_age_seconds",
        "Age of the oldest open break.",
        f"SELECT {_seconds_since('min(seen_at)', '$1::timestamptz')} FROM reconciliation_break WHERE status = 'OPEN'",
    ),
    DatabaseGauge(
        "billfold_work_put_aside",
        "Items of background work that failed and are tried again later, by kind.",
        "SELECT kind, count(*)::float8 FROM failed_work GROUP BY kind",
        labels=("kind",),
    ),
    DatabaseGauge(
        "billfold_emails_waiting",
        "E-mails that are due but not sent.",
        f"""SELECT count(*)::float8 FROM (
              SELECT 1 FROM outbound_email WHERE sent_at IS NULL AND due_at <= $2::timestamptz LIMIT {COUNT_MAX}
            ) waiting""",
    ),
    DatabaseGauge(
        "billfold_audit_unsealed_seconds",
        "Age of the oldest audit entries that are not sealed.",
        f"""SELECT {_seconds_since("min(recorded_at)", "$2::timestamptz")}
              FROM audit_chain_head WHERE entry_no > sealed_no""",
    ),
    DatabaseGauge(
        "billfold_daily_roots_refused",
        "Days of which nothing was published because the ledger did not verify.",
        "SELECT count(*)::float8 FROM daily_root_refusal",
    ),
    DatabaseGauge(
        "billfold_chain_height",
        "Height of a chain as read by the bank, by chain and state: seen or final.",
        """SELECT chain, 'seen', seen_number::float8 FROM chain_cursor
           UNION ALL SELECT chain, 'final', final_number::float8 FROM chain_cursor""",
        labels=("chain", "state"),
    ),
    DatabaseGauge(
        "billfold_chain_lag_seconds",
        "How long ago the nodes of a chain last agreed.",
        f"SELECT chain, {_seconds_since('agreed_at', '$2::timestamptz')} FROM chain_cursor",
        labels=("chain",),
    ),
)

BREAKS = DatabaseGauge(
    "billfold_reconciliation_breaks",
    f"Settlement dates of the last {RECONCILED_DAYS} days that are not settled to the cent, by rail.",
    labels=("rail",),
)


async def measure(conn: Connection, wall: datetime) -> list[MetricSample]:
    """Return all but the reconciliation breaks, as of one snapshot."""
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        await conn.execute(f"SET LOCAL statement_timeout = {_TIMEOUT_MILLISECONDS}")
        now = business_now(await read_clock(conn), wall)
        found = []
        for each in GAUGES:
            given = [instant for name, instant in (("$1", now), ("$2", wall)) if name in each.query]
            query = each.query if "$1" in each.query else each.query.replace("$2", "$1")
            rows = await conn.fetch(query, *given)
            found.append(MetricSample(each, [([str(label) for label in labels], value) for *labels, value in rows]))
        return found


async def count_breaks(conn: Connection, wall: datetime) -> list[MetricSample]:
    """Return the number of past dates with breaks between settlement and bookings. Reads the payments of these days."""
    # It imports every rail.
    from billfold.payments.clearing.store import SettlementPeriod, list_cleared  # noqa: PLC0415

    async with conn.transaction(isolation="repeatable_read", readonly=True):
        await conn.execute(f"SET LOCAL statement_timeout = {_TIMEOUT_MILLISECONDS}")
        today = business_now(await read_clock(conn), wall).astimezone(ET).date()
        first, last = today - timedelta(days=RECONCILED_DAYS), today - timedelta(days=1)
        ends = et_instant(today, 0) - timedelta(microseconds=1)
        bank_id = await conn.fetchval("SELECT bank_customer_id FROM bank")
        open_dates = await list_cleared(conn, bank_id, SettlementPeriod(first, et_instant(first, 0), last, ends))
    counted = [([rail], float(sum(each.rail == rail for each in open_dates))) for rail in RAILS]
    return [MetricSample(BREAKS, counted)]
