"""`billfold cards`: the bank's cards, and operator-only changes."""

from collections.abc import Iterable
from typing import Annotated, Any
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, Alone, CommandGroup, Row, require_alone, submit_as_operator
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.payments.cards.commands import CardRow, FreezeCard
from billfold.payments.cards.store import get_card, list_newest

group = CommandGroup("cards", "Show, freeze and unfreeze cards.", example="list")

CardId = Annotated[UUID, typer.Argument(help="The card's id.")]
Reason = Annotated[str, typer.Option(help="Why, for the audit log.")]
_COLUMNS = ("Card", "Type", "Ends in", "Status", "Pocket", "Created")
_NEWEST = 100


@group.table("list", f"list --pocket {EXAMPLE_ID}", columns=_COLUMNS, title="Cards", empty="There are no cards.")
async def list_cards(
    bank: Bank, *, pocket: Annotated[UUID | None, typer.Option(help="Only cards of this Pocket.")] = None
) -> Iterable[Row]:
    """List the newest cards."""
    cards = await list_newest(bank.pool, pocket, limit=_NEWEST)
    return [(each.card_id, each.type, each.last_four, each.status, each.pocket_id, each.created_at) for each in cards]


@group.table(f"show {EXAMPLE_ID}", columns=("Field", "Value"))
async def show(bank: Bank, card_id: CardId) -> Iterable[Row]:
    """Show a card, without its secrets."""
    card = await _find(bank, card_id)
    shown = {
        "Card": card.card_id,
        "Type": card.type,
        "Name": card.name,
        "Ends in": card.last_four,
        "Valid through": card.expires_on,
        "Status": card.status,
        "Magnetic stripe": card.magstripe_status,
        "Closed because": card.closure_reason,
        "Lost or stolen on": card.lost_stolen_on,
        "Customer": card.customer_id,
        "Pocket": card.pocket_id,
        "Order": card.card_order_id,
        "Created": card.created_at,
        "Changed": card.updated_at,
    }
    return [(name, value) for name, value in shown.items() if value is not None]


@group.command(f"freeze {EXAMPLE_ID} --reason 'suspected fraud' --alone")
async def freeze(bank: Bank, card_id: CardId, reason: Reason, *, alone: Alone = False) -> str:
    """Freeze a card: it cannot pay until the bank unfreezes it."""
    require_alone("card", alone=alone)
    await _submit(bank, card_id, is_frozen=True, reason=reason)
    return "The card is FROZEN."


@group.command(f"unfreeze {EXAMPLE_ID} --reason 'holder confirmed the payments' --alone")
async def unfreeze(bank: Bank, card_id: CardId, reason: Reason, *, alone: Alone = False) -> str:
    """Unfreeze a card. It is OFFLINE until its holder switches it on."""
    require_alone("card --lift", alone=alone)
    await _submit(bank, card_id, is_frozen=False, reason=reason)
    return "The card is OFFLINE. Its holder can set it ONLINE."


async def _find(bank: Bank, card_id: UUID) -> CardRow:
    entry = await bank.directory.find("card", card_id)
    if entry is None:
        raise CliError(f"There is no card {card_id}.", "`billfold cards list` shows the newest.")
    return await get_card(bank.pool, entry.customer_id, card_id)


async def _submit(bank: Bank, card_id: UUID, *, is_frozen: bool, reason: str) -> None:
    card = await _find(bank, card_id)
    fields: dict[str, Any] = {"references": (card_id,), "card_id": card_id, "is_frozen": is_frozen, "reason": reason}
    await submit_as_operator(bank, FreezeCard, card.customer_id, **fields)
