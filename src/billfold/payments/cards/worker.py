"""Scheduled jobs of cards, safe to repeat.

Orders and statuses go to the card processor, cards close with their Pocket, holds expire, and late approvals are
reversed.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from billfold.accounts.pockets.store import get_pocket
from billfold.data_keys.keys import CARD_SHIPPING_ADDRESS, DataKeys, open_column
from billfold.ledger.bank import Bank
from billfold.ledger.types import PocketStatus, ScheduledJob
from billfold.payments.cards import store
from billfold.payments.cards.authorizations import commands
from billfold.payments.cards.authorizations import store as authorization_store
from billfold.payments.cards.authorizations.messages import reverse_late_message
from billfold.payments.cards.commands import CloseCardsOfPocket, OrderStatus, PlaceCardOrder
from billfold.payments.cards.processor import processor_of


async def expire_hold(bank: Bank, job: ScheduledJob) -> None:
    """Release an expired hold."""
    assert job.customer_id is not None
    await release_hold(bank, job.customer_id, job.object_id, due=job.at)


async def reverse_late(bank: Bank, job: ScheduledJob) -> None:
    """Reverse what was approved too late."""
    assert job.customer_id is not None
    await reverse_late_message(bank, await authorization_store.get_late(bank.pool, job.object_id))


async def release_hold(bank: Bank, customer_id: UUID, authorization_id: UUID, *, due: datetime) -> None:
    """Release a hold that expires by `due`. Raises NotFound."""
    row = await authorization_store.get_authorization(bank.pool, customer_id, authorization_id)
    await bank.engine.submit(
        commands.ExpireAuthorization(
            caller=f"cards:{due.isoformat()}",
            key=authorization_id,
            customers=(customer_id,),
            references=commands.references_of(row.card_id, row.network_reference),
            card_id=row.card_id,
            network_reference=row.network_reference,
            merchant=msgspec.json.decode(row.merchant, type=commands.Merchant),
            due=due,
        )
    )


async def place_order(bank: Bank, job: ScheduledJob) -> None:
    """Send an order to the card processor, unless its Pocket has been closed."""
    assert job.customer_id is not None
    order = await store.get_order(bank.pool, job.customer_id, job.object_id)
    pocket = await get_pocket(bank.pool, job.customer_id, order.pocket_id)
    if order.status != OrderStatus.INITIAL or pocket.status == PocketStatus.CLOSED:
        return
    value = (order.customer_id, order.card_order_id, order.shipping_address)
    (address,) = await open_column(bank.ports[DataKeys], bank.pool, CARD_SHIPPING_ADDRESS, [value])
    if address is None:  # destroyed with the customer's key: the order cannot be sent
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
