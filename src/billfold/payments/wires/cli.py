"""`billfold wires`: recalls of wires, and their returns, which one operator proposes and another confirms."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row
from billfold.dual_control.cli import propose_as_operator
from billfold.ledger.bank import Bank
from billfold.payments.wires import cases, store
from billfold.payments.wires.commands import ReturnWire
from billfold.platform.money import format_usd

group = CommandGroup("wires", "Recall a wire, return one, or refuse a recall.", example="cases")

_CODE = re.compile("[A-Z0-9]{4}")


def _code(text: str) -> str:
    code = text.upper()
    if _CODE.fullmatch(code) is None:
        raise typer.BadParameter("must be an ISO 20022 code: four letters or digits, such as DUPL")
    return code


WireId = Annotated[UUID, typer.Argument(help="The wire's id.")]
Reason = Annotated[str, typer.Option(help="An ISO 20022 code, such as DUPL.", parser=_code, metavar="CODE")]
Status = Annotated[Literal["OPEN", "ACCEPTED", "REFUSED"] | None, typer.Option(case_sensitive=False)]


@group.table(
    "cases --status OPEN", columns=("wire", "direction", "case", "status", "reason", "since"), empty="No recall found."
)
async def list_cases(bank: Bank, status: Status = None) -> Iterable[Row]:
    """List recalls: OUTGOING ones are ours, INCOMING ones are the senders'."""
    found = await store.list_cases(bank.pool, status=status)
    return [(each.wire_id, each.direction, each.case_id, each.status, each.reason, each.opened_at) for each in found]


@group.command(f"recall {EXAMPLE_ID} --reason DUPL")
async def recall(bank: Bank, wire_id: WireId, reason: Reason = "CUST") -> str:
    """Request the return of one of our wires from the beneficiary's bank, again after a refusal."""
    case_id = await cases.recall(bank, wire_id, reason)
    return f"Recall requested as case {case_id}. The answer arrives in a file."


@group.command(f"return {EXAMPLE_ID} --reason FOCR")
async def return_wire(bank: Bank, wire_id: WireId, reason: Reason = "FOCR") -> str:
    """Propose to return an incoming wire in full; any amount that the Pocket cannot cover becomes its overdraft."""
    wire = await cases.get_wire(bank, wire_id)
    return await propose_as_operator(
        bank,
        ReturnWire,
        wire.customer_id,
        about=wire_id,
        words=f"Return the wire of {format_usd(wire.amount)} from {wire.counterparty_name}, wire {wire_id}",
        why=reason,
        references=(wire_id,),
        original_id=wire_id,
        code=reason,
    )


@group.command(f"refuse {EXAMPLE_ID} --reason LEGL")
async def refuse(bank: Bank, wire_id: WireId, reason: Reason = "CUST") -> str:
    """Refuse a sender's recall of a wire; the sender's bank is notified."""
    await cases.refuse(bank, wire_id, reason)
    return "The recall is refused. The answer goes with the next wires."
