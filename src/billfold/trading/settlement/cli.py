"""`billfold settlement`: what is due with the custodian, fails, and confirmations that differ."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row, console, table
from billfold.dual_control.cli import said_of
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.platform.money import format_usd
from billfold.trading.settlement import decisions, store
from billfold.trading.settlement.types import SettlementInstruction

group = CommandGroup("settlement", "Settle dealers' trades and maturities with the custodian.", example="show")

_SHOWN, _FACE = 100, 100
_COLUMNS = ("instruction", "with", "bill", "face>", "money>")
_OPEN = (*_COLUMNS, "due", "open>", "days late>", "cost>", "status")
InstructionId = Annotated[UUID, typer.Argument(help="The instruction's id, from `billfold settlement show`.")]
DifferenceId = Annotated[UUID, typer.Argument(help="The difference's id, from `billfold settlement show`.")]
Reason = Annotated[str, typer.Option(help="Why, for the audit log.")]


@group.view("show")
async def show(bank: Bank) -> str:
    """Show what is not settled, fails with their age and cost first, and what differs from the instructions."""
    found = await decisions.read_settlement(bank)
    if found.open:
        rows = [
            (
                *(*_shown(row), row.settles_on, _face(row.open_units), age or "", format_usd(cost)),
                f"{row.status}: {row.status_reason}" if row.status_reason else row.status,
            )
            for row, age, cost in found.open
        ]
        console.print(table("Face to receive and money to pay, below zero the other way", _OPEN, rows))
    if found.held:
        held = [
            (*_shown(row)[:3], _face(each.units), format_usd(each.money), each.difference_id, each.reason)
            for each, row in found.held
        ]
        console.print(table("Confirmations that are not booked", (*_COLUMNS, "difference", "reason"), held))
    cost = sum(each.cost for each in found.fails)
    return f"{len(found.fails)} fails, which cost {format_usd(cost)}; {len(found.due)} are due today."


@group.table("closed", columns=(*_COLUMNS, "due", "status"), empty="Nothing is settled.")
async def closed(bank: Bank) -> Iterable[Row]:
    """List the last hundred instructions that were settled or cancelled, newest first."""
    rows = await store.list_closed(bank.pool, bank.own_id, _SHOWN)
    return [(*_shown(row), row.settles_on, row.status) for row in rows]


def _shown(row: SettlementInstruction) -> tuple[object, ...]:
    return row.instruction_id, row.dealer, row.cusip, _face(row.units), format_usd(row.money)


def _face(units: int) -> str:
    return f"{units * _FACE:,}"


@group.command(f"send {EXAMPLE_ID} --reason 'The account is agreed'")
async def send(bank: Bank, instruction_id: InstructionId, *, reason: Reason) -> str:
    """Send an instruction again that the custodian has rejected."""
    await decisions.send_again(bank, instruction_id, reason=reason, by=_operator(bank))
    return "The instruction is sent again."


@group.command(f"accept {EXAMPLE_ID} --reason 'The dealer agreed to a cent'")
async def accept(bank: Bank, difference_id: DifferenceId, *, reason: Reason) -> str:
    """Propose to book a confirmation as it came. What was paid beyond the instruction is a loss of the bank."""
    by = _operator(bank)
    return said_of(await decisions.propose_difference(bank, difference_id, accept=True, reason=reason, by=by))


@group.command(f"dismiss {EXAMPLE_ID} --reason 'The custodian takes it back'")
async def dismiss(bank: Bank, difference_id: DifferenceId, *, reason: Reason) -> str:
    """Propose to dismiss a confirmation: nothing is booked, and the instruction stays open."""
    by = _operator(bank)
    return said_of(await decisions.propose_difference(bank, difference_id, accept=False, reason=reason, by=by))


def _operator(bank: Bank) -> Operator:
    return Operator.of_command_line(bank.settings.operator)
