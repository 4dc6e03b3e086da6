"""What comes in and goes out of the bank on the coming days: bills that mature, trades and payments that settle."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from billfold.ledger.bank import Bank
from billfold.ledger.types import TradeActivity
from billfold.payments.clearing.commands import ClearingTotals, SettlementBlock
from billfold.payments.clearing.worker import find_unsettled
from billfold.platform.database.connection import Connection

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
    """What comes in and goes out on one day, in cents."""

    day: date
    inflow: int
    outflow: int

    @property
    def net(self) -> int:
        """What is left of the day; below zero the bank needs it."""
        return self.inflow - self.outflow


async def list_settled(conn: Connection, limit: int) -> list[SettledBlock]:
    """Return the newest blocks that are settled."""
    return [SettledBlock(*row) for row in await conn.fetch(_NEWEST, limit)]


async def list_coming(conn: Connection, today: date) -> list[SettlementBlock]:
    """Return the blocks that are not settled and settle by the end of the horizon."""
    return list(await find_unsettled(conn, today + HORIZON))


def liquidity(
    bank: Bank,
    today: date,
    units: Mapping[str, int],
    *,
    blocks: Iterable[SettlementBlock],
    rails: Iterable[ClearingTotals],
) -> list[LiquidityDay]:
    """Return the days to come with something in or out: `units` of bills by CUSIP mature at face.

    What is late counts today.
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
