"""The limits of a card as the Partner API shows and takes them."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.payments.cards.authorizations.types import CardLimitsRow, CategoryCode

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
