"""`billfold ach`: ACH entries, and the operator's actions on them under the network's rules."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row, console, submit_as_operator, table
from billfold.dual_control.cli import propose_as_operator
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import Direction
from billfold.payments.ach import commands
from billfold.payments.ach.store import get_entry, list_entries
from billfold.payments.return_codes import RETURN_REASONS
from billfold.platform.dates import format_eastern
from billfold.platform.money import format_usd

group = CommandGroup(
    "ach", "List ACH entries, show one, cancel, reverse, retry or return it.", example="list --status APPROVED"
)

_COLUMNS = ("Entry", "Way", "Direction", "Status", "Amount>", "Customer", "Trace", "Window")
_ANY_CASE = typer.Option(case_sensitive=False)
AchId = Annotated[UUID, typer.Argument(help="The entry's id.")]


def _return_code(text: str) -> str:
    if text.upper() not in RETURN_REASONS:
        raise typer.BadParameter(f"is one of {', '.join(sorted(RETURN_REASONS))}")
    return text.upper()


@group.table("list --status APPROVED", "list --way RECEIVING", columns=_COLUMNS, empty="There are no such entries.")
async def list_all(
    bank: Bank,
    status: Annotated[commands.AchStatus | None, _ANY_CASE] = None,
    way: Annotated[commands.AchWay | None, _ANY_CASE] = None,
    direction: Annotated[Direction | None, _ANY_CASE] = None,
    customer: Annotated[UUID | None, typer.Option(help="Only this customer's.")] = None,
    trace: Annotated[str | None, typer.Option(help="Only those of this trace number.")] = None,
) -> Iterable[Row]:
    """List the last hundred entries, newest first.

    ORIGINATION entries were sent, RECEIVING entries arrived. A CREDIT pays its receiver, a DEBIT charges
    it. The window is the deadline of the file for an originated entry.
    """
    entries = await list_entries(
        bank.pool, customer_id=customer, trace=trace, way=way, direction=direction, status=status
    )
    return [
        (e.ach_id, e.way, e.direction, _status_text(e), format_usd(e.amount), e.customer_id, e.trace_number, e.due_at)
        for e in entries
    ]


@group.view(f"show {EXAMPLE_ID}")
async def show(bank: Bank, ach_id: AchId) -> None:
    """Show one entry: its customer, its status and its trace number."""
    entry = await get_entry(bank.pool, ach_id)
    rows = [
        ("way", f"{entry.way} {entry.direction}"),
        ("status", _status_text(entry, entry.reason)),
        ("amount", format_usd(entry.amount)),
        ("class, purpose", f"{entry.sec_code} {entry.description}"),
        ("other side", f"{entry.party_name} at {entry.routing_number}"),
        ("customer", str(entry.customer_id)),
        ("Pocket", str(entry.pocket_id or "the bank's own")),
        ("trace number", entry.trace_number or "not sent yet"),
        ("settles", format_eastern(entry.settles_at) if entry.settles_at else "-"),
    ]
    console.print(table("", ("field", "value"), rows))


def _status_text(entry: commands.AchEntry, reason: str | None = None) -> str:
    return " ".join(filter(None, (entry.status, reason, entry.return_code)))


@group.command(f"cancel {EXAMPLE_ID}")
async def cancel(bank: Bank, ach_id: AchId) -> str:
    """Cancel an entry that waits for review."""
    await _submit(bank, commands.ReviewAch, ach_id, decision="CANCELLED")
    return "The entry is cancelled."


@group.command(f"reverse {EXAMPLE_ID}")
async def reverse(bank: Bank, ach_id: AchId) -> str:
    """Propose to reverse an entry that was sent in error, within five banking days."""
    entry = await get_entry(bank.pool, ach_id)
    return await propose_as_operator(
        bank,
        commands.ReverseAch,
        entry.customer_id,
        about=ach_id,
        words=f"Reverse the {entry.direction.lower()} of {format_usd(entry.amount)}, ACH entry {ach_id}",
        why="Sent in error",
        ach_id=ach_id,
        references=(ach_id,),
    )


@group.command(f"retry {EXAMPLE_ID}")
async def retry(bank: Bank, ach_id: AchId) -> str:
    """Resend a debit that was returned for insufficient funds (R01, R09)."""
    await _submit(bank, commands.ReinitiateAch, ach_id)
    return "The entry goes with the next window."


@group.command(f"return {EXAMPLE_ID} --code R10")
async def return_entry(
    bank: Bank,
    ach_id: AchId,
    code: Annotated[str, typer.Option(help="A return code, such as R10 (not authorized).", parser=_return_code)],
) -> str:
    """Propose to return a received entry at its receiver's request, while the return window is open."""
    entry = await get_entry(bank.pool, ach_id)
    what = f"{entry.direction.lower()} of {format_usd(entry.amount)} from {entry.party_name}"
    return await propose_as_operator(
        bank,
        commands.ReturnAchEntry,
        entry.customer_id,
        about=ach_id,
        words=f"Return the {what}, ACH entry {ach_id}",
        why=f"{code}: {RETURN_REASONS[code]}",
        ach_id=ach_id,
        code=code,
        references=(ach_id,),
    )


async def _submit(bank: Bank, command: Callable[..., Command], ach_id: UUID, **fields: Any) -> None:
    customer_id = (await get_entry(bank.pool, ach_id)).customer_id
    await submit_as_operator(bank, command, customer_id, ach_id=ach_id, references=(ach_id,), **fields)
