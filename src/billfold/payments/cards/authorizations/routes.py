"""The limits of a card."""

from __future__ import annotations

from uuid import UUID

from billfold.identity.partners.caller import (Caller)
from billfold.http.operations import get, put
from billfold.ledger.bank import Bank
from billfold.payments.cards.authorizations import store
from billfold.payments.cards.authorizations.commands import SetCardLimits, references_of
from billfold.payments.cards.authorizations.schemas import CardLimits, SettingCardLimits, render_limits
from billfold.payments.cards.routes.cards import find_card

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
