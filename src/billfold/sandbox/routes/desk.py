"""What operators of a sandbox's bank see: the trading desk, settlement, reconciliation and the wires that wait.

The console has it with names and pages; this is for programs, and for the scenarios that end by saying it.
"""

from datetime import date, timedelta
from typing import Literal
from uuid import UUID

import msgspec

from billfold.http.operations import TOKEN, get
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.liquidity.overview import read_overview as read_liquidity
from billfold.platform.dates import et_date, iso_z
from billfold.reconciliation.store import BREAKS, list_days
from billfold.reconciliation.types import Break, BreakStatus
from billfold.sandbox.routes.operations import require_first_partner
from billfold.trading import store
from billfold.trading.fix.store import list_sessions
from billfold.trading.overview import read_overview
from billfold.trading.settlement.decisions import read_settlement
from billfold.trading.settlement.types import SettlementInstruction
from billfold.trading.types import DealerOrder, ReferencedExecution

_SHOWN = 50
_FACE = 100
_DAYS = timedelta(days=7)


class DeskOrder(msgspec.Struct, kw_only=True):
    """An order to a dealer, or to people if it has none. Face in dollars."""

    id: UUID
    dealer: str | None
    side: str
    cusip: str
    face: int
    filled_face: int
    status: str
    reason: str | None
    settles_on: date


class DeskExecution(msgspec.Struct, kw_only=True):
    """A booked execution; `flags` are its warnings. One that was corrected or busted is replaced."""

    id: UUID
    order_id: UUID
    dealer: str
    reference: str
    kind: str
    side: str
    face: int
    flags: str | None
    is_replaced: bool


class DeskInstruction(msgspec.Struct, kw_only=True):
    """An instruction to the custodian. Face to receive in dollars, below zero to deliver."""

    id: UUID
    counterparty: str
    cusip: str
    face: int
    settled_face: int
    settles_on: date
    status: str
    reason: str | None


class DeskBreak(msgspec.Struct, kw_only=True):
    """An open break: the two sides in cents, or in bills at the custodian."""

    id: UUID
    source: str
    cause: str
    day: date
    stated: int | None
    booked: int | None


class DeskDay(msgspec.Struct, kw_only=True):
    """A reconciled day of an account."""

    id: UUID
    source: str
    day: date


class DeskWire(msgspec.Struct, kw_only=True):
    """A wire that waits for funds of the bank, in cents."""

    id: UUID
    amount: int


class DeskSession(msgspec.Struct, kw_only=True):
    """The session with a dealer."""

    dealer: str
    is_on: bool


class SandboxDesk(msgspec.Struct, kw_only=True):
    """The state of one moment, newest first.

    `uncovered_face` is what customers hold and neither dealers nor live orders cover, in dollars; `available_cents` is
    what wires may use above the floor of the reserve.
    """

    cover_by: str
    uncovered_face: int
    available_cents: int
    are_prices_current: bool
    sessions: list[DeskSession]
    orders: list[DeskOrder]
    executions: list[DeskExecution]
    instructions: list[DeskInstruction]
    breaks: list[DeskBreak]
    days: list[DeskDay]
    waiting_wires: list[DeskWire]
    object_type: Literal["SandboxDesk"] = "SandboxDesk"


@get("/api/v1/sandbox/desk/", TOKEN, name="sandbox_desk", tag="sandbox", refuses=("sandbox-of-another-partner",))
async def show_desk(caller: Caller, bank: Bank) -> SandboxDesk:
    """Show what operators of the bank see: orders, executions, sessions, settlement, breaks and waiting wires."""
    await require_first_partner(bank, caller)
    bank_id = bank_customer_id(bank.seed)
    desk, liquidity, settlement = await read_overview(bank), await read_liquidity(bank), await read_settlement(bank)
    ended = await store.list_ended_orders(bank.pool, bank_id, _SHOWN)
    uncovered = sum(max(line.position.uncovered, 0) for line in desk.lines if line.position)
    breaks = await BREAKS.rows(bank.pool, bank_id, BreakStatus.OPEN, None, None, None, descending=True, limit=_SHOWN)
    days = await list_days(bank.pool, bank_id, et_date(desk.now) - _DAYS)
    return SandboxDesk(
        cover_by=iso_z(desk.cover_by),
        uncovered_face=uncovered * _FACE,
        available_cents=liquidity.available,
        are_prices_current=bank.market.is_current(desk.now),
        sessions=[DeskSession(dealer=each.dealer, is_on=each.is_on) for each in await list_sessions(bank.pool)],
        orders=[_order(each) for each in [*desk.orders, *ended]],
        executions=[_execution(each) for each in await store.list_executions(bank.pool, bank_id, _SHOWN)],
        instructions=[_instruction(each) for each in [*(due.row for due in settlement.open), *settlement.closed]],
        breaks=[_break(each) for each in breaks],
        days=[DeskDay(id=each.day_id, source=each.source, day=each.day) for each in days],
        waiting_wires=[DeskWire(id=each.wire_id, amount=each.cents) for each in liquidity.waiting],
    )


def _order(row: DealerOrder) -> DeskOrder:
    return DeskOrder(
        id=row.order_id,
        dealer=row.dealer,
        side=row.side,
        cusip=row.cusip,
        face=row.units * _FACE,
        filled_face=row.filled_units * _FACE,
        status=row.status,
        reason=row.status_reason,
        settles_on=row.settles_on,
    )


def _execution(found: ReferencedExecution) -> DeskExecution:
    row = found.row
    return DeskExecution(
        id=row.execution_id,
        order_id=row.order_id,
        dealer=row.dealer,
        reference=row.reference,
        kind=row.kind,
        side=row.side,
        face=row.units * _FACE,
        flags=row.flags,
        is_replaced=found.is_replaced,
    )


def _instruction(row: SettlementInstruction) -> DeskInstruction:
    return DeskInstruction(
        id=row.instruction_id,
        counterparty=row.counterparty,
        cusip=row.cusip,
        face=row.units * _FACE,
        settled_face=row.settled_units * _FACE,
        settles_on=row.settles_on,
        status=row.status,
        reason=row.status_reason,
    )


def _break(row: Break) -> DeskBreak:
    return DeskBreak(
        id=row.break_id, source=row.source, cause=row.cause, day=row.day, stated=row.stated, booked=row.booked
    )
