"""The treasury desk: positions per bill, settlements, maturities, and the liquidity of the coming days."""

from typing import NamedTuple

from litestar import get

from billfold.bills.types import Bill
from billfold.payments.clearing.report import (
    FACE_CENTS,
    LiquidityDay,
    liquidity,
    list_coming,
    list_settled,
    read_in_transit,
)
from billfold.reports.proofs.roots.store import find_root
from billfold.reports.proofs.roots.types import BillLine, DailyRoot
from billfold.reports.proofs.signatures import payload_of
from billfold.web.console.charts import maturity_ladder
from billfold.web.console.team import InBank
from billfold.web.page_context import PageResponse

_SETTLED = 20
_RUNGS = 20


class Position(NamedTuple):
    """The bank's holding of a bill for its customers, according to the last daily root."""

    bill: Bill
    line: BillLine

    @property
    def face(self) -> int:
        """Return the value of all units at maturity, in cents."""
        return self.line.length * FACE_CENTS


class LiquidityBar(NamedTuple):
    """A day of the chart: both bars in percent of the longest."""

    day: LiquidityDay
    inflow: float
    outflow: float


@get("/bank/treasury")
async def show_desk(operator: InBank) -> PageResponse:
    """Show positions, settlements, maturities and liquidity."""
    bank = operator.bank
    transit = await read_in_transit(bank, limit=1)
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        root = await find_root(conn)
        coming = await list_coming(bank, conn, transit.open_day)
        settled = await list_settled(conn, _SETTLED)
    lines = {} if root is None else payload_of(root.jws, DailyRoot).bills
    held = {cusip: line for cusip, line in lines.items() if line.length}
    positions = sorted((Position(bank.market.bill(cusip), line) for cusip, line in held.items()), key=_maturity)
    units = {cusip: line.length for cusip, line in held.items()}
    days = liquidity(bank, transit.open_day, units, blocks=coming, rails=transit.dates)
    return operator.render(
        "bank_treasury",
        root=root,
        positions=positions,
        ladder=maturity_ladder([(each.bill.maturity, each.face) for each in positions])[:_RUNGS],
        coming=coming,
        settled=settled,
        bars=_bars(days),
    )


def _maturity(position: Position) -> tuple[object, str]:
    return position.bill.maturity, position.bill.cusip


def _bars(days: list[LiquidityDay]) -> list[LiquidityBar]:
    longest = max((max(each.inflow, each.outflow) for each in days), default=0) or 1
    return [
        LiquidityBar(each, round(100 * each.inflow / longest, 1), round(100 * each.outflow / longest, 1))
        for each in days
    ]
