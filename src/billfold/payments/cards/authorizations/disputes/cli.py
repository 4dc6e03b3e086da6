"""`billfold disputes`: disputes of card payments, and decisions that one operator proposes and another confirms."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row
from billfold.cli.context import CliError
from billfold.dual_control.cli import propose_as_operator
from billfold.ledger.bank import Bank
from billfold.payments.cards.authorizations.disputes import store
from billfold.payments.cards.authorizations.disputes.commands import DecideDispute, DisputeStatus
from billfold.platform.money import format_usd

group = CommandGroup("disputes", "List disputes of card payments, and propose their decisions.", example="list")
_SHOWN = 100
_COLUMNS = ("Dispute", "Customer", "Merchant", "Reason", "Amount>", "Status", "Credit due", "Decide by")

DisputeId = Annotated[UUID, typer.Argument(help="The dispute's id.")]
Reason = Annotated[str, typer.Option(help="Why, for the audit log.")]


@group.table("list", columns=_COLUMNS, title="Disputes", empty="No dispute waits for a decision.")
async def list_disputes(bank: Bank) -> Iterable[Row]:
    """List the disputes that wait for a decision, the most urgent first."""
    return [
        (
            each.dispute_id,
            each.customer_id,
            each.merchant,
            each.reason,
            format_usd(each.amount),
            each.status,
            each.credit_due_at,
            each.decide_by,
        )
        for each in await store.list_undecided(bank.pool, limit=_SHOWN)
    ]


@group.command(f"credit {EXAMPLE_ID} --reason 'Holder credible'")
async def credit(bank: Bank, dispute_id: DisputeId, reason: Reason) -> str:
    """Propose to credit a dispute provisionally, whatever its amount."""
    return await _propose(bank, dispute_id, DisputeStatus.PROVISIONALLY_CREDITED, reason)


@group.command(f"win {EXAMPLE_ID} --reason 'Merchant does not answer'")
async def win(bank: Bank, dispute_id: DisputeId, reason: Reason) -> str:
    """Propose that the holder is right: what is not credited yet is credited, for good."""
    return await _propose(bank, dispute_id, DisputeStatus.WON, reason)


@group.command(f"lose {EXAMPLE_ID} --reason 'Signed receipt'")
async def lose(bank: Bank, dispute_id: DisputeId, reason: Reason) -> str:
    """Propose that the merchant is right: a provisional credit is taken back, even if it has been spent."""
    return await _propose(bank, dispute_id, DisputeStatus.LOST, reason)


async def _propose(bank: Bank, dispute_id: UUID, status: DisputeStatus, reason: str) -> str:
    entry = await bank.directory.find("card_dispute", dispute_id)
    if entry is None:
        raise CliError(f"There is no dispute {dispute_id}.", "`billfold disputes list` shows those to decide.")
    row = await store.get_dispute(bank.pool, entry.customer_id, dispute_id)
    return await propose_as_operator(
        bank,
        DecideDispute,
        row.customer_id,
        about=dispute_id,
        words=f"Set the dispute {dispute_id} of {format_usd(row.amount)} to {status}",
        why=reason,
        dispute_id=dispute_id,
        status=status,
        references=(dispute_id,),
    )
