"""`billfold customers`: what only the operator does with a customer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.accounts.commands import SetCustomerState
from billfold.cli.command import EXAMPLE_ID, CommandGroup, submit_as_operator
from billfold.cli.context import CliError
from billfold.ledger.directory.store import find_customer
from billfold.ledger.directory.types import CustomerStatus

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.directory.types import CustomerRow

group = CommandGroup(
    "customers", "Freeze a customer, and unfreeze it.", example="freeze 5d0c...e1 --reason 'Court order 7/25'"
)

CustomerId = Annotated[UUID, typer.Argument(help="The customer's id.")]
Reason = Annotated[str, typer.Option(help="Why, for the audit logs of the bank and the customer.")]


@group.command(f"freeze {EXAMPLE_ID} --reason 'Court order 7/25'")
async def freeze(bank: Bank, customer_id: CustomerId, *, reason: Reason) -> str:
    """Freeze a customer: it reads and receives; nothing goes out, and it starts nothing new."""
    return await _set(bank, customer_id, CustomerStatus.FROZEN, reason=reason)


@group.command(f"unfreeze {EXAMPLE_ID} --reason 'Court order 9/25'")
async def unfreeze(bank: Bank, customer_id: CustomerId, *, reason: Reason) -> str:
    """Unfreeze a customer. A Pocket that is frozen by itself stays so."""
    return await _set(bank, customer_id, CustomerStatus.OPEN, reason=reason)


async def _set(bank: Bank, customer_id: UUID, status: CustomerStatus, *, reason: str) -> str:
    row = await _get(bank, customer_id)
    outcome = await submit_as_operator(
        bank, SetCustomerState, row.customer_id, references=(row.customer_id,), status=status, reason=reason
    )
    already = " already" if outcome["before"] == outcome["status"] else ""
    return f"{row.name} is {outcome['status']}{already}."


async def _get(bank: Bank, customer_id: UUID) -> CustomerRow:
    row = await find_customer(bank.pool, customer_id)
    if row is None:
        raise CliError(f"There is no customer {customer_id}.", "Find its id in the API.")
    return row
