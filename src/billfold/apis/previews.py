"""Previews of requests: their effect on the caller's Pockets, and of limits on what a card has spent today."""

from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.pockets.store import get_pocket
from billfold.approvals.transfer_preview import (
    PreviewedBalance,
    PreviewedSale,
    remaining_in,
    render_sale,
    row_after,
)
from billfold.http.schemas import Amount, WallTime, one_of, usd
from billfold.ledger.bank import Bank
from billfold.ledger.book.postings import TradeEntry, TransactionEntry
from billfold.ledger.dry_run import DryRun
from billfold.ledger.preview import Previewed
from billfold.ledger.types import Direction, TransactionType
from billfold.payments.cards.authorizations.commands import SetCardLimits
from billfold.platform.dates import et_date


class PreviewedTransaction(msgspec.Struct, kw_only=True):
    """A transaction that would be booked."""

    type: Annotated[str, one_of(*TransactionType)]
    direction: Annotated[str, one_of(*Direction)]
    amount: Amount
    settlement_date: date


class PreviewedPocket(msgspec.Struct, kw_only=True):
    """Sales and transactions of a Pocket, and its holdings afterwards."""

    pocket_id: UUID
    sales: list[PreviewedSale]
    transactions: list[PreviewedTransaction]
    held: Amount
    remaining: PreviewedBalance


class PreviewedLimit(msgspec.Struct, kw_only=True):
    """A limit of a card, with what counts towards it today.

    A payment above `remaining` would be declined. `category` is null for the limit in total.
    """

    category: str | None
    limit: Amount
    spent: Amount
    remaining: Amount


class PreviewedAuthorization(msgspec.Struct, kw_only=True):
    """An authorization of today that is open. It stays approved, and may not be raised."""

    authorization_id: UUID
    category: str
    amount: Amount


class PreviewedCard(msgspec.Struct, kw_only=True):
    """The limits that a card would have, and open authorizations that are over them."""

    card_id: UUID
    limits: list[PreviewedLimit]
    over_limit: list[PreviewedAuthorization]


class MoneyPreview(msgspec.Struct, kw_only=True):
    """The effect of the request now. With the header `Preview-Id` the same request does that, or is refused.

    It says nothing of another customer's Pockets. `rejection_reason` is set when the bank would accept the request and
    then reject the payment; then nothing moves. `card` is shown for limits of a card.
    """

    preview_id: str
    valid_until: WallTime
    time_priced: datetime
    rejection_reason: str | None
    pockets: list[PreviewedPocket]
    card: PreviewedCard | None = None
    object_type: Literal["MoneyPreview"] = "MoneyPreview"


async def render_money_preview(bank: Bank, found: Previewed, preview_id: str, valid_until: datetime) -> MoneyPreview:
    """Return the preview of a command: the Pockets of its first customer that it names or touches."""
    run = found.run
    touched = [getattr(found.command, name, None) for name in ("pocket_id", "from_pocket_id")]
    touched += [each.pocket_id for each in run.rows_of(TradeEntry)]
    touched += [each.pocket_id for each in run.rows_of(TransactionEntry)]
    pocket_ids = [each for each in dict.fromkeys(touched) if each in run.book.pockets]
    return MoneyPreview(
        preview_id=preview_id,
        valid_until=valid_until,
        time_priced=run.now,
        rejection_reason=None if run.rows_of(TransactionEntry) else run.outcome.get("reason"),
        pockets=[await _pocket(bank, found, each) for each in pocket_ids],
        card=_card(found.command, run) if isinstance(found.command, SetCardLimits) else None,
    )


def _card(command: SetCardLimits, run: DryRun) -> PreviewedCard:
    spent, over = command.meets(run.book, run.now)
    return PreviewedCard(
        card_id=command.card_id,
        limits=[
            PreviewedLimit(
                category=category,
                limit=usd(cents),
                spent=usd(spent[category]),
                remaining=usd(max(0, cents - spent[category])),
            )
            for category, cents in command.limits.items()
        ],
        over_limit=[
            PreviewedAuthorization(
                authorization_id=row.authorization_id, category=row.category_code, amount=usd(row.remaining)
            )
            for row in over
        ],
    )


async def _pocket(bank: Bank, found: Previewed, pocket_id: UUID) -> PreviewedPocket:
    run = found.run
    book = run.book.pockets[pocket_id]
    after = row_after(book, await get_pocket(bank.pool, run.book.customer_id, pocket_id))
    return PreviewedPocket(
        pocket_id=pocket_id,
        sales=[
            render_sale(each, bank)
            for each in run.rows_of(TradeEntry)
            if each.pocket_id == pocket_id and not each.incoming
        ],
        transactions=[
            PreviewedTransaction(
                type=each.type,
                direction=each.direction,
                amount=usd(each.amount),
                settlement_date=et_date(each.settles_at),
            )
            for each in run.rows_of(TransactionEntry)
            if each.pocket_id == pocket_id
        ],
        held=usd(book.held_cents(run.now, bank.calendars)),
        remaining=remaining_in(after, bank, run.now),
    )
