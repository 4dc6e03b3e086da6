"""`billfold ach`: ACH entries, and what the operator may do with them by the network's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from billfold.audit.types import Origin
from billfold.cli.context import cli_context
from billfold.cli.output import console, example, format_eastern, print_success, table
from billfold.cli.resources import run_with_bank
from billfold.ledger.types import Direction
from billfold.payments.ach.commands import ReinitiateAch, ReturnAchEntry, ReverseAch, ReviewAch
from billfold.payments.ach.rules.return_codes import RETURN_REASONS
from billfold.payments.ach.store.entries import get_entry, list_entries
from billfold.payments.ach.types import AchWay
from billfold.platform import ids
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command
    from billfold.payments.ach.types import AchEntry

app = typer.Typer(
    no_args_is_help=True,
    help="List ACH entries, show one, cancel, reverse, repeat or return it.",
    epilog=example("billfold ach list --status APPROVED"),
)
_ID = "5d0c2a4e-8f00-8000-8000-0000000000e1"
_CALLER = "operator"

AchId = Annotated[UUID, typer.Argument(help="The entry's id.")]
_STATUSES = ("PENDING", "APPROVED", "IN_TRANSIT", "PROCESSED", "REJECTED", "FAILED", "CANCELLED")


def _choice(*choices: str) -> dict[str, Any]:
    """An option that is one of these words, in letters of either size."""

    def parse(text: str) -> str:
        if text.upper() not in choices:
            raise typer.BadParameter(f"is one of {', '.join(choices)}")
        return text.upper()

    return {"parser": parse, "metavar": "WORD", "help": f"{', '.join(choices)}."}


@app.command("list", epilog=example("billfold ach list --status APPROVED", "billfold ach list --way RECEIVING"))
def list_(
    ctx: typer.Context,
    status: Annotated[str | None, typer.Option(**_choice(*_STATUSES))] = None,
    way: Annotated[str | None, typer.Option(**_choice(*AchWay))] = None,
    direction: Annotated[str | None, typer.Option(**_choice(*Direction))] = None,
    customer: Annotated[UUID | None, typer.Option(help="Only this customer's.")] = None,
    trace: Annotated[str | None, typer.Option(help="Those of this trace number.")] = None,
) -> None:
    """List the last hundred entries, newest first.

    ORIGINATION we sent, RECEIVING reached us. A CREDIT gives money to its receiver, a DEBIT takes
    it. The window is the deadline at which the file of an entry of ours goes.
    """

    async def work(bank: Bank) -> list[AchEntry]:
        return await list_entries(
            bank.pool, customer_id=customer, trace=trace, way=way, direction=direction, status=status
        )

    entries = run_with_bank(cli_context(ctx), work)
    if not entries:
        print_success("There are no such entries.")
        return
    columns = ("Entry", "Way", "Direction", "Status", "Amount>", "Customer", "Trace", "Window")
    rows = [
        (
            e.ach_id,
            e.way,
            e.direction,
            _status_text(e),
            format_usd(e.amount),
            e.customer_id,
            e.trace_number or "-",
            format_eastern(e.due_at) if e.due_at else "-",
        )
        for e in entries
    ]
    console.print(table("", columns, rows))


@app.command(epilog=example(f"billfold ach show {_ID}"))
def show(ctx: typer.Context, ach_id: AchId) -> None:
    """Show one entry: whose it is, how far it has come, and its trace number."""

    async def work(bank: Bank) -> AchEntry:
        return await get_entry(bank.pool, ach_id)

    entry = run_with_bank(cli_context(ctx), work)
    rows = [
        ("way", f"{entry.way} {entry.direction}"),
        ("status", _status_text(entry, entry.reason)),
        ("amount", format_usd(entry.amount)),
        ("class, purpose", f"{entry.sec_code} {entry.description}"),
        ("other side", f"{entry.party_name} at {entry.routing_number}"),
        ("customer", str(entry.customer_id)),
        ("Pocket", str(entry.pocket_id or "the house's own")),
        ("trace number", entry.trace_number or "not sent yet"),
        ("settles", format_eastern(entry.settles_at) if entry.settles_at else "-"),
    ]
    console.print(table("", ("of the entry", "is"), rows))


def _status_text(entry: AchEntry, reason: str | None = None) -> str:
    return " ".join(filter(None, (entry.status, reason, entry.return_code)))


@app.command(epilog=example(f"billfold ach cancel {_ID}"))
def cancel(ctx: typer.Context, ach_id: AchId) -> None:
    """Cancel an entry that waits for its review."""
    _submit(ctx, ach_id, ReviewAch, decision="CANCELLED")
    print_success("The entry is cancelled.")


@app.command(epilog=example(f"billfold ach reverse {_ID}"))
def reverse(ctx: typer.Context, ach_id: AchId) -> None:
    """Undo an entry that was sent in error, by its opposite, within five banking days."""
    _submit(ctx, ach_id, ReverseAch)
    print_success("The reversal goes with the next window.")


@app.command(epilog=example(f"billfold ach retry {_ID}"))
def retry(ctx: typer.Context, ach_id: AchId) -> None:
    """Send a debit once more that came back for want of funds (R01, R09)."""
    _submit(ctx, ach_id, ReinitiateAch)
    print_success("The entry goes with the next window.")


@app.command("return", epilog=example(f"billfold ach return {_ID} --code R10"))
def return_entry(
    ctx: typer.Context,
    ach_id: AchId,
    code: Annotated[str, typer.Option(help="Why: a return code, like R10 for not authorised.")],
) -> None:
    """Return an entry that was taken, as its receiver asks, while its time lasts."""
    if code.upper() not in RETURN_REASONS:
        choices = ", ".join(sorted(RETURN_REASONS))
        raise typer.BadParameter(f"is one of {choices}", param_hint="--code")
    _submit(ctx, ach_id, ReturnAchEntry, code=code.upper())
    print_success("The return goes with the next window.")


def _submit(ctx: typer.Context, ach_id: UUID, command: Callable[..., Command], **fields: Any) -> None:
    async def work(bank: Bank) -> None:
        entry = await get_entry(bank.pool, ach_id)
        await bank.engine.submit(
            command(
                caller=_CALLER,
                key=ids.new(),
                customers=(entry.customer_id,),
                origin=Origin.operator(),
                ach_id=ach_id,
                references=(ach_id,),
                **fields,
            )
        )

    run_with_bank(cli_context(ctx), work)
