"""The limits of a card."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.operations import get, put
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.payments.cards.authorizations import store
from billfold.payments.cards.authorizations.commands import CardLimitsRow, CategoryCode, SetCardLimits, references_of
from billfold.payments.cards.routes import find_card

Cents = Annotated[int, msgspec.Meta(ge=0, le=999_999_999_999, description="USD cents.")]
Categories = Annotated[
    dict[CategoryCode, Cents],
    msgspec.Meta(max_length=100, description="By merchant category code (ISO 18245). Zero blocks the category."),
]


class SettingCardLimits(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a card may spend in a day (Eastern time): in all, null for no limit, and by merchant category."""

    daily: Cents | None
    categories: Categories = msgspec.field(default_factory=dict)


class CardLimits(msgspec.Struct, kw_only=True):
    """What a card may spend in a day."""

    card_id: UUID
    daily: Cents | None
    categories: Categories
    object_type: Literal["CardLimits"] = "CardLimits"


def render_limits(card_id: UUID, row: CardLimitsRow | None) -> CardLimits:
    """Return the limits of a card; a card that was never limited has none."""
    if row is None:
        return CardLimits(card_id=card_id, daily=None, categories={})
    categories = msgspec.json.decode(row.categories, type=dict[str, int])
    return CardLimits(card_id=card_id, daily=row.daily, categories=categories)


_PATH = "/api/v1/service-accounts/{account_id}/cards/{card_id}/limits/"


@get(_PATH, tag="cards")
async def get_card_limits(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID) -> CardLimits:
    """Get card limits.

    What it may spend in a day: in all, and by merchant category.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    return render_limits(card_id, await store.find_limits(bank.pool, card.customer_id, card_id))


@put(_PATH, tag="cards", refuses=("already-closed",))
async def set_card_limits(
    caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: SettingCardLimits
) -> CardLimits:
    """Set card limits.

    They replace those the card had. What is held or was paid today counts from the first payment on.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    await bank.engine.submit(
        SetCardLimits(
            **caller.command_fields(card.customer_id),
            references=references_of(card_id),
            card_id=card_id,
            daily=data.daily,
            categories=data.categories,
        )
    )
    return render_limits(card_id, await store.find_limits(bank.pool, card.customer_id, card_id))
