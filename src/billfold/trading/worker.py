"""Rounds of the desk: exposure is read, the policy decides, orders are placed, sent, and expired after their day.

A round is submitted under the next number; of two processes with the same number one is refused. Where dealers are
worked by hand, to send an order is to put it on the list that people work from; over sessions `fix` sends it.
"""

from datetime import date, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import Origin
from billfold.platform import ids
from billfold.platform.calendars import Calendars
from billfold.platform.clock import monotonic
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import Refused
from billfold.platform.settings.settings import Settings
from billfold.trading.commands import ChangeOrder, PlaceOrders
from billfold.trading.rules.policy import DeskLimits, Position, decide
from billfold.trading.store import Exposure, find_desk, list_exposure, list_live_orders
from billfold.trading.types import DealerOrder, OrderStatus

log = structlog.get_logger(__name__)

CommandType = TypeVar("CommandType", bound=Command)
_BEFORE_CLOSE = timedelta(hours=1)
_ONE_DAY = timedelta(days=1)
_DOLLARS_OF_A_UNIT = 100
_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"


def command_of(
    bank: Bank, kind: type[CommandType], references: tuple[UUID, ...], *, key: UUID | None = None, **fields: Any
) -> CommandType:
    """Return a command about the bank itself, by default under a new key."""
    return kind(customers=(bank.own_id,), references=references, key=key or ids.new(), **fields)


def limits_of(settings: Settings) -> DeskLimits:
    """Return the limits of the policy; the largest order is rounded down to units, the smallest one up."""
    return DeskLimits(
        min_units=-(-settings.desk_min_face // _DOLLARS_OF_A_UNIT),
        max_units=settings.desk_max_face // _DOLLARS_OF_A_UNIT,
        max_house_units=settings.desk_max_house_face // _DOLLARS_OF_A_UNIT,
        max_house_dv01=settings.desk_max_house_dv01,
        max_slippage_bps=settings.desk_max_slippage_bps,
    )


def cover_by(settings: Settings, calendars: Calendars, day: date) -> datetime:
    """Return the instant by which everything is covered: the hour of the settings, or an hour before an early close."""
    return min(et_instant(day, settings.desk_cover_by), calendars.closes_at(day) - _BEFORE_CLOSE)


async def read_exposure(conn: Connection, bank: Bank) -> list[Exposure]:
    """Return the exposure by CUSIP now.

    Trades that settle before the previous settlement day are met, except those of a customer who was set apart and has
    been repaired since the last close: they appear with the next one.
    """
    bank_id = bank.own_id
    open_day = await conn.fetchval(_OPEN_DAY, bank_id)
    return await list_exposure(conn, bank_id, bank.calendars.settlement_on_or_before(open_day - _ONE_DAY))


def positions_of(bank: Bank, exposure: list[Exposure], now: datetime) -> list[Position]:
    """Return the positions that the policy decides about: bills that have not matured, at their marks."""
    found = []
    for each in exposure:
        bill = bank.market.bill(each.cusip)
        if now < bank.market.matures_at(bill):
            mark = bank.market.mark(bill, now)
            orders = {"live": each.live, "unknown_buys": each.unknown_buys, "unknown_sells": each.unknown_sells}
            found.append(Position(each.cusip, bill.maturity, mark, each.unmet, each.inventory, **orders))
    return found


async def place_round(bank: Bank, *, is_due: bool, cusip: str | None = None, origin: Origin) -> list[str]:
    """Decide and place a round of orders; return their ids. Raises Refused `desk-paused`, `order-state`.

    Orders whose day is over are expired first: they cover nothing any more.
    """
    bank_id = bank.own_id
    await expire_orders(bank)
    async with bank.one_snapshot() as conn:
        now = await bank.now(conn)
        desk = await find_desk(conn, bank_id)
        if desk is not None and desk.paused:
            raise Refused("desk-paused", f"The trading desk is paused: {desk.reason}")
        exposure = await read_exposure(conn, bank)
    positions = [each for each in positions_of(bank, exposure, now) if cusip in {None, each.cusip}]
    settles_on = bank.market.settles_on(now)
    decisions = decide(positions, limits_of(bank.settings), today=et_date(now), settles_on=settles_on, is_due=is_due)
    if not decisions:
        return []
    placed = await bank.engine.submit(
        command_of(
            bank,
            PlaceOrders,
            (bank_id,),
            caller="desk",
            origin=origin,
            round_no=(desk.round_no if desk else 0) + 1,
            decisions=tuple(decisions),
            settles_on=settles_on,
        )
    )
    orders: list[str] = placed.outcome["orders"]
    return orders


class DeskRounds:
    """A task of the worker: a round per interval while the market trades. Without dealers it does nothing."""

    def __init__(self) -> None:
        self._next_at = 0.0

    async def run(self, bank: Bank) -> int:
        """Expire what is over, place a round if it is time, and send what is placed; return how many orders moved."""
        if not bank.settings.dealers:
            return 0
        now = await bank.now()
        expired = await expire_orders(bank)
        if bank.calendars.is_trading(now) and monotonic() >= self._next_at:
            self._next_at = monotonic() + bank.settings.desk_interval
            await _place_scheduled(bank, now)
        return expired + await _send_orders(bank)


async def _place_scheduled(bank: Bank, now: datetime) -> None:
    is_due = now >= cover_by(bank.settings, bank.calendars, et_date(now))
    try:
        placed = await place_round(bank, is_due=is_due, origin=Origin.system())
    except Refused as refusal:  # paused, or another process has placed this round
        log.info("desk_round_refused", reason=refusal.detail)
    else:
        if placed:
            log.info("desk_orders_placed", orders=len(placed))


async def _send_orders(bank: Bank) -> int:
    """Put new orders on the list; with sessions those who keep them send the orders."""
    if bank.settings.dealer_sessions:
        return 0
    new = [each for each in await _live_orders(bank) if each.status == OrderStatus.NEW]
    for each in new:
        await change_order(bank, each.order_id, OrderStatus.SENT, reason="on the list of the desk")
    return len(new)


async def expire_orders(bank: Bank) -> int:
    """Expire orders of earlier days; one whose fate is unknown stays until a person has asked its dealer."""
    today = bank.calendars.business_date(await bank.now())
    over = [
        each for each in await _live_orders(bank) if each.business_date < today and each.status != OrderStatus.UNKNOWN
    ]
    for each in over:
        await change_order(bank, each.order_id, OrderStatus.EXPIRED, reason="its day is over")
    return len(over)


async def _live_orders(bank: Bank) -> list[DealerOrder]:
    return await list_live_orders(bank.pool, bank.own_id)


async def change_order(
    bank: Bank, order_id: UUID, status: OrderStatus, reason: str, *, dealer: str | None = None
) -> bool:
    """Change the state of an order; return False if somebody else did, also a worker that has died since.

    Of two that send an order only one may: each try is a command of its own.
    """
    who: dict[str, Any] = {"caller": "desk", "origin": Origin.system()}
    change: dict[str, Any] = {"order_id": order_id, "status": status, "reason": reason, "dealer": dealer}
    command = command_of(bank, ChangeOrder, (order_id,), **who, **change, by_dealer=True)
    try:
        await bank.engine.submit(command)
    except Refused as refusal:  # a person was faster
        log.info("order_not_changed", order_id=str(order_id), reason=refusal.detail)
        return False
    return True
