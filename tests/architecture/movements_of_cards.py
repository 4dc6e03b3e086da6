"""Movements of cards and card orders."""

from datetime import date
from uuid import UUID

from billfold.accounts.pockets.commands import UpdatePocket
from billfold.documents.ports import DocumentRow
from billfold.documents.rules import DISPUTE_EVIDENCE
from billfold.payments.cards.authorizations.commands import (
    AuthorizeCard,
    ChargeBack,
    ClearCard,
    ExpireAuthorization,
    IncrementAuthorization,
    InquireBalance,
    Merchant,
    RefundCard,
    Represent,
    ReverseAuthorization,
    SetCardLimits,
    references_of,
)
from billfold.payments.cards.authorizations.disputes.commands import (
    AddDisputeDocuments,
    DecideDispute,
    DisputeReason,
    DisputeStatus,
    OpenDispute,
)
from billfold.payments.cards.cash_back.rules import GiveCashBack
from billfold.payments.cards.commands import (
    CardStatus,
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
from billfold.payments.cards.rules import BookCardSettlement
from billfold.payments.suspense.rules import HoldInSuspense, ReleaseFromSuspense, WriteOffFromSuspense
from billfold.platform.dates import et_instant

CARD, PURCHASE = UUID(int=3), UUID(int=4)
SHOP = Merchant(name="Shop", category_code="5411")
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


class Payments:
    """Messages and records about Anna's card."""

    def __init__(self, stage):
        self.stage = stage
        self.anna, pocket = stage.rich()
        stage.submit(CreateVirtualCard, self.anna, pocket_id=pocket.id, name="Anna", card_id=CARD, **ISSUED)

    def send(self, kind, reference="1", **fields):
        fields = {"card_id": CARD, "network_reference": reference, "merchant": SHOP, **fields}
        self.stage.submit(kind, self.anna, references=references_of(CARD, reference), **fields)

    def record(self, kind, reference=None, *, number=5, **fields):
        fields = {"card_id": CARD, "record_id": UUID(int=number), "settles_on": date(2025, 6, 5), **fields}
        references = references_of(CARD, reference, PURCHASE)
        self.stage.submit(kind, self.anna, references=references, network_reference=reference, **fields)


def play_card_holds(new_stage):
    stage = new_stage()
    card = Payments(stage)
    with stage.row("Card payment declined"):
        card.send(AuthorizeCard, "0", amount=10_04)
    with stage.row("Card payment held"):
        card.send(AuthorizeCard, amount=500_00)
    with stage.row("Card payment held for more"):
        card.send(IncrementAuthorization, amount=100_00)
    with stage.row("Card payment reversed in part"):
        card.send(ReverseAuthorization, amount=100_00)
    with stage.row("Card payment reversed"):
        card.send(ReverseAuthorization)
    card.send(AuthorizeCard, "2", amount=50_00)
    with stage.row("Hold expired"):
        card.send(ExpireAuthorization, "2", due=et_instant(date(2025, 7, 1), 9))
    with stage.row("Card limits set"):
        stage.submit(SetCardLimits, card.anna, card_id=CARD, daily=1, categories={}, references=references_of(CARD))
    with stage.row("Card balance inquired"):
        stage.submit(InquireBalance, card.anna, card_id=CARD, references=(CARD,))


def play_card_records(new_stage):
    stage = new_stage()
    card = Payments(stage)
    card.send(AuthorizeCard, amount=50_00)
    with stage.row("Card payment cleared"):
        card.record(ClearCard, "1", amount=55_00, merchant=SHOP, record_id=PURCHASE)
    with stage.row("Card payment charged back"):
        card.record(ChargeBack, amount=55_00, original_id=PURCHASE)
    stage.until(date(2025, 6, 5))  # the chargeback settles
    with stage.row("Card payment represented"):
        card.record(Represent, number=6, amount=55_00, original_id=PURCHASE)
    with stage.row("Card refund"):
        card.record(RefundCard, number=7, amount=500_00, merchant=SHOP)
    with stage.row("Cash back of a month"):
        stage.submit(
            GiveCashBack,
            card.anna,
            references=(CARD,),
            cash_back_id=UUID(int=8),
            card_id=CARD,
            period="2025-05",
            rule_version=1,
            basis_points=100,
            cap=None,
            purchases=30_000_00,
            refunds=0,
            carried_in=0,
        )


def play_disputes(new_stage):
    stage = new_stage()
    card = Payments(stage)
    card.record(ClearCard, "1", amount=55_00, merchant=SHOP, record_id=PURCHASE)
    _, lost, final = disputes = [{"dispute_id": UUID(int=number)} for number in (21, 22, 23)]
    for dispute in disputes:
        with stage.row("Card payment disputed"):
            fields = {"record_id": PURCHASE, "amount": 15_00, "reason": DisputeReason.FRAUD, **dispute}
            stage.submit(OpenDispute, card.anna, references=(PURCHASE, CARD), **fields)
        with stage.row("Dispute credited provisionally"):
            stage.about(DecideDispute, card.anna, dispute, status=DisputeStatus.PROVISIONALLY_CREDITED)
    letter, at = UUID(int=24), et_instant(date(2025, 6, 2), 9)
    file = dict.fromkeys(("exception_reason", "name", "media_type", "file_key", "size_bytes", "sha256", "uploaded_at"))
    document = DocumentRow(
        card.anna, letter, DISPUTE_EVIDENCE, "PENDING_REVIEW", created_at=at, file_sealed=True, **file
    )
    stage.bank.seen.put(card.anna, letter, document)
    with stage.row("Documents added to a dispute"):
        stage.about(AddDisputeDocuments, card.anna, lost, document_ids=(letter,))
    with stage.row("Dispute lost or withdrawn"):
        stage.about(DecideDispute, card.anna, lost, status=DisputeStatus.LOST)
    with stage.row("Provisional credit repaid by a chargeback"):
        card.record(ChargeBack, amount=15_00, original_id=PURCHASE)
    with stage.row("Dispute won for good"):
        stage.about(DecideDispute, card.anna, final, status=DisputeStatus.WON)
    with stage.row("Final credit repaid to the bank by a chargeback"):
        card.record(ChargeBack, number=6, amount=15_00, original_id=PURCHASE)
    with stage.row("Final credit kept, though its chargeback is represented"):
        card.record(Represent, number=7, amount=30_00, original_id=PURCHASE)


def play_card_settlement(new_stage):
    stage = new_stage()
    house = stage.house()
    with stage.row("Interchange and fees of the card processor"):
        stage.submit(
            BookCardSettlement, house, file_id=UUID(int=1), settles_on=date(2025, 6, 5), interchange=10_00, fees=2_00
        )
    for number, title in ((2, "Card record assigned from suspense"), (3, "Card record written off")):
        item = {"item_id": UUID(int=number)}
        held = {"rail": "CARD", "direction": "DEBIT", "amount": 9_00, "reason": "unknown-card", "details": {}}
        stage.submit(HoldInSuspense, house, **item, **held)
        with stage.row(title):
            if number == 2:
                stage.about(ReleaseFromSuspense, house, item, owner_id=UUID(int=4), settles_on=date(2025, 6, 5))
            else:
                stage.about(WriteOffFromSuspense, house, item, reason="not ours")
