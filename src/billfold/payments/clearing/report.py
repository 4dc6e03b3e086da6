"""Balances of the rails, the payments that explain them, late settlements, and liquidity of the coming days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import NamedTuple

from billfold.ledger.bank import Bank
from billfold.ledger.types import TradeActivity
from billfold.payments.clearing.rules import ClearingTotals, OpenPayment, SettlementBlock
from billfold.payments.clearing.store import DATE_MAX, EVER, SettlementPeriod, balances, list_cleared, list_open
from billfold.payments.clearing.worker import find_unsettled
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_instant
from billfold.trading.settlement.store import list_due

HORIZON = timedelta(days=7)
FACE_CENTS = 100_00
_NEWEST = """
SELECT settles_on, cusip, side, units, block_cents, closed_on FROM settlement
 ORDER BY settles_on DESC, cusip, price_micros, side LIMIT $1
"""


class SettledBlock(NamedTuple):
    """A block of one bill that the bank has settled."""

    settles_on: date
    cusip: str
    side: str
    units: int
    cents: int
    closed_on: date


class LiquidityDay(NamedTuple):
    """Inflow and outflow of one day, in cents."""

    day: date
    inflow: int
    outflow: int

    @property
    def net(self) -> int:
        """Inflow less outflow; the bank has to fund a negative amount."""
        return self.inflow - self.outflow


async def list_settled(conn: Connection, limit: int) -> list[SettledBlock]:
    """Return the newest blocks that are settled."""
    return [SettledBlock(*row) for row in await conn.fetch(_NEWEST, limit)]


async def list_coming(bank: Bank, conn: Connection, today: date) -> list[SettlementBlock]:
    """Return what settles by the end of the horizon: unsettled blocks, and what the custodian has to settle."""
    blocks = await find_unsettled(conn, today + HORIZON)
    due = [
        SettlementBlock(each.settles_on, each.cusip, 0, side, abs(each.open_units), abs(each.open_money))
        for each in await list_due(conn, bank.own_id, today + HORIZON)
        for side in [TradeActivity.BUY if each.open_units > 0 else TradeActivity.SELL]
    ]
    # Customers' trades are met from the inventory, which moves no money of the reserve.
    return [each for each in blocks if not bank.terms.dealers or each.side == TradeActivity.MATURITY] + due


def liquidity(
    bank: Bank,
    today: date,
    units: Mapping[str, int],
    *,
    blocks: Iterable[SettlementBlock],
    rails: Iterable[ClearingTotals],
) -> list[LiquidityDay]:
    """Return the coming days with cash flows: `units` of bills by CUSIP mature at face value.

    Overdue amounts count for today.
    """
    ends = today + HORIZON
    inflow, outflow = defaultdict[date, int](int), defaultdict[date, int](int)
    maturing = {cusip: bank.market.bill(cusip).maturity for cusip in units}
    for cusip, day in maturing.items():
        if today <= day <= ends:
            inflow[day] += units[cusip] * FACE_CENTS
    for block in blocks:
        if block.side != TradeActivity.MATURITY:
            day = max(bank.calendars.settlement_on_or_after(block.settles_on), today)
            (outflow if block.side == TradeActivity.BUY else inflow)[day] += block.customers_cents
    for each in rails:
        inflow[max(each.settles_on, today)] += each.unsettled_in
        outflow[max(each.settles_on, today)] += each.unsettled_out
    days = sorted(day for day in inflow.keys() | outflow.keys() if day <= ends)
    return [LiquidityDay(day, inflow[day], outflow[day]) for day in days if inflow[day] or outflow[day]]


_ONE_MICROSECOND, _ONE_DAY = timedelta(microseconds=1), timedelta(days=1)
RECENT = timedelta(days=7)


class ClearingReport(NamedTuple):
    """The clearing accounts, the open settlement dates, and the payments in transit."""

    held: dict[str, int]
    dates: list[ClearingTotals]
    payments: list[OpenPayment]

    def only(self, rail: str | None) -> ClearingReport:
        """Return the report of one rail, or of all."""
        if rail is None:
            return self
        held = {kind: cents for kind, cents in self.held.items() if kind == f"rail:{rail.lower()}"}
        dates = [each for each in self.dates if each.rail == rail]
        return ClearingReport(held, dates, [each for each in self.payments if each.rail == rail])

    def explained(self, rail: str) -> int:
        """Return the cents of payments in transit on this rail."""
        return sum(d.unsettled_out - d.unsettled_in for d in self.dates if d.rail == rail)

    def unexplained(self, rail: str) -> int:
        """Return the cents on the accounts of this rail that no payment in transit explains."""
        return self.held.get(f"rail:{rail.lower()}", 0) - self.explained(rail)


_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"


class InTransit(NamedTuple):
    """Unsettled amounts of the last days and of those to come: dates that are over are breaks."""

    open_day: date
    dates: list[ClearingTotals]
    payments: list[OpenPayment]

    @property
    def breaks(self) -> list[tuple[ClearingTotals, int]]:
        """Dates that are over and not settled, with how many days ago they were, the oldest first."""
        late = [each for each in self.dates if each.settles_on < self.open_day]
        return [(each, (self.open_day - each.settles_on).days) for each in sorted(late, key=lambda e: e.settles_on)]

    @property
    def coming(self) -> list[tuple[ClearingTotals, int]]:
        """Dates that settle today and later; none is late."""
        return [(each, 0) for each in self.dates if each.settles_on >= self.open_day]


async def read_in_transit(bank: Bank, *, limit: int) -> InTransit:
    """Return the payments unsettled since a week ago, a cheaper form of `clearing_report`."""
    bank_id = bank.own_id
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        open_day = await conn.fetchval(_OPEN_DAY, bank_id)
        first = open_day - RECENT
        recent = SettlementPeriod(first, et_instant(first, 0), DATE_MAX, ends=et_instant(DATE_MAX, 0))
        since = recent._replace(first=open_day, begins=_closed_until(bank, open_day))
        dates = await list_cleared(conn, bank_id, recent)
        return InTransit(open_day, dates, await list_open(conn, bank_id, since, limit=limit))


async def clearing_report(bank: Bank) -> ClearingReport:
    """Return the balances of the rails and the payments that explain them, at one moment."""
    bank_id = bank.own_id
    async with bank.one_snapshot() as conn:
        dates = await list_cleared(conn, bank_id, EVER)
        open_day = await conn.fetchval(_OPEN_DAY, bank_id)
        since = EVER._replace(first=open_day, begins=_closed_until(bank, open_day))
        return ClearingReport(await balances(conn), dates, await list_open(conn, bank_id, since))


def _closed_until(bank: Bank, open_day: date) -> datetime:
    """Return the moment after the close of the business day before the open one."""
    day = open_day - _ONE_DAY
    while not bank.calendars.is_settlement_day(day):
        day -= _ONE_DAY
    return bank.calendars.closes_at(day) + _ONE_MICROSECOND
