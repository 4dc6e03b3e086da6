"""Cards: orders, lists, status, limits, closing."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.accounts.addresses import Address, find_address_error
from billfold.accounts.notes.schemas import ChangeNote, NoteQuery
from billfold.accounts.notes.store import annotate, find_noted, note_fields, show_notes, terms_of
from billfold.data_keys.keys import CARD_SHIPPING_ADDRESS, DataKeys, open_column
from billfold.http.operations import delete, get, patch, post, put
from billfold.http.parameters import ListQuery, page_of, searched_page_of, texts_among
from billfold.http.schemas import CursorList, SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank, limit_usage
from billfold.payments.cards import commands, schemas, store
from billfold.payments.cards.authorizations import store as authorization_store
from billfold.payments.cards.authorizations.commands import CardLimitsRow, CategoryCode, SetCardLimits, references_of
from billfold.payments.cards.processor import processor_of
from billfold.platform.database.paging import Page, list_as_of
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, NotFound

_REFUSES = ("customer-not-open", "pocket-not-open", "pocket-frozen", "rail-not-available", "usage-limit-reached")
_ORDERS = "/api/v1/service-accounts/{account_id}/card-orders/"


@post(_ORDERS, tag="cards", refuses=(*_REFUSES, "external-id-taken"))
async def create_card_order(
    caller: Caller, bank: Bank, account_id: UUID, data: schemas.CreateCardOrder
) -> schemas.CardOrder:
    """Create card order.

    A physical card is produced and sent to the address. The order has a `card_id` once it is made.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    processor_of(bank)
    _check_address(data.shipping_address)
    await limit_usage(bank, "cards", owner)
    card_order_id = caller.new_resource_id(bank.seed)
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    address = msgspec.json.encode(data.shipping_address).decode()
    await bank.engine.submit(
        commands.OrderCard(
            **caller.command_fields(owner),
            **await note_fields(bank, owner, "card_order", data),
            card_order_id=card_order_id,
            pocket_id=pocket_id,
            name_on_card=data.name_on_card,
            shipping_address=CARD_SHIPPING_ADDRESS.seal(data_key, card_order_id, address),
        )
    )
    return await _render(bank, await store.get_order(bank.pool, owner, card_order_id))


@get(_ORDERS, tag="cards", as_of=True)
async def list_account_card_orders(
    caller: Caller, bank: Bank, account_id: UUID, page_query: ListQuery, notes: NoteQuery
) -> CursorList[schemas.CardOrderItem]:
    """List card orders of an account.

    Returns orders, newest first.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    return await _page_of_orders(bank, page_query, notes, (owner, pocket_id), as_of=caller.as_of)


@get("/api/v1/customers/{customer_id}/card-orders/", tag="cards", as_of=True)
async def list_customer_card_orders(
    caller: Caller, bank: Bank, customer_id: UUID, page_query: ListQuery, notes: NoteQuery
) -> CursorList[schemas.CardOrderItem]:
    """List card orders of a customer.

    Returns orders of all its accounts, newest first.
    """
    of = (await caller.owner(bank, customer_id), None)
    return await _page_of_orders(bank, page_query, notes, of, as_of=caller.as_of)


@get(f"{_ORDERS}{{card_order_id}}/", tag="cards", as_of=True)
async def get_card_order(caller: Caller, bank: Bank, account_id: UUID, card_order_id: UUID) -> schemas.CardOrder:
    """Get card order."""
    return await _render(bank, await _find_order(caller, bank, account_id, card_order_id=card_order_id))


@patch(f"{_ORDERS}{{card_order_id}}/", tag="cards", refuses=("external-id-taken",))
async def annotate_card_order(
    caller: Caller, bank: Bank, account_id: UUID, card_order_id: UUID, data: ChangeNote
) -> schemas.CardOrder:
    """Annotate card order.

    Changes `external_id` and `metadata`.
    """
    order = await _find_order(caller, bank, account_id, card_order_id=card_order_id)
    await annotate(caller, bank, order.customer_id, kind="card_order", object_id=card_order_id, given=data)
    return await _render(bank, order)


async def _find_order(caller: Caller, bank: Bank, account_id: UUID, *, card_order_id: UUID) -> commands.CardOrderRow:
    owner, pocket_id = await caller.pocket(bank, account_id)
    order = await store.get_order(bank.pool, owner, card_order_id, as_of=caller.as_of)
    if order.pocket_id != pocket_id:
        raise NotFound("There is no such card order.")
    return order


async def _render(bank: Bank, order: commands.CardOrderRow) -> schemas.CardOrder:
    key = (order.customer_id, order.card_order_id)
    (address,) = await open_column(
        bank.ports[DataKeys], bank.pool, CARD_SHIPPING_ADDRESS, [(*key, order.shipping_address)]
    )
    return (await show_notes(bank, {key: schemas.render_order(order, address)}))[0]


async def _page_of_orders(
    bank: Bank, page_query: ListQuery, notes: NoteQuery, of: tuple[UUID, UUID | None], *, as_of: datetime | None
) -> CursorList[schemas.CardOrderItem]:
    owner, pocket_id = of
    if (external_id := notes.require_alone()) is not None:
        get = partial(store.get_order, bank.pool, owner, as_of=as_of)
        found = await find_noted(bank, owner, "card_order", external_id, get=get)
        page = Page([order for order in found if pocket_id in {None, order.pocket_id}])
    else:
        terms = await terms_of(bank, owner, "card_order", notes)
        listed, then = list_as_of(store.ORDERS, store.ORDERS_THEN, as_of)
        page = await page_query.read(bank, listed, *of, terms, *then, scope="card-orders")
    shown = {(row.customer_id, row.card_order_id): schemas.render_order_item(row) for row in page.items}
    return page_of(page, await show_notes(bank, shown))


def _check_address(address: Address) -> None:
    if address.state is None:
        raise InvalidInput.at("body", "shipping_address", "state", msg="is needed to ship a card", kind="missing")
    if error := find_address_error(address):
        raise InvalidInput.at("body", "shipping_address", error[0], msg=error[1])


Statuses = Annotated[
    list[str] | None, texts_among("filter[status]", frozenset({*commands.CardStatus, *schemas.STATUS_ALIASES}))
]
_DATED = frozenset({commands.ClosureReason.LOST, commands.ClosureReason.STOLEN})
_CARD = "/api/v1/service-accounts/{account_id}/cards/{card_id}"
_ALREADY_CLOSED = "already-closed"


@get("/api/v1/service-accounts/{account_id}/cards/", tag="cards", as_of=True)
async def list_account_cards(
    caller: Caller, bank: Bank, account_id: UUID, page_query: ListQuery, notes: NoteQuery, statuses: Statuses = None
) -> CursorList[schemas.Card]:
    """List cards of an account.

    Returns cards, newest first, without their secrets.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    return await _page(bank, page_query, notes, owner, pocket_id=pocket_id, statuses=statuses, as_of=caller.as_of)


@get("/api/v1/customers/{customer_id}/cards/", tag="cards", as_of=True)
async def list_customer_cards(
    caller: Caller, bank: Bank, customer_id: UUID, page_query: ListQuery, notes: NoteQuery, statuses: Statuses = None
) -> CursorList[schemas.Card]:
    """List cards of a customer.

    Returns cards of all its accounts, newest first, without their secrets.
    """
    owner = await caller.owner(bank, customer_id)
    return await _page(bank, page_query, notes, owner, pocket_id=None, statuses=statuses, as_of=caller.as_of)


@get("/api/v1/cards/", tag="cards", as_of=True)
async def list_cards(
    caller: Caller, bank: Bank, page_query: ListQuery, statuses: Statuses = None
) -> SearchedList[schemas.Card]:
    """List cards.

    Returns cards of all customers, newest first, without their secrets.
    """
    values = (caller.partner_id, _stored(statuses))
    listed, then = list_as_of(store.CARDS_OF_PARTNER, store.CARDS_OF_PARTNER_THEN, caller.as_of)
    page = await page_query.read(bank, listed, *values, *then, scope="cards of a partner")
    return searched_page_of(page, await _show(bank, page.items))


@patch(f"{_CARD}/", tag="cards", refuses=("external-id-taken",))
async def annotate_card(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: ChangeNote) -> schemas.Card:
    """Annotate card.

    Changes `external_id` and `metadata` of a virtual or physical card.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    await annotate(caller, bank, card.customer_id, kind="card", object_id=card_id, given=data)
    return (await _show(bank, [card]))[0]


@get(f"{_CARD}/status/", tag="cards", as_of=True)
async def get_card_status(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID) -> schemas.CardStatusResponse:
    """Get card status."""
    return schemas.render_status(await find_card(caller, bank, account_id, card_id=card_id))


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
    caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: schemas.ChangeCardStatus
) -> schemas.CardStatusResponse:
    """Set card status.

    CLOSED cannot be undone. The first ONLINE activates a physical card that has its PIN.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    await bank.engine.submit(
        commands.SetCardStatus(
            **caller.command_fields(card.customer_id),
            references=(card_id,),
            card_id=card_id,
            status=schemas.STATUS_ALIASES.get(data.card_status) or commands.CardStatus(data.card_status),
            magstripe_status=commands.MagstripeStatus(data.magstripe_status),
        )
    )
    return schemas.render_status(await store.get_card(bank.pool, card.customer_id, card_id))


@post(f"{_CARD}/close/", tag="cards", status=204, refuses=(_ALREADY_CLOSED,))
async def close_card(
    caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: schemas.ClosingCard | None
) -> None:
    """Close card.

    Closes a virtual or physical card; it can never be used again.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    data = data or schemas.ClosingCard()
    reason, lost_on = data.closure_reason, data.lost_stolen_date
    if reason is None and card.type == commands.CardType.PHYSICAL:
        raise InvalidInput.at("body", "closure_reason", msg="is needed to close a physical card", kind="missing")
    if lost_on is None and reason in _DATED:
        raise InvalidInput.at("body", "lost_stolen_date", msg=f"is needed for {reason}", kind="missing")
    if lost_on is not None and reason not in _DATED:
        raise InvalidInput.at("body", "lost_stolen_date", msg="is only taken with LOST and STOLEN")
    # The holder reports a loss by wall time, whatever the sandbox clock.
    if lost_on is not None and lost_on > et_date(max(caller.now, caller.wall)):
        raise InvalidInput.at("body", "lost_stolen_date", msg="is in the future")
    await _close_card(caller, bank, card, reason=reason, lost_stolen_on=lost_on)


@delete("/api/v1/service-accounts/{account_id}/virtual-cards/{card_id}/", tag="cards", refuses=(_ALREADY_CLOSED,))
async def close_virtual_card(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID) -> None:
    """Close virtual card.

    The card can never be used again.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id, only=commands.CardType.VIRTUAL)
    await _close_card(caller, bank, card, only=commands.CardType.VIRTUAL)


async def find_card(
    caller: Caller, bank: Bank, account_id: UUID, *, card_id: UUID, only: commands.CardType | None = None
) -> commands.CardRow:
    """Return a card of an account, of one type if given. Raises NotFound."""
    owner, pocket_id = await caller.pocket(bank, account_id)
    card = await store.get_card(bank.pool, owner, card_id, caller.as_of)
    if card.pocket_id != pocket_id or only not in {None, card.type}:
        raise NotFound("There is no such card.")
    return card


async def _page(
    bank: Bank,
    page_query: ListQuery,
    notes: NoteQuery,
    owner: UUID,
    *,
    pocket_id: UUID | None,
    statuses: list[str] | None,
    as_of: datetime | None,
) -> CursorList[schemas.Card]:
    if (external_id := notes.require_alone(statuses)) is not None:
        get = partial(store.get_card, bank.pool, owner, as_of=as_of)
        found = await find_noted(bank, owner, "card", external_id, get=get)
        found = [card for card in found if pocket_id in {None, card.pocket_id}]
        return page_of(Page(found), await _show(bank, found))
    values = (owner, pocket_id, _stored(statuses), await terms_of(bank, owner, "card", notes))
    listed, then = list_as_of(store.CARDS, store.CARDS_THEN, as_of)
    page = await page_query.read(bank, listed, *values, *then, scope="cards")
    return page_of(page, await _show(bank, page.items))


async def _show(bank: Bank, rows: Sequence[commands.CardRow]) -> list[schemas.Card]:
    """Return cards for display with their notes."""
    return await show_notes(bank, {(row.customer_id, row.card_id): schemas.render_card(row) for row in rows})


def _stored(statuses: list[str] | None) -> list[str] | None:
    return None if statuses is None else [schemas.STATUS_ALIASES.get(each, each) for each in statuses]


async def _close_card(caller: Caller, bank: Bank, card: commands.CardRow, **why: Any) -> None:
    fields = caller.command_fields(card.customer_id)
    await bank.engine.submit(commands.CloseCard(**fields, references=(card.card_id,), card_id=card.card_id, **why))


Cents = Annotated[int, msgspec.Meta(ge=0, le=999_999_999_999, description="USD cents.")]
Categories = Annotated[
    dict[CategoryCode, Cents],
    msgspec.Meta(max_length=100, description="By merchant category code (ISO 18245). Zero blocks the category."),
]


class SettingCardLimits(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Limits of a card per day (Eastern time): in total, null for no limit, and by merchant category."""

    daily: Cents | None
    categories: Categories = msgspec.field(default_factory=dict)


class CardLimits(msgspec.Struct, kw_only=True):
    """Limits of a card per day."""

    card_id: UUID
    daily: Cents | None
    categories: Categories
    object_type: Literal["CardLimits"] = "CardLimits"


def render_limits(card_id: UUID, row: CardLimitsRow | None) -> CardLimits:
    """Return the limits of a card; a card for which none were set has none."""
    if row is None:
        return CardLimits(card_id=card_id, daily=None, categories={})
    categories = msgspec.json.decode(row.categories, type=dict[str, int])
    return CardLimits(card_id=card_id, daily=row.daily, categories=categories)


_PATH = "/api/v1/service-accounts/{account_id}/cards/{card_id}/limits/"


@get(_PATH, tag="cards", as_of=True)
async def get_card_limits(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID) -> CardLimits:
    """Get card limits.

    Returns its daily limits: in total, and by merchant category.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    row = await authorization_store.find_limits(bank.pool, card.customer_id, card_id, as_of=caller.as_of)
    return render_limits(card_id, row)


@put(_PATH, tag="cards", refuses=("already-closed",), previews=True)
async def set_card_limits(
    caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: SettingCardLimits
) -> CardLimits:
    """Set card limits.

    Replaces the card's limits. Amounts already held or paid today count from the first payment on.
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
    return render_limits(card_id, await authorization_store.find_limits(bank.pool, card.customer_id, card_id))
