"""Decides which due wires leave when the bank has a floor, and lets the others wait: called before a file is written.

Nothing here is part of a customer's command: a wire is booked as always, and waits where it is handed to the rail.
"""

from datetime import datetime, timedelta
from uuid import UUID

import structlog

from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.liquidity import rules
from billfold.payments.liquidity.rules import DuePayment, Funds
from billfold.payments.liquidity.store import Reserve, count_sent, list_flows, read_reserve
from billfold.payments.wires.commands import HoldWire
from billfold.payments.wires.rules import cut_offs
from billfold.payments.wires.rules.recording import WIRE_SEND
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import BillfoldError

log = structlog.get_logger(__name__)

_TRIED_AGAIN_AFTER = timedelta(minutes=5)
_ONE_DAY = timedelta(days=1)


async def admit_due(bank: Bank) -> list[UUID] | None:
    """Return the due wires that may leave, by message; None if the bank has no floor. The others begin to wait."""
    if bank.settings.reserve_floor_cents is None:
        return None
    async with bank.one_snapshot() as conn:
        now = await bank.now(conn)
        reserve = await read_reserve(conn, bank, now)
        funds = await read_funds(conn, bank, reserve, now)
    leaving = {each.message_id for each in rules.admit(reserve.due, funds, now)}
    waiting = [each for each in reserve.due if each.message_id not in leaving]
    if waiting:
        await _hold(bank, waiting, now)
    return list(leaving)


async def read_funds(conn: Connection, bank: Bank, reserve: Reserve, now: datetime) -> Funds:
    """Return what due wires may use; only a bank with a floor has any limit."""
    settings, today = bank.settings, et_date(now)
    available = reserve.cents + settings.credit_line_cents - (settings.reserve_floor_cents or 0)
    flows = await list_flows(conn, bank, now, today)
    ends = et_instant(today + _ONE_DAY, 0)
    best = max((hour.balance for hour in rules.forecast(0, flows, now, ends)), default=0)
    limit = settings.wires_day_limit_cents
    left = None if limit is None else limit - await count_sent(conn, today)
    return Funds(available, max(best, 0), left)


async def _hold(bank: Bank, waiting: list[DuePayment], now: datetime) -> None:
    """Say to customers that their wires wait, once each, and look again later."""
    new = [each for each in waiting if not each.is_waiting]
    commands = [
        HoldWire(
            caller="liquidity",
            key=each.message_id,
            customers=(each.customer_id,),
            references=(each.wire_id,),
            wire_id=each.wire_id,
        )
        for each in new
    ]
    for answer in await bank.engine.submit_all(commands):
        if isinstance(answer, BillfoldError):
            raise answer
    if new:
        log.warning("wires_wait_for_funds", wires=len(new), cents=sum(each.cents for each in new))
    again = cut_offs.send_time(now + _TRIED_AGAIN_AFTER, bank.calendars, bank.terms.wire_hours, international=False)
    first = waiting[0]
    await scheduler.schedule(bank.pool, [ScheduledJob(WIRE_SEND, first.message_id, first.customer_id, at=again)])
