"""`billfold custody`: bills from or to another custodian, which one operator proposes and another confirms."""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, DayOption, Row, customer_of_pocket
from billfold.data_keys.keys import PartyField, PaymentKeys
from billfold.dual_control.cli import propose_as_operator
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.payments.custody.rules import DeliverBills, ReceiveBills
from billfold.payments.custody.worker import list_transfers
from billfold.platform import ids
from billfold.platform.dates import et_date
from billfold.platform.money import format_usd

group = CommandGroup(
    "custody", "Propose to receive bills from a custodian, or to deliver bills to one.", example="list"
)

PocketId = Annotated[UUID, typer.Argument(help="The Pocket's id.")]
Cusip = Annotated[str, typer.Argument(help="The bill.")]
Units = Annotated[int, typer.Argument(help="Bills of $100 face.", min=1)]
Account = Annotated[str, typer.Option(help="The account at the other custodian.")]
Key = Annotated[UUID | None, typer.Option(help="Idempotency key: the same key moves bills once.")]
_DIGITS_SHOWN = 4
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
    """Propose to receive one lot of bills."""
    fields: dict[str, Any] = {"cusip": cusip, "units": units, "cost_cents": cost}
    fields |= {"acquired_on": acquired_on, "counterparty_name": sender}
    words = f"Receive {units} bills {cusip} from {sender}, {_ending_of(account)}, into Pocket {pocket_id}"
    return await _propose(bank, ReceiveBills, pocket_id, words=words, key=key, counterparty_account=account, **fields)


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
    """Propose to deliver bills, oldest lots first. Once it is confirmed, a worker instructs the custodian at once."""
    fields: dict[str, Any] = {"cusip": cusip, "units": units, "counterparty_name": receiver}
    words = f"Deliver {units} bills {cusip} of Pocket {pocket_id} to {receiver}, {_ending_of(account)}"
    return await _propose(bank, DeliverBills, pocket_id, words=words, key=key, counterparty_account=account, **fields)


def _ending_of(account: str) -> str:
    return f"the account that ends in {account[-_DIGITS_SHOWN:]}"


async def _propose(
    bank: Bank, command: Callable[..., Command], pocket_id: UUID, *, words: str, key: UUID | None, **fields: Any
) -> str:
    key = key or ids.new()
    customer_id = await customer_of_pocket(bank, pocket_id)
    keys = await PaymentKeys.prepare(bank, (customer_id,))
    account = PartyField.ACCOUNT.seal(keys.of(customer_id), fields.pop("counterparty_account"))
    fields |= {"transfer_id": key, "pocket_id": pocket_id, "counterparty_account": account}
    why = "Transfer of bills between custodians"
    return await propose_as_operator(bank, command, customer_id, words=words, why=why, key=key, **fields)
