"""Reads what the reserve holds and expects, and which wires are due."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from billfold.ledger.bank import Bank
from billfold.ledger.types import TradeActivity
from billfold.payments.clearing.store import SettlementPeriod, list_cleared, list_hourly
from billfold.payments.clearing.worker import find_unsettled
from billfold.payments.liquidity.rules import DuePayment, Flow
from billfold.payments.wires.commands import RELEASED, WAITING_FOR_FUNDS
from billfold.platform.database.connection import Connection, Db
from billfold.platform.dates import et_date, et_instant
from billfold.trading.settlement.store import list_due as list_instructed

_LOOKBACK = timedelta(days=7)
# Deliveries against payment: the bank has to expect to pay in the morning, and to be paid at the end.
PAYS_AT, IS_PAID_AT = time(8, 30), time(15)
_RESERVE = """
SELECT coalesce(sum(debits - credits), 0)::bigint FROM account
 WHERE customer_id = $1 AND kind = 'reserve' AND asset = 'USD'
"""
_DUE = f"""
SELECT m.message_id, m.customer_id, m.wire_id, w.amount, m.send_at,
       w.reason IS NOT DISTINCT FROM '{WAITING_FOR_FUNDS}', w.reason IS NOT DISTINCT FROM '{RELEASED}',
       w.counterparty_name
  FROM wire_message m JOIN wire w ON w.customer_id = m.customer_id AND w.wire_id = m.wire_id
 WHERE m.file_id IS NULL AND m.send_at <= $1 AND m.kind IN ('pacs.008', 'pacs.004')
   AND w.direction = 'OUTGOING' AND w.status = 'PENDING'
 ORDER BY m.send_at, w.created_at, w.written_no
"""
_SENT_TODAY = """
SELECT coalesce(sum(w.amount), 0)::bigint
  FROM wire_message m JOIN wire w ON w.customer_id = m.customer_id AND w.wire_id = m.wire_id
 WHERE m.file_id IS NOT NULL AND m.sent_at >= $1 AND w.direction = 'OUTGOING' AND w.status <> 'REJECTED'
"""


class Reserve(NamedTuple):
    """The expected balance of the reserve account now, and the wires that are due and have not left it."""

    cents: int
    due: list[DuePayment]


async def read_reserve(conn: Connection, bank: Bank, now: datetime) -> Reserve:
    """Return the reserve: that of the ledger, what settled since its last close, and what has not left yet."""
    bank_id, today = bank.own_id, et_date(now)
    first = today - _LOOKBACK
    span = SettlementPeriod(first, et_instant(first, 0), today, ends=now)
    booked: int = await conn.fetchval(_RESERVE, bank_id)
    moved = sum(each.unsettled_in - each.unsettled_out for each in await list_cleared(conn, bank_id, span))
    due = await list_due(conn, now)
    return Reserve(booked + moved + sum(each.cents for each in due), due)


async def list_due(conn: Db, now: datetime) -> list[DuePayment]:
    """Return the wires that are due and have not left, the first due first."""
    return [DuePayment(*row) for row in await conn.fetch(_DUE, now)]


async def count_sent(conn: Db, day: date) -> int:
    """Return the cents that left by wire on a day."""
    sent: int = await conn.fetchval(_SENT_TODAY, et_instant(day, 0))
    return sent


async def list_flows(conn: Connection, bank: Bank, now: datetime, last: date) -> list[Flow]:
    """Return what is expected in the reserve after now and by the end of a day, without wires that are due."""
    bank_id = bank.own_id
    span = SettlementPeriod(et_date(now), now, last, ends=et_instant(last + timedelta(days=1), 0))
    rails = [Flow(*row) for row in await list_hourly(conn, bank_id, span) if row[0] > now]
    due = [(each.settles_on, each.open_money, each.dealer) for each in await list_instructed(conn, bank_id, last)]
    for block in await find_unsettled(conn, last):
        if not bank.terms.dealers or block.side == TradeActivity.MATURITY:  # others are met with dealers
            cents = block.customers_cents if block.side == TradeActivity.BUY else -block.customers_cents
            due.append((block.settles_on, cents, str(block.side).lower()))
    return [*rails, *_dated(due, now)]


def _dated(due: list[tuple[date, int, str]], now: datetime) -> Iterator[Flow]:
    for day, cents, cause in due:
        at = et_instant(day, PAYS_AT if cents > 0 or cause == TradeActivity.MATURITY.lower() else IS_PAID_AT)
        yield Flow(max(at, now), -cents, cause)
