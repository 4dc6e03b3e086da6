"""`billfold disputes`: disputes of card payments, and decisions that one operator proposes and another confirms."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row
from billfold.cli.context import CliError
from billfold.dual_control.cli import said_of
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.payments.cards.authorizations.disputes import store
from billfold.payments.cards.authorizations.disputes.commands import DisputeStatus
from billfold.payments.cards.authorizations.disputes.decisions import propose_decision
from billfold.platform.errors import NotFound
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
    by = Operator.of_command_line(bank.settings.operator)
    try:
        return said_of(await propose_decision(bank, dispute_id, status, reason=reason, by=by))
    except NotFound as missing:
        raise CliError(str(missing), "`billfold disputes list` shows those to decide.") from None
