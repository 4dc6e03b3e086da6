"""What a transfer would do if it were carried out at this moment; nothing is written.

It is the command of the execution on books that are dropped afterwards, so that both say the same.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.types import PocketRow
from billfold.approvals.actor import Actor
from billfold.approvals.execute_transfers import check_feasible
from billfold.approvals.transfer_orders import RequestContent
from billfold.approvals.transfer_requests import check_unused, required_approvals
from billfold.approvals.types import ApprovalRequirement
from billfold.ledger.bank import Bank
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.book.postings import TradeEntry, TransactionEntry
from billfold.ledger.dry_run import DryRun


class PreviewedTransfer(NamedTuple):
    """What a transfer would do: the rows of the paying Pocket, the Pocket afterwards, and who would have to approve.

    `terms` are None of a partner's, which no member approves. `rejection` is why the bank would reject it, which moves
    nothing. `amount` is in cents.
    """

    now: datetime
    content: RequestContent
    amount: int
    rejection: str | None
    trades: list[TradeEntry]
    transactions: list[TransactionEntry]
    pocket: PocketRow
    terms: ApprovalRequirement | None


async def preview(bank: Bank, customer_id: UUID, content: RequestContent, *, by: Actor | None) -> PreviewedTransfer:
    """Preview a transfer of a member, or of a partner.

    Raises as requesting it does, and `insufficient-funds` as carrying it out does.
    """
    async with bank.pool.acquire() as conn:
        terms = None
        if by is not None:
            await check_unused(conn, by, content)
            async with conn.transaction():
                terms = await required_approvals(conn, by, content)
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            run = await check_feasible(bank, conn, content, customer_id=customer_id)
            stored = await pocket_store.get_pocket(conn, customer_id, content.pocket_id)
    return previewed(run, content, stored, terms=terms)


def previewed(
    run: DryRun, content: RequestContent, stored: PocketRow, *, terms: ApprovalRequirement | None
) -> PreviewedTransfer:
    """Return what a dry run says of the Pocket that pays; nothing of the one that is paid."""
    pocket_id = content.pocket_id
    return PreviewedTransfer(
        now=run.now,
        content=content,
        amount=run.outcome["amount"] or content.amount,
        rejection=run.outcome.get("reason"),
        trades=[each for each in run.rows_of(TradeEntry) if each.pocket_id == pocket_id],
        transactions=[each for each in run.rows_of(TransactionEntry) if each.pocket_id == pocket_id],
        pocket=_row_of(run.book.pockets[pocket_id], stored),
        terms=terms,
    )


def _row_of(pocket: PocketBook, stored: PocketRow) -> PocketRow:
    """Return a Pocket as it would be stored, as far as its value depends on it."""
    return msgspec.structs.replace(
        stored,
        cash=pocket.cash.balance,
        reserved=pocket.cash.reserved,
        unsettled_discount=pocket.unsettled_discount,
        unsettled_on=pocket.unsettled_on,
        fee_accrued=pocket.fee_accrued,
        accrued_through=pocket.accrued_through,
        lot_cusips=[lot.cusip for lot in pocket.lots],
        lot_units=[lot.units for lot in pocket.lots],
        lot_dates=[lot.acquired_on for lot in pocket.lots],
    )
