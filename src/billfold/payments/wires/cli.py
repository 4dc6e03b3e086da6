"""`billfold wires`: wires that are asked for, recalled and returned."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.cli.context import cli_context
from billfold.cli.output import console, example, format_eastern, print_success, table
from billfold.cli.resources import run_with_bank
from billfold.payments.wires import cases as wire_cases
from billfold.payments.wires.store import cases

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.wires.store.cases import CaseRow

app = typer.Typer(
    no_args_is_help=True, help="Ask for a wire back, return one, or refuse to.", epilog=example("billfold wires cases")
)

WireId = Annotated[UUID, typer.Argument(help="The wire's id.")]


def _code(text: str) -> str:
    code = text.upper()
    if _CODE.fullmatch(code) is None:
        raise typer.BadParameter("is a code of ISO 20022: four letters or digits, such as DUPL")
    return code


_CODE = re.compile("[A-Z0-9]{4}")
_STATUSES = ("OPEN", "ACCEPTED", "REFUSED")
Reason = Annotated[str, typer.Option(help="A code of ISO 20022, such as DUPL.", parser=_code, metavar="CODE")]
_ID = "5d0c2a4e-8f00-8000-8000-0000000000e1"


@app.command("cases", epilog=example("billfold wires cases --status OPEN"))
def list_cases(
    ctx: typer.Context, status: Annotated[str | None, typer.Option(help="OPEN, ACCEPTED or REFUSED.")] = None
) -> None:
    """List wires that somebody asks for: OUTGOING by us, INCOMING by their senders."""

    async def work(bank: Bank) -> list[CaseRow]:
        return await cases.list_cases(bank.pool, status=status.upper() if status else None)

    if status is not None and status.upper() not in _STATUSES:
        raise typer.BadParameter(f"is one of {', '.join(_STATUSES)}", param_hint="--status")
    rows_found = run_with_bank(cli_context(ctx), work)
    if not rows_found:
        print_success("Nobody asks for a wire.")
        return
    columns = ("wire", "direction", "case", "status", "reason", "since")
    rows = [
        (each.wire_id, each.direction, each.case_id, each.status, each.reason, format_eastern(each.opened_at))
        for each in rows_found
    ]
    console.print(table("", columns, rows))


@app.command(epilog=example(f"billfold wires recall {_ID} --reason DUPL"))
def recall(ctx: typer.Context, wire_id: WireId, reason: Reason = "CUST") -> None:
    """Ask the bank of whoever was paid for a wire of ours; once more when it has refused."""

    async def work(bank: Bank) -> str:
        return await wire_cases.recall(bank, wire_id, reason)

    case_id = run_with_bank(cli_context(ctx), work)
    print_success(f"The wire is asked for under case {case_id}. The answer comes by a file.")


@app.command("return", epilog=example(f"billfold wires return {_ID} --reason FOCR"))
def return_wire(ctx: typer.Context, wire_id: WireId, reason: Reason = "FOCR") -> None:
    """Pay a wire back that arrived, whole; what the Pocket cannot raise it owes."""

    async def work(bank: Bank) -> UUID:
        return await wire_cases.pay_back(bank, wire_id, reason)

    print_success(f"The return is the wire {run_with_bank(cli_context(ctx), work)}.")


@app.command(epilog=example(f"billfold wires refuse {_ID} --reason LEGL"))
def refuse(ctx: typer.Context, wire_id: WireId, reason: Reason = "CUST") -> None:
    """Keep a wire that its sender asks for, and tell him so."""

    async def work(bank: Bank) -> None:
        await wire_cases.refuse(bank, wire_id, reason)

    run_with_bank(cli_context(ctx), work)
    print_success("The request is refused. The answer goes when wires do.")
