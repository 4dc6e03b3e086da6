"""`billfold cards`: what only the bank does with a card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, submit_as_operator
from billfold.cli.context import CliError
from billfold.payments.cards.commands import FreezeCard

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

group = CommandGroup("cards", "Freeze and unfreeze cards.", example="freeze 5d0c...e1 --reason 'suspected fraud'")

CardId = Annotated[UUID, typer.Argument(help="The card's id.")]
Reason = Annotated[str, typer.Option(help="Why, for the audit log.")]


@group.command(f"freeze {EXAMPLE_ID} --reason 'suspected fraud'")
async def freeze(bank: Bank, card_id: CardId, reason: Reason) -> str:
    """Freeze a card: it pays nothing until the bank unfreezes it."""
    await _submit(bank, card_id, is_frozen=True, reason=reason)
    return "The card is FROZEN."


@group.command(f"unfreeze {EXAMPLE_ID} --reason 'holder confirmed the payments'")
async def unfreeze(bank: Bank, card_id: CardId, reason: Reason) -> str:
    """Unfreeze a card. It is OFFLINE until its holder switches it on."""
    await _submit(bank, card_id, is_frozen=False, reason=reason)
    return "The card is OFFLINE. Its holder can set it ONLINE."


async def _submit(bank: Bank, card_id: UUID, *, is_frozen: bool, reason: str) -> None:
    entry = await bank.directory.find("card", card_id)
    if entry is None:
        raise CliError(f"There is no card {card_id}.", "Find its id in the API.")
    fields: dict[str, Any] = {"references": (card_id,), "card_id": card_id, "is_frozen": is_frozen, "reason": reason}
    await submit_as_operator(bank, FreezeCard, entry.customer_id, **fields)
