"""Orders and statuses go to the card processor, and cards close with their Pocket: scheduled jobs, safe to repeat."""

from billfold.accounts.pockets.store import get_pocket
from billfold.data_keys.keys import CARD_SHIPPING_ADDRESS, DataKeys, open_column
from billfold.ledger.bank import Bank
from billfold.ledger.types import PocketStatus, ScheduledJob
from billfold.payments.cards import store
from billfold.payments.cards.commands import CloseCardsOfPocket, PlaceCardOrder
from billfold.payments.cards.processor import processor_of
from billfold.payments.cards.types import OrderStatus


async def place_order(bank: Bank, job: ScheduledJob) -> None:
    """Send an order to the card processor, unless its Pocket has been closed."""
    assert job.customer_id is not None
    order = await store.get_order(bank.pool, job.customer_id, job.object_id)
    pocket = await get_pocket(bank.pool, job.customer_id, order.pocket_id)
    if order.status != OrderStatus.INITIAL or pocket.status == PocketStatus.CLOSED:
        return
    value = (order.customer_id, order.card_order_id, order.shipping_address)
    (address,) = await open_column(bank.ports[DataKeys], bank.pool, CARD_SHIPPING_ADDRESS, [value])
    if address is None:  # destroyed with the customer's key: there is nowhere to send it
        return
    await processor_of(bank).order(order, address)
    await bank.engine.submit(
        PlaceCardOrder(
            caller="cards",
            key=order.card_order_id,
            customers=(order.customer_id,),
            card_order_id=order.card_order_id,
            references=(order.card_order_id,),
        )
    )


async def report_status(bank: Bank, job: ScheduledJob) -> None:
    """Report the status of a card to the card processor."""
    assert job.customer_id is not None
    card = await store.get_card(bank.pool, job.customer_id, job.object_id)
    await processor_of(bank).set_status(card.card_id, card.status)


async def close_cards(bank: Bank, job: ScheduledJob) -> None:
    """Close the cards of a closed Pocket."""
    assert job.customer_id is not None
    cards = await store.list_open_cards(bank.pool, job.customer_id, job.object_id)
    if cards:
        await bank.engine.submit(
            CloseCardsOfPocket(
                caller="cards",
                key=job.object_id,
                customers=(job.customer_id,),
                pocket_id=job.object_id,
                references=tuple(cards),
            )
        )
