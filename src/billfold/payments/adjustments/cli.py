"""`billfold credit`: what the operator gives, takes and takes back by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from billfold.accounts.transactions.store import get_transaction_row
from billfold.audit.types import Origin
from billfold.cli.context import CliError, cli_context
from billfold.cli.output import example, print_success
from billfold.cli.resources import run_with_bank
from billfold.ledger.types import Direction
from billfold.payments.adjustments.commands import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.platform import ids
from billfold.platform.ids import command_id
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command

app = typer.Typer(
    no_args_is_help=True,
    help="Give a Pocket a credit, set it right, or take either back.",
    epilog=example("billfold credit give 5d0c...e1 2500 --description 'Welcome'"),
)
MAX_CENTS = 999_999_999_999
_POCKET = "5d0c2a4e-8f00-8000-8000-0000000000e1"
_CALLER = "operator"


def _cents(text: str) -> int:
    """Read cents; 25.00 would be taken for 25 of them."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MAX_CENTS):
        raise typer.BadParameter("is a whole number of cents: $25.00 are 2500")
    return int(text)


PocketId = Annotated[UUID, typer.Argument(help="The Pocket's id.")]
Cents = Annotated[int, typer.Argument(help="In cents: $25.00 are 2500.", parser=_cents)]
Description = Annotated[str, typer.Option(help="What the customer reads.")]
Key = Annotated[UUID | None, typer.Option(help="Asked again under the same key, nothing is booked a second time.")]
CreditType = Literal["PROMOTION", "ADJUSTMENT", "CASH_BACK"]


@app.command(epilog=example(f"billfold credit give {_POCKET} 2500 --description Welcome"))
def create(
    ctx: typer.Context,
    pocket_id: PocketId,
    cents: Cents,
    description: Description,
    *,
    credit_type: Annotated[CreditType, typer.Option("--type")] = "PROMOTION",
    key: Key = None,
) -> None:
    """Give a Pocket a credit out of the bank's own money."""
    transaction = _book(
        ctx,
        "pocket",
        pocket_id,
        lambda customer_id: PostGoodwillCredit(
            caller=_CALLER,
            key=key or ids.new(),
            customers=(customer_id,),
            origin=Origin.operator(),
            pocket_id=pocket_id,
            amount=cents,
            credit_type=credit_type,
            description=description,
        ),
    )
    print_success(f"{format_usd(cents)} are in the Pocket: transaction {transaction}.")


@app.command(epilog=example(f"billfold credit adjust {_POCKET} 2500 --debit --description Error"))
def post(
    ctx: typer.Context,
    pocket_id: PocketId,
    cents: Cents,
    description: Description,
    *,
    debit: Annotated[bool, typer.Option("--debit/--credit", help="Take it, or give it.")],
    key: Key = None,
) -> None:
    """Set a Pocket right, either way. What is taken must be covered."""
    transaction = _book(
        ctx,
        "pocket",
        pocket_id,
        lambda customer_id: AdjustPocket(
            caller=_CALLER,
            key=key or ids.new(),
            customers=(customer_id,),
            origin=Origin.operator(),
            pocket_id=pocket_id,
            amount=cents,
            direction=Direction.DEBIT if debit else Direction.CREDIT,
            description=description,
        ),
    )
    print_success(f"{format_usd(cents)} were {'taken' if debit else 'given'}: transaction {transaction}.")


@app.command(epilog=example(f"billfold credit correct {_POCKET} 91b2...01 --description 'Booked twice'"))
def reverse(
    ctx: typer.Context,
    pocket_id: PocketId,
    transaction_id: Annotated[UUID, typer.Argument(help="The credit, adjustment or fee.")],
    description: Description,
) -> None:
    """Take back a credit, an adjustment or a fee, whole and once, spent or not."""

    async def work(bank: Bank) -> UUID:
        customer_id = await _customer_of(bank, "pocket", pocket_id)
        transaction_row = await get_transaction_row(bank.pool, customer_id, pocket_id, transaction_id)
        return await _submit(
            bank,
            ReverseTransaction(
                caller=_CALLER,
                key=command_id("credit.correct", transaction_row.activity_id),
                customers=(customer_id,),
                origin=Origin.operator(),
                activity_id=transaction_row.activity_id,
                description=description,
                references=(transaction_row.activity_id,),
            ),
        )

    print_success(f"It was taken back: transaction {run_with_bank(cli_context(ctx), work)}.")


def _book(ctx: typer.Context, kind: str, object_id: UUID, command: Callable[[UUID], Command]) -> UUID:
    async def work(bank: Bank) -> UUID:
        return await _submit(bank, command(await _customer_of(bank, kind, object_id)))

    return run_with_bank(cli_context(ctx), work)


async def _customer_of(bank: Bank, kind: str, object_id: UUID) -> UUID:
    entry = await bank.directory.find(kind, object_id)
    if entry is None:
        raise CliError(f"There is no Pocket {object_id}.", "Look up its id in the API.")
    return entry.customer_id


async def _submit(bank: Bank, command: Command) -> UUID:
    return UUID((await bank.engine.submit(command)).outcome["transaction_id"])
