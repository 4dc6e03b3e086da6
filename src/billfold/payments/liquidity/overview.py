"""Liquidity at a glance, for the console and the command line, and the release of a wire by two people."""

from datetime import date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.store import FreezeProposal
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.payments.liquidity import store
from billfold.payments.liquidity.rules import DuePayment, Hour, forecast
from billfold.payments.wires.cases import get_wire
from billfold.payments.wires.commands import ReleaseWire
from billfold.platform import ids
from billfold.platform.dates import et_date, et_instant
from billfold.platform.money import format_usd
from billfold.trading.settlement.store import UNSETTLED_BY_DEALER

_ONE_DAY = timedelta(days=1)


class LiquidityOverview(NamedTuple):
    """The reserve now and by hour until the end of the next Federal Reserve day, and the wires that wait for it."""

    now: datetime
    reserve: int
    floor: int | None
    line: int
    hours: list[Hour]
    due: list[DuePayment]
    sent_today: int
    dealers: list[tuple[str, int]]

    @property
    def waiting(self) -> list[DuePayment]:
        """The wires that wait for funds of the bank."""
        return [each for each in self.due if each.is_waiting]

    @property
    def available(self) -> int:
        """The cents that wires may use now: with the line of credit, above the floor."""
        return self.reserve + self.line - (self.floor or 0)

    @property
    def lowest(self) -> Hour | None:
        """The hour at whose end the least is left."""
        return min(self.hours, key=lambda hour: hour.balance, default=None)


async def read_overview(bank: Bank) -> LiquidityOverview:
    """Return the state of one moment."""
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        now = await bank.now(conn)
        today = et_date(now)
        last: date = bank.calendars.next_fed_day(today)
        reserve = await store.read_reserve(conn, bank, now)
        flows = await store.list_flows(conn, bank, now, last)
        sent = await store.count_sent(conn, today)
        dealers = [(dealer, cents) for dealer, cents in await conn.fetch(UNSETTLED_BY_DEALER)]
    hours = forecast(reserve.cents, flows, now, et_instant(last + _ONE_DAY, 0))
    settings = bank.settings
    limits = settings.reserve_floor_cents, settings.credit_line_cents
    return LiquidityOverview(now, reserve.cents, *limits, hours, reserve.due, sent, dealers)


async def propose_release(bank: Bank, wire_id: UUID, *, reason: str, by: Operator) -> FreezeProposal:
    """Propose to let a waiting wire leave although the reserve is short; another operator confirms it.

    Raises NotFound, InvalidInput, Refused `wire-not-waiting`, `proposal-open`.
    """
    wire = await get_wire(bank, wire_id)
    command = ReleaseWire(
        caller="operator",
        key=ids.new(),
        customers=(wire.customer_id,),
        origin=by.origin,
        references=(wire_id,),
        wire_id=wire_id,
    )
    words = f"Release the wire of {format_usd(wire.amount)} to {wire.counterparty_name} below the floor of the reserve"
    return await propose_movement(bank, command, about=wire_id, words=words, reason=reason, by=by)
