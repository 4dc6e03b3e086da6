"""What becomes of cards and card orders."""

from datetime import date
from uuid import UUID

from billfold.accounts.commands import UpdatePocket
from billfold.payments.cards.commands import (
    CloseCard,
    CloseCardsOfPocket,
    CreateVirtualCard,
    FreezeCard,
    OrderCard,
    PlaceCardOrder,
    ProduceCard,
    RecordPin,
    SetCardStatus,
)
from billfold.payments.cards.types import CardStatus

ISSUED = {"last_four": "4242", "expires_on": date(2029, 6, 30)}


def play_cards(new_stage):
    stage = new_stage()
    anna = stage.new_customer("Anna")
    pocket, _ = stage.new_pocket(anna), stage.new_pocket(anna)
    order, card = {"card_order_id": UUID(int=1)}, {"card_id": UUID(int=2)}
    virtual = {"card_id": UUID(int=3)}
    with stage.row("Card ordered"):
        stage.submit(OrderCard, anna, pocket_id=pocket.id, name_on_card="Anna", shipping_address="sealed", **order)
    with stage.row("Card order placed"):
        stage.about(PlaceCardOrder, anna, order)
    with stage.row("Card produced"):
        stage.about(ProduceCard, anna, order, **card, **ISSUED)
    with stage.row("PIN set"):
        stage.about(RecordPin, anna, card)
    with stage.row("Card activated"):
        stage.about(SetCardStatus, anna, card, status=CardStatus.ONLINE)
    with stage.row("Card frozen or unfrozen"):
        stage.about(FreezeCard, anna, card, is_frozen=True)
    with stage.row("Card closed"):
        stage.about(CloseCard, anna, card)
    with stage.row("Virtual card created"):
        stage.submit(CreateVirtualCard, anna, pocket_id=pocket.id, name="Anna", **virtual, **ISSUED)
    with stage.row("Card switched on or off"):
        stage.about(SetCardStatus, anna, virtual, status=CardStatus.OFFLINE)
    stage.submit(UpdatePocket, anna, pocket_id=pocket.id, close_for="not needed")
    with stage.row("Cards closed with their Pocket"):
        stage.submit(CloseCardsOfPocket, anna, pocket_id=pocket.id, references=(virtual["card_id"],))
