"""`billfold custody`: bills transferred from another custodian, or to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, DayOption, Row, customer_of_pocket, submit_as_operator
from billfold.data_keys.payment_keys import PaymentKeys
from billfold.data_keys.types import PartyField
from billfold.payments.custody.commands import DeliverBills, ReceiveBills
from billfold.payments.custody.store import list_transfers
from billfold.platform import ids
from billfold.platform.dates import et_date
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command

group = CommandGroup("custody", "Receive bills from another custodian, and deliver bills to one.", example="list")

PocketId = Annotated[UUID, typer.Argument(help="The Pocket's id.")]
Cusip = Annotated[str, typer.Argument(help="The bill.")]
Units = Annotated[int, typer.Argument(help="Bills of $100 face.", min=1)]
Account = Annotated[str, typer.Option(help="The account at the other custodian.")]
Key = Annotated[UUID | None, typer.Option(help="Idempotency key: the same key moves bills once.")]
_COLUMNS = ("Booked on", "Direction", "Bill", "Units>", "Value>", "Other side", "Status")


@group.table("list", columns=_COLUMNS, title="Bills from and to other custodians")
async def list_newest(bank: Bank) -> Iterable[Row]:
    """List the newest transfers."""
    return [
        (
            et_date(each.created_at),
            each.direction,
            each.cusip,
            each.units,
            format_usd(each.market_value),
            each.counterparty_name,
            each.reason or each.status,
        )
        for each in await list_transfers(bank.pool)
    ]


@group.command(f"receive {EXAMPLE_ID} 912797PT8 100 --from Harbor --account 1")
async def receive(
    bank: Bank,
    pocket_id: PocketId,
    cusip: Cusip,
    units: Units,
    sender: Annotated[str, typer.Option("--from", help="Who delivered them.")],
    account: Account,
    *,
    acquired_on: Annotated[date | None, DayOption(help="When they were bought.")] = None,
    cost: Annotated[int | None, typer.Option(help="Their cost in cents.", min=0)] = None,
    key: Key = None,
) -> str:
    """Receive one lot of bills."""
    fields: dict[str, Any] = {"cusip": cusip, "units": units, "cost_cents": cost}
    fields |= {"acquired_on": acquired_on, "counterparty_name": sender}
    value = await _transfer(bank, ReceiveBills, pocket_id, key=key, counterparty_account=account, **fields)
    return f"{units} bills worth {value} are in the Pocket."


@group.command(f"deliver {EXAMPLE_ID} 912797PT8 100 --to Harbor --account 1")
async def deliver(
    bank: Bank,
    pocket_id: PocketId,
    cusip: Cusip,
    units: Units,
    receiver: Annotated[str, typer.Option("--to", help="Who receives them.")],
    account: Account,
    *,
    key: Key = None,
) -> str:
    """Deliver bills, oldest lots first. A worker instructs the custodian at once."""
    fields: dict[str, Any] = {"cusip": cusip, "units": units, "counterparty_name": receiver}
    value = await _transfer(bank, DeliverBills, pocket_id, key=key, counterparty_account=account, **fields)
    return f"{units} bills worth {value} have left the Pocket."


async def _transfer(
    bank: Bank, command: Callable[..., Command], pocket_id: UUID, *, key: UUID | None, **fields: Any
) -> str:
    """Submit the command; return the bills' market value."""
    key = key or ids.new()
    customer_id = await customer_of_pocket(bank, pocket_id)
    keys = await PaymentKeys.prepare(bank, (customer_id,))
    account = PartyField.ACCOUNT.seal(keys.of(customer_id), fields.pop("counterparty_account"))
    fields |= {"transfer_id": key, "pocket_id": pocket_id, "counterparty_account": account}
    outcome = await submit_as_operator(bank, command, customer_id, key=key, **fields)
    return format_usd(int(outcome["market_value"]))
