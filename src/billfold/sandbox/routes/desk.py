"""The view of a sandbox's operators: the trading desk, settlement, reconciliation and the wires that wait.

The console has it with names and pages; this is for programs, and for the scenarios that end by saying it.
"""

from datetime import date, timedelta
from typing import Final, Literal
from uuid import UUID

import msgspec

from billfold.http.operations import TOKEN, get
from billfold.ledger.bank import Bank
from billfold.payments.liquidity.overview import read_overview as read_liquidity
from billfold.platform.dates import et_date, iso_z
from billfold.reconciliation.store import BREAKS, list_days
from billfold.reconciliation.types import BreakStatus, Cause, Source
from billfold.trading import store
from billfold.trading.fix.store import list_sessions
from billfold.trading.overview import read_overview
from billfold.trading.settlement.decisions import read_settlement
from billfold.trading.settlement.types import InstructionStatus
from billfold.trading.types import ExecutionKind, OrderStatus, Side

_SHOWN: Final = 50
_DAYS: Final = timedelta(days=7)


class DeskOrder(msgspec.Struct, rename={"order_id": "id"}):
    """An order to a dealer, or to people if it has none. Units are bills of $100."""

    order_id: UUID
    dealer: str | None
    side: Side
    cusip: str
    units: int
    filled_units: int
    status: OrderStatus
    status_reason: str | None
    settles_on: date


class DeskExecution(msgspec.Struct, rename={"execution_id": "id"}):
    """A booked execution; `flags` are its warnings. One that was corrected or busted is replaced."""

    execution_id: UUID
    order_id: UUID
    dealer: str
    reference: str
    kind: ExecutionKind
    side: Side
    units: int
    flags: str | None
    is_replaced: bool = False


class DeskInstruction(msgspec.Struct, rename={"instruction_id": "id"}):
    """An instruction to the custodian to receive units, below zero to deliver them."""

    instruction_id: UUID
    counterparty: str
    cusip: str
    units: int
    settled_units: int
    settles_on: date
    status: InstructionStatus
    status_reason: str | None


class DeskBreak(msgspec.Struct, rename={"break_id": "id"}):
    """An open break: the two sides in cents, or in units at the custodian."""

    break_id: UUID
    source: Source
    cause: Cause
    day: date
    stated: int | None
    booked: int | None


class DeskDay(msgspec.Struct, rename={"day_id": "id"}):
    """A reconciled day of an account."""

    day_id: UUID
    source: Source
    day: date


class DeskWire(msgspec.Struct, rename={"wire_id": "id"}):
    """A wire that waits for funds of the bank."""

    wire_id: UUID
    cents: int


class DeskSession(msgspec.Struct):
    """The session with a dealer."""

    dealer: str
    is_on: bool


class SandboxDesk(msgspec.Struct, kw_only=True):
    """The state of one moment, newest first.

    `uncovered_units` are those that customers hold and neither dealers nor orders cover; `available_cents` is what
    wires may use above the floor of the reserve.
    """

    cover_by: str
    uncovered_units: int
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


@get("/api/v1/sandbox/desk/", TOKEN, name="sandbox_desk", tag="sandbox")
async def show_desk(bank: Bank) -> SandboxDesk:
    """Show what operators of the bank see: orders, executions, sessions, settlement, breaks and waiting wires."""
    bank_id = bank.own_id
    desk, liquidity, settlement = await read_overview(bank), await read_liquidity(bank), await read_settlement(bank)
    executions = await store.list_executions(bank.pool, bank_id, _SHOWN)
    replaced = {each.row.execution_id for each in executions if each.is_replaced}
    shown = {
        "cover_by": iso_z(desk.cover_by),
        "uncovered_units": sum(max(line.position.need, 0) for line in desk.lines if line.position),
        "available_cents": liquidity.available,
        "are_prices_current": bank.market.is_current(desk.now),
        "sessions": [DeskSession(each.dealer, each.is_on) for each in await list_sessions(bank.pool)],
        "orders": [*desk.orders, *await store.list_ended_orders(bank.pool, bank_id, _SHOWN)],
        "executions": [each.row for each in executions],
        "instructions": [*(due.row for due in settlement.open), *settlement.closed],
        "breaks": await BREAKS.rows(
            bank.pool, bank_id, BreakStatus.OPEN, None, None, None, descending=True, limit=_SHOWN
        ),
        "days": await list_days(bank.pool, bank_id, et_date(desk.now) - _DAYS),
        "waiting_wires": [DeskWire(each.wire_id, each.cents) for each in liquidity.waiting],
    }
    found = msgspec.convert(shown, SandboxDesk, from_attributes=True)
    for each in found.executions:
        each.is_replaced = each.execution_id in replaced
    return found
