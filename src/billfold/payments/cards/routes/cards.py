"""Cards: lists, status, PIN, closing."""

import base64
import binascii
from typing import Annotated, Any
from uuid import UUID

from billfold.http.counts import count_object
from billfold.http.operations import OPEN, delete, get, patch, post
from billfold.http.parameters import ListQuery, page_of, searched_page_of, texts_among
from billfold.http.schemas import CursorList, SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.payments.cards import store
from billfold.payments.cards.commands import CloseCard, RecordPin, SetCardStatus
from billfold.payments.cards.ports import PinError
from billfold.payments.cards.processor import processor_of
from billfold.payments.cards.rules import require_pin_settable
from billfold.payments.cards.schemas import (
    STATUS_ALIASES,
    Card,
    CardStatusResponse,
    ChangeCardStatus,
    ClosingCard,
    PinResponse,
    PublicKeys,
    SetPin,
    render_card,
    render_status,
)
from billfold.payments.cards.types import CardRow, CardStatus, CardType, ClosureReason, MagstripeStatus
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, NotFound

Statuses = Annotated[list[str] | None, texts_among("filter[status]", frozenset({*CardStatus, *STATUS_ALIASES}))]
_DATED = frozenset({ClosureReason.LOST, ClosureReason.STOLEN})
_CARD = "/api/v1/service-accounts/{account_id}/cards/{card_id}"
_ALREADY_CLOSED = "already-closed"
_PINS = 30
"""How many PINs are taken for one card in ten minutes, right and wrong ones."""


@get("/api/v1/service-accounts/{account_id}/cards/", tag="cards")
async def list_account_cards(
    caller: Caller, bank: Bank, account_id: UUID, page_query: ListQuery, statuses: Statuses = None
) -> CursorList[Card]:
    """List cards of an account.

    Newest first, without what is secret.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    return await _page(bank, page_query, owner, pocket_id=pocket_id, statuses=statuses)


@get("/api/v1/customers/{customer_id}/cards/", tag="cards")
async def list_customer_cards(
    caller: Caller, bank: Bank, customer_id: UUID, page_query: ListQuery, statuses: Statuses = None
) -> CursorList[Card]:
    """List cards of a customer.

    Cards of all its accounts, newest first, without what is secret.
    """
    owner = await caller.owner(bank, customer_id)
    return await _page(bank, page_query, owner, pocket_id=None, statuses=statuses)


@get("/api/v1/cards/", tag="cards")
async def list_cards(
    caller: Caller, bank: Bank, page_query: ListQuery, statuses: Statuses = None
) -> SearchedList[Card]:
    """List cards.

    Cards of all customers, newest first, without what is secret.
    """
    values = (caller.partner_id, _stored(statuses))
    page = await page_query.read(bank, store.CARDS_OF_PARTNER, *values, scope="cards of a partner")
    return searched_page_of(page, [render_card(row) for row in page.items])


@get(f"{_CARD}/status/", tag="cards")
async def get_card_status(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID) -> CardStatusResponse:
    """Get card status."""
    return render_status(await find_card(caller, bank, account_id, card_id=card_id))


@patch(
    f"{_CARD}/status/",
    tag="cards",
    refuses=(
        _ALREADY_CLOSED,
        "card-frozen",
        "card-not-activated",
        "customer-not-open",
        "pocket-not-open",
        "pocket-frozen",
    ),
)
async def set_card_status(
    caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: ChangeCardStatus
) -> CardStatusResponse:
    """Set card status.

    CLOSED cannot be undone. The first ONLINE activates a physical card that has its PIN.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    await bank.engine.submit(
        SetCardStatus(
            **caller.command_fields(card.customer_id),
            references=(card_id,),
            card_id=card_id,
            status=STATUS_ALIASES.get(data.card_status) or CardStatus(data.card_status),
            magstripe_status=MagstripeStatus(data.magstripe_status),
        )
    )
    return render_status(await store.get_card(bank.pool, card.customer_id, card_id))


@post(
    f"{_CARD}/pin/",
    tag="cards",
    status=200,
    refuses=(_ALREADY_CLOSED, "card-type-mismatch", "card-already-activated", "rail-not-available"),
)
async def set_card_pin(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: SetPin) -> PinResponse:
    """Set card PIN.

    Of a physical card, before it is activated.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    require_pin_settable(card)
    await count_object(bank.pool, card_id, "card-pin", limit=_PINS, wall=caller.wall)
    try:
        await processor_of(bank).set_pin(card_id, base64.b64decode(data.encrypted_pin, validate=True))
    except (PinError, binascii.Error):
        raise InvalidInput.at(
            "body", "encrypted_pin", msg="must be four digits, encrypted to the `set_pin` key, in base64"
        ) from None
    await bank.engine.submit(
        RecordPin(**caller.command_fields(card.customer_id), references=(card_id,), card_id=card_id)
    )
    return PinResponse()


@post(f"{_CARD}/close/", tag="cards", status=204, refuses=(_ALREADY_CLOSED,))
async def close_card(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: ClosingCard | None) -> None:
    """Close card.

    A virtual or a physical card; it can never be used again.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    data = data or ClosingCard()
    reason, lost_on = data.closure_reason, data.lost_stolen_date
    if reason is None and card.type == CardType.PHYSICAL:
        raise InvalidInput.at("body", "closure_reason", msg="is needed to close a physical card", kind="missing")
    if lost_on is None and reason in _DATED:
        raise InvalidInput.at("body", "lost_stolen_date", msg=f"is needed for {reason}", kind="missing")
    if lost_on is not None and reason not in _DATED:
        raise InvalidInput.at("body", "lost_stolen_date", msg="is only taken with LOST and STOLEN")
    # Who lost a card says so by the wall clock, wherever a sandbox has set the bank's.
    if lost_on is not None and lost_on > et_date(max(caller.now, caller.wall)):
        raise InvalidInput.at("body", "lost_stolen_date", msg="is in the future")
    await _close(caller, bank, card, reason=reason, lost_stolen_on=lost_on)


@delete(
    "/api/v1/service-accounts/{account_id}/virtual-cards/{card_id}/",
    tag="cards",
    refuses=(_ALREADY_CLOSED,),
)
async def close_virtual_card(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID) -> None:
    """Close virtual card.

    It can never be used again.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id, only=CardType.VIRTUAL)
    await _close(caller, bank, card, only=CardType.VIRTUAL)


@get("/api/v1/public-keys/", OPEN, tag="cards", refuses=("rail-not-available",))
async def get_public_keys(bank: Bank) -> PublicKeys:
    """Get public keys.

    What clients encrypt to: the PIN of a card to `set_pin`.
    """
    return PublicKeys(set_pin=await processor_of(bank).pin_key())


async def find_card(
    caller: Caller, bank: Bank, account_id: UUID, *, card_id: UUID, only: CardType | None = None
) -> CardRow:
    """Return a card of an account, of one type if it is named. Raises NotFound."""
    owner, pocket_id = await caller.pocket(bank, account_id)
    card = await store.get_card(bank.pool, owner, card_id)
    if card.pocket_id != pocket_id or only not in {None, card.type}:
        raise NotFound("There is no such card.")
    return card


async def _page(
    bank: Bank, page_query: ListQuery, owner: UUID, *, pocket_id: UUID | None, statuses: list[str] | None
) -> CursorList[Card]:
    page = await page_query.read(bank, store.CARDS, owner, pocket_id, _stored(statuses), scope="cards")
    return page_of(page, [render_card(row) for row in page.items])


def _stored(statuses: list[str] | None) -> list[str] | None:
    return None if statuses is None else [STATUS_ALIASES.get(each, each) for each in statuses]


async def _close(caller: Caller, bank: Bank, card: CardRow, **why: Any) -> None:
    fields = caller.command_fields(card.customer_id)
    await bank.engine.submit(CloseCard(**fields, references=(card.card_id,), card_id=card.card_id, **why))
