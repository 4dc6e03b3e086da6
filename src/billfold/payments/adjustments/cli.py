"""`billfold adjustment`: credits, adjustments and reversals that one operator proposes and another confirms."""

from typing import Annotated, Any, Literal
from uuid import UUID

import typer

from billfold.accounts.transactions.store import get_transaction_row
from billfold.cli.command import EXAMPLE_ID, CommandGroup, customer_of_pocket
from billfold.dual_control.cli import propose_as_operator
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction
from billfold.payments.adjustments.rules import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.platform.money import format_usd

MAX_CENTS = 999_999_999_999
group = CommandGroup(
    "adjustment",
    "Propose to credit a Pocket, to adjust its balance, or to reverse either.",
    example="create 5d0c...e1 2500 --description 'Welcome'",
)


def _cents(text: str) -> int:
    """Parse an amount in cents; 25.00 is an error, because it could be taken for 25 cents."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MAX_CENTS):
        raise typer.BadParameter("must be a whole number of cents: $25.00 is 2500")
    return int(text)


PocketId = Annotated[UUID, typer.Argument(help="The Pocket's id.")]
Cents = Annotated[int, typer.Argument(help="In cents: $25.00 is 2500.", parser=_cents)]
Description = Annotated[str, typer.Option(help="What the customer reads.")]
Key = Annotated[UUID | None, typer.Option(help="Idempotency key: the same key is booked once.")]
CreditType = Literal["PROMOTION", "ADJUSTMENT", "CASH_BACK"]


@group.command(f"create {EXAMPLE_ID} 2500 --description Welcome")
async def create(
    bank: Bank,
    pocket_id: PocketId,
    cents: Cents,
    description: Description,
    *,
    credit_type: Annotated[CreditType, typer.Option("--type")] = "PROMOTION",
    key: Key = None,
) -> str:
    """Propose to credit a Pocket from the bank's own money; another operator confirms it."""
    customer_id = await customer_of_pocket(bank, pocket_id)
    fields: dict[str, Any] = {
        "pocket_id": pocket_id,
        "amount": cents,
        "credit_type": credit_type,
        "description": description,
    }
    words = f"Credit {format_usd(cents)} ({credit_type.lower()}) to Pocket {pocket_id}"
    return await propose_as_operator(
        bank, PostGoodwillCredit, customer_id, words=words, why=description, key=key, **fields
    )


@group.command(f"post {EXAMPLE_ID} 2500 --debit --description Error")
async def post(
    bank: Bank,
    pocket_id: PocketId,
    cents: Cents,
    description: Description,
    *,
    debit: Annotated[bool, typer.Option("--debit/--credit", help="Debit the Pocket, or credit it.")],
    key: Key = None,
) -> str:
    """Propose to adjust a Pocket's balance, either way; another operator confirms it. A debit must be covered."""
    customer_id = await customer_of_pocket(bank, pocket_id)
    direction = Direction.DEBIT if debit else Direction.CREDIT
    fields: dict[str, Any] = {
        "pocket_id": pocket_id,
        "amount": cents,
        "direction": direction,
        "description": description,
    }
    words = f"Adjust Pocket {pocket_id} by a {direction.lower()} of {format_usd(cents)}"
    return await propose_as_operator(bank, AdjustPocket, customer_id, words=words, why=description, key=key, **fields)


@group.command(f"reverse {EXAMPLE_ID} 91b2...01 --description 'Booked twice'")
async def reverse(
    bank: Bank,
    pocket_id: PocketId,
    transaction_id: Annotated[UUID, typer.Argument(help="The credit, adjustment or fee.")],
    description: Description,
) -> str:
    """Propose to reverse a credit, an adjustment or a fee, in full and once, even if it has been spent."""
    customer_id = await customer_of_pocket(bank, pocket_id)
    row = await get_transaction_row(bank.pool, customer_id, pocket_id, requested_id=transaction_id)
    what = f"the {row.direction.lower()} of {format_usd(row.amount)}"
    return await propose_as_operator(
        bank,
        ReverseTransaction,
        customer_id,
        about=row.activity_id,
        words=f"Reverse {what}, transaction {transaction_id} of Pocket {pocket_id}",
        why=description,
        activity_id=row.activity_id,
        description=description,
        references=(row.activity_id,),
    )
