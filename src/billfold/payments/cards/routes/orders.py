"""Orders of physical cards."""

from uuid import UUID

import msgspec

from billfold.accounts.addresses import Address, find_address_error
from billfold.data_keys.columns import CARD_SHIPPING_ADDRESS, open_column
from billfold.data_keys.keys import DataKeys
from billfold.http.operations import get, post
from billfold.http.parameters import ListQuery, page_of
from billfold.http.schemas import CursorList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.usage_limits import limit_usage
from billfold.payments.cards import store
from billfold.payments.cards.commands import OrderCard
from billfold.payments.cards.processor import processor_of
from billfold.payments.cards.schemas import CardOrder, CardOrderItem, CreateCardOrder, render_order, render_order_item
from billfold.payments.cards.types import CardOrderRow
from billfold.platform.errors import InvalidInput, NotFound

_REFUSES = ("customer-not-open", "pocket-not-open", "pocket-frozen", "rail-not-available", "usage-limit-reached")
_ORDERS = "/api/v1/service-accounts/{account_id}/card-orders/"


@post(_ORDERS, tag="cards", refuses=_REFUSES)
async def create_card_order(caller: Caller, bank: Bank, account_id: UUID, data: CreateCardOrder) -> CardOrder:
    """Create card order.

    A physical card, produced and sent to the address. It has a `card_id` once it is made.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    processor_of(bank)
    _check_address(data.shipping_address)
    await limit_usage(bank, "cards", owner)
    card_order_id = caller.new_resource_id(bank.seed)
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    address = msgspec.json.encode(data.shipping_address).decode()
    await bank.engine.submit(
        OrderCard(
            **caller.command_fields(owner),
            card_order_id=card_order_id,
            pocket_id=pocket_id,
            name_on_card=data.name_on_card,
            shipping_address=CARD_SHIPPING_ADDRESS.seal(data_key, card_order_id, address),
        )
    )
    return await _render(bank, await store.get_order(bank.pool, owner, card_order_id))


@get(_ORDERS, tag="cards")
async def list_account_card_orders(
    caller: Caller, bank: Bank, account_id: UUID, page_query: ListQuery
) -> CursorList[CardOrderItem]:
    """List card orders of an account.

    Newest first.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    return await _page(bank, page_query, owner, pocket_id=pocket_id)


@get("/api/v1/customers/{customer_id}/card-orders/", tag="cards")
async def list_customer_card_orders(
    caller: Caller, bank: Bank, customer_id: UUID, page_query: ListQuery
) -> CursorList[CardOrderItem]:
    """List card orders of a customer.

    Orders of all its accounts, newest first.
    """
    return await _page(bank, page_query, await caller.owner(bank, customer_id), pocket_id=None)


@get(f"{_ORDERS}{{card_order_id}}/", tag="cards")
async def get_card_order(caller: Caller, bank: Bank, account_id: UUID, card_order_id: UUID) -> CardOrder:
    """Get card order."""
    owner, pocket_id = await caller.pocket(bank, account_id)
    order = await store.get_order(bank.pool, owner, card_order_id)
    if order.pocket_id != pocket_id:
        raise NotFound("There is no such card order.")
    return await _render(bank, order)


async def _render(bank: Bank, order: CardOrderRow) -> CardOrder:
    value = (order.customer_id, order.card_order_id, order.shipping_address)
    (address,) = await open_column(bank.ports[DataKeys], bank.pool, CARD_SHIPPING_ADDRESS, [value])
    return render_order(order, address)


async def _page(bank: Bank, page_query: ListQuery, owner: UUID, *, pocket_id: UUID | None) -> CursorList[CardOrderItem]:
    page = await page_query.read(bank, store.ORDERS, owner, pocket_id, scope="card-orders")
    return page_of(page, [render_order_item(row) for row in page.items])


def _check_address(address: Address) -> None:
    if address.state is None:
        raise InvalidInput.at("body", "shipping_address", "state", msg="is needed to ship a card", kind="missing")
    if error := find_address_error(address):
        raise InvalidInput.at("body", "shipping_address", error[0], msg=error[1])
