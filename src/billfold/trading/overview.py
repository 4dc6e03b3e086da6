"""The desk at a glance, for the console, the command line and health checks."""

from datetime import date, datetime
from typing import NamedTuple

from billfold.ledger.bank import Bank
from billfold.platform.dates import et_date
from billfold.trading.rules.policy import Position
from billfold.trading.store import BillResult, Exposure, find_desk, list_live_orders, list_results
from billfold.trading.types import DealerOrder, OrderStatus, TradingDesk
from billfold.trading.worker import cover_by, positions_of, read_exposure

_LAST_CLOSED_DAY = "SELECT max(business_date) FROM closing_price"
_FACE_CENTS = 100_00


class DeskLine(NamedTuple):
    """A bill: its exposure, and its position at the mark; None once it has matured."""

    exposure: Exposure
    position: Position | None

    @property
    def cusip(self) -> str:
        """The bill."""
        return self.exposure.cusip

    @property
    def uncovered(self) -> int:
        """Units that neither dealers nor live orders cover; of unknown orders the worse case."""
        return self.position.worst if self.position else abs(self.exposure.units)


class DeskOverview(NamedTuple):
    """The state of the desk, its exposure and live orders, and the result of the last closed day."""

    desk: TradingDesk | None
    now: datetime
    cover_by: datetime
    is_late: bool
    lines: list[DeskLine]
    orders: list[DealerOrder]
    closed_on: date | None
    results: list[BillResult]

    @property
    def state(self) -> str:
        """The state in words."""
        return f"paused: {self.desk.reason}" if self.desk and self.desk.paused else "running"

    @property
    def result(self) -> int:
        """The result of the last closed day, in cents."""
        return sum(each.total for each in self.results)

    @property
    def unknown(self) -> list[DealerOrder]:
        """Orders that need a person: nobody knows whether they were filled."""
        return [each for each in self.orders if each.status == OrderStatus.UNKNOWN]

    @property
    def uncovered_cents(self) -> int:
        """The face value that is not covered, in cents."""
        return sum(line.uncovered for line in self.lines) * _FACE_CENTS

    @property
    def sentence(self) -> str:
        """The uncovered face value in words."""
        bills = sum(bool(line.uncovered) for line in self.lines)
        return f"${self.uncovered_cents // 100:,} of {bills} bills is not covered."


async def read_overview(bank: Bank) -> DeskOverview:
    """Return the desk now, in one snapshot."""
    bank_id = bank.own_id
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        now = await bank.now(conn)
        exposure = await read_exposure(conn, bank)
        orders = await list_live_orders(conn, bank_id)
        closed_on = await conn.fetchval(_LAST_CLOSED_DAY)
        results = await list_results(conn, bank_id, closed_on) if closed_on else []
        desk = await find_desk(conn, bank_id)
    positions = {each.cusip: each for each in positions_of(bank, exposure, now)}
    due = cover_by(bank.settings, bank.calendars, et_date(now))
    return DeskOverview(
        desk,
        now,
        cover_by=due,
        is_late=now >= due and bank.calendars.is_trading(now),
        lines=[DeskLine(each, positions.get(each.cusip)) for each in exposure],
        orders=orders,
        closed_on=closed_on,
        results=results,
    )
