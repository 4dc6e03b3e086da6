"""Actions of operators on the desk: authority is checked here, for the console and the command line alike.

Executions, corrections and busts change money and positions: one operator proposes them, and another confirms.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.audit.record import audited
from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.store import FreezeProposal
from billfold.identity.operators import Operator, Power
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome
from billfold.ledger.dry_run import dry_run
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.money import format_price, format_usd
from billfold.trading.commands import (
    AmendExecution,
    ChangeOrder,
    NewExecution,
    PauseDesk,
    RecordExecutions,
    RecordQuote,
    execution_id_of,
)
from billfold.trading.fix.store import close_open_message, reset_numbers
from billfold.trading.rules.executions import flags_of
from billfold.trading.store import get_execution, load_orders
from billfold.trading.types import OrderStatus, sign_of
from billfold.trading.worker import command_of, place_round

_REASON_CHARS_MAX = 200
_WORDS_MAX = 3


async def pause(bank: Bank, *, paused: bool, reason: str, by: Operator) -> Outcome:
    """Pause the desk, or resume it. Raises InvalidInput, Refused `desk-paused`."""
    by.require(Power.TRADE)
    _check_reason(reason)
    references = (bank.own_id,)
    return await _submit(bank, PauseDesk, by, references, paused=paused, reason=reason.strip())


async def cover_now(bank: Bank, *, cusip: str | None, by: Operator) -> list[str]:
    """Place a round as at the hour by which everything is covered, of one bill or of all; return the orders' ids.

    Raises Refused `desk-paused`, `order-state` if another round was placed at the same time.
    """
    by.require(Power.TRADE)
    return await place_round(bank, is_due=True, cusip=cusip, origin=by.origin)


async def change_order(bank: Bank, order_id: UUID, status: OrderStatus, *, reason: str, by: Operator) -> Outcome:
    """Cancel an order, or record what its dealer says. Raises InvalidInput, NotFound, Refused `order-state`."""
    by.require(Power.TRADE)
    _check_reason(reason)
    return await _submit(
        bank, ChangeOrder, by, (order_id,), order_id=order_id, status=status, reason=reason.strip() or None
    )


async def record_quote(
    bank: Bank, order_id: UUID, *, dealer: str, price_micros: int, units: int, by: Operator
) -> Outcome:
    """Keep a dealer's price for an order. Raises NotFound, Refused `order-state`, `execution-refused`."""
    by.require(Power.TRADE)
    quoted = {"dealer": dealer, "price_micros": price_micros, "units": units}
    return await _submit(bank, RecordQuote, by, (order_id,), order_id=order_id, **quoted)


async def _submit(
    bank: Bank, kind: type[Command], by: Operator, references: tuple[UUID, ...], **fields: Any
) -> Outcome:
    command = command_of(bank, kind, references, caller="operator", origin=by.origin, **fields)
    return (await bank.engine.submit(command)).outcome


async def close_message(bank: Bank, message_id: UUID, *, reason: str, by: Operator) -> None:
    """Close a held or refused message that a person has seen; nothing is booked. Raises NotFound, InvalidInput."""
    async with _audited(bank, "closed", ("dealer_message", message_id), reason=reason, by=by) as conn:
        await close_open_message(conn, message_id)


async def reset_session(bank: Bank, dealer: str, *, reason: str, by: Operator) -> None:
    """Let the sequence numbers of a session that is off begin at 1 again. Raises NotFound, InvalidInput.

    Messages that are lost by it are not requested; after the logon the dealer is asked about its orders.
    """
    async with _audited(bank, "reset", ("dealer_session", dealer), reason=reason, by=by) as conn:
        await reset_numbers(conn, dealer)


@asynccontextmanager
async def _audited(
    bank: Bank, action: str, resource: tuple[str, UUID | str], *, reason: str, by: Operator
) -> AsyncIterator[Connection]:
    by.require(Power.MOVE_MONEY)
    _check_reason(reason)
    bank_id, name, details = bank.own_id, f"{resource[0]}.{action}", {"reason": reason.strip()}
    async with audited(bank, bank_id, by.origin, name, resource_id=resource[1], details=details) as entry:
        yield entry.conn


class RefusedExecution(NamedTuple):
    """An execution that was not proposed, and the reason."""

    execution: NewExecution
    reason: str


class ProposedExecutions(NamedTuple):
    """The proposal of the executions that fit, if there are any, and the others."""

    proposal: FreezeProposal | None
    refused: list[RefusedExecution]


async def propose_executions(
    bank: Bank, executions: Sequence[NewExecution], *, source: str, by: Operator
) -> ProposedExecutions:
    """Propose to book fills: those that the rules accept in one proposal, each of the others refused by itself.

    `source` says where they come from. Raises Refused `proposal-open` if the same ones are proposed already.
    """
    by.require(Power.MOVE_MONEY)
    async with bank.pool.acquire() as conn:
        reasons = await _problems_of(conn, bank, executions)
        fitting = [each for nth, each in enumerate(executions) if nth not in reasons]
        refused = [RefusedExecution(executions[nth], reason) for nth, reason in sorted(reasons.items())]
        if not fitting:
            return ProposedExecutions(None, refused)
        words = await _words_of(conn, bank, fitting)
    about = fitting[0].execution_id
    made = await propose_movement(bank, _recording(bank, fitting, by), about=about, words=words, reason=source, by=by)
    return ProposedExecutions(made, refused)


# An execution whose proposal is open is proposed once, in whichever proposal it is.
_PROPOSED = """
SELECT movement FROM freeze_proposal
 WHERE status IN ('PROPOSED', 'CONFIRMED') AND movement::json->>'kind' = 'RecordExecutions'
"""


async def _proposed(conn: Connection) -> set[UUID]:
    """Return the executions in open proposals."""
    found: set[UUID] = set()
    for (movement,) in await conn.fetch(_PROPOSED):
        command = msgspec.json.decode(movement)["command"]
        found |= {each.execution_id for each in msgspec.convert(command["executions"], list[NewExecution])}
    return found


async def _problems_of(conn: Connection, bank: Bank, executions: Sequence[NewExecution]) -> dict[int, str]:
    """Return the executions that cannot be booked after those before them, by their place, and the reasons."""
    seen, reasons = await _proposed(conn), dict[int, str]()
    tried: list[int] = []
    for nth, each in enumerate(executions):
        if each.execution_id in seen:
            reasons[nth] = f"{each.dealer} {each.reference} is proposed already."
        else:
            seen.add(each.execution_id)
            tried.append(nth)
    if not tried:
        return reasons
    command = _recording(bank, [executions[nth] for nth in tried], None)
    try:
        refused = (await dry_run(conn, bank, command)).outcome["refused"]
    except Refused as refusal:  # none fits
        refused = refusal.facts["refused"]
    return reasons | {nth: refused[name] for nth in tried if (name := str(executions[nth].execution_id)) in refused}


def _recording(bank: Bank, executions: Sequence[NewExecution], by: Operator | None) -> RecordExecutions:
    orders = dict.fromkeys(each.order_id for each in executions)
    references = (*orders, *(each.execution_id for each in executions))
    origin = None if by is None else by.origin
    return command_of(
        bank, RecordExecutions, references, caller="operator", origin=origin, executions=tuple(executions)
    )


async def _words_of(conn: Connection, bank: Bank, executions: Sequence[NewExecution]) -> str:
    """Describe executions for the second operator: those with warnings first."""
    bank_id, ctx = bank.own_id, bank.engine.context(await bank.now(conn))
    orders = {order_id: order for _, order_id, order in await load_orders(conn, [bank_id], _order_ids(executions))}
    flags = {each.execution_id: flags_of(each, orders[each.order_id], ctx) for each in executions}
    # Those with warnings come first, so that none is left out.
    in_order = sorted(executions, key=lambda each: not flags[each.execution_id])
    shown = [_describe(each, flags[each.execution_id]) for each in in_order[:_WORDS_MAX]]
    more, money = len(executions) - len(shown), sum(sign_of(each.side) * each.money for each in executions)
    warned = sum(bool(each) for each in flags.values())
    rest = [f"{more} more; {format_usd(money)} to pay in all, {warned} with warnings"] if more else []
    return "Book " + "; ".join([*shown, *rest])


def _order_ids(executions: Iterable[NewExecution]) -> list[UUID]:
    return [each.order_id for each in executions]


def _describe(each: NewExecution, flags: Sequence[str]) -> str:
    warning = f" ({', '.join(flags)})" if flags else ""
    traded = f"{each.side} {each.units:,} {each.cusip} at {format_price(each.price_micros)}"
    return f"{traded}, {format_usd(each.money)}, from {each.dealer} {each.reference}{warning}"


class Amendment(NamedTuple):
    """The values of a correction: units, price and money, and the settlement date."""

    units: int
    price_micros: int
    money: int
    settles_on: date


async def propose_amendment(
    bank: Bank, execution_id: UUID, *, reference: str, values: Amendment | None, reason: str, by: Operator
) -> FreezeProposal:
    """Propose a dealer's correction of an execution, or without `values` its bust. `reference` is that of the new row.

    Raises NotFound, Refused `execution-refused`, `proposal-open`.
    """
    by.require(Power.MOVE_MONEY)
    bank_id = bank.own_id
    old = await get_execution(bank.pool, bank_id, execution_id)
    if not reference.strip():
        raise InvalidInput.at("reference", msg="must be the dealer's reference of the correction or bust")
    new = values or Amendment(old.units, old.price_micros, old.money, old.settles_on)
    command = command_of(
        bank,
        AmendExecution,
        (old.order_id, execution_id, execution_id_of(old.dealer, reference.strip())),
        caller="operator",
        origin=by.origin,
        execution_id=execution_id,
        order_id=old.order_id,
        is_bust=values is None,
        reference=reference.strip(),
        **new._asdict(),
    )
    changed = "Bust" if values is None else f"Correct to {new.units:,} units for {format_usd(new.money)}"
    words = f"{changed}: {old.side} {old.units:,} {old.cusip}, {format_usd(old.money)}, {old.dealer} {old.reference}"
    return await propose_movement(bank, command, about=execution_id, words=words, reason=reason, by=by)


def _check_reason(reason: str) -> None:
    if not (1 <= len(reason.strip()) <= _REASON_CHARS_MAX and reason.isprintable()):
        raise InvalidInput.at("reason", msg=f"must be 1 to {_REASON_CHARS_MAX} printable characters")
