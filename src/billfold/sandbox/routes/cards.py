"""Physical cards are produced at once."""

from uuid import UUID

import msgspec

from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.payments.cards import store
from billfold.payments.cards.commands import ProduceCard
from billfold.payments.cards.processor import holder_of, processor_of
from billfold.payments.cards.rules import require_order_open
from billfold.platform.dates import et_date
from billfold.platform.ids import derive
from billfold.sandbox.operations import sandbox_post


class GenerateCard(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The order of which the card is produced."""

    card_order_id: UUID


@sandbox_post(
    "generate-card/",
    name="sandbox_generate_card",
    refuses=("not-found", "card-order-not-open", "customer-not-open", "pocket-not-open", "pocket-frozen"),
)
async def generate_card(caller: Caller, bank: Bank, data: GenerateCard) -> None:
    """Produce the physical card of an order. It is NOT_ACTIVATED; its id is in the order."""
    owner, card_order_id = await caller.owned(bank, "card_order", data.card_order_id)
    order = await store.get_order(bank.pool, owner, card_order_id)
    require_order_open(order)
    await holder_of(bank, owner, order.pocket_id)
    card_id = derive(bank.seed, card_order_id, 0)
    issued = await processor_of(bank).issue(card_id, on=et_date(caller.now))
    await bank.engine.submit(
        ProduceCard(
            **caller.command_fields(owner),
            references=(card_order_id,),
            card_order_id=card_order_id,
            card_id=card_id,
            last_four=issued.last_four,
            expires_on=issued.expires_on,
        )
    )
