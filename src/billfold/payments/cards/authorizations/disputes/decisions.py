"""Decisions of operators on disputes of card payments: one proposes, and another confirms."""

from uuid import UUID

from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.store import FreezeProposal
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.payments.cards.authorizations.disputes import store
from billfold.payments.cards.authorizations.disputes.commands import DecideDispute, DisputeRow, DisputeStatus
from billfold.platform import ids
from billfold.platform.errors import NotFound
from billfold.platform.money import format_usd

_WORDS = {
    DisputeStatus.PROVISIONALLY_CREDITED: "Credit provisionally the dispute of",
    DisputeStatus.WON: "Decide for the holder in the dispute of",
    DisputeStatus.LOST: "Decide for the merchant in the dispute of",
}


async def find_dispute(bank: Bank, dispute_id: UUID) -> DisputeRow:
    """Return a dispute of any customer. Raises NotFound."""
    entry = await bank.directory.find("card_dispute", dispute_id)
    if entry is None:
        raise NotFound(f"There is no dispute {dispute_id}.")
    return await store.get_dispute(bank.pool, entry.customer_id, dispute_id)


async def propose_decision(
    bank: Bank, dispute_id: UUID, status: DisputeStatus, *, reason: str, by: Operator
) -> FreezeProposal:
    """Propose to move a dispute to a status. Raises NotFound, InvalidInput, Refused."""
    row = await find_dispute(bank, dispute_id)
    command = DecideDispute(
        caller="operator",
        key=ids.new(),
        customers=(row.customer_id,),
        origin=by.origin,
        references=(dispute_id,),
        dispute_id=dispute_id,
        status=status,
    )
    words = f"{_WORDS[status]} {format_usd(row.amount)} at {row.merchant}"
    return await propose_movement(bank, command, about=dispute_id, words=words, reason=reason, by=by)
