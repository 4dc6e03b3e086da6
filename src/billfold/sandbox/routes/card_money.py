"""Card payments as the network would send them, one operation for each event; and card production."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.http.schemas import one_of
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.payments.cards.authorizations import commands, store
from billfold.payments.cards.authorizations.commands import (
    Merchant,
    NetworkReference,
)
from billfold.payments.cards.authorizations.disputes.commands import OPEN, DecideDispute, DisputeStatus
from billfold.payments.cards.authorizations.disputes.schemas import CardDispute, render_dispute
from billfold.payments.cards.authorizations.disputes.store import get_dispute
from billfold.payments.cards.authorizations.messages import Message, MessageType, answer_message
from billfold.payments.cards.commands import CardType, ProduceCard
from billfold.payments.cards.processor import holder_of, processor_of
from billfold.payments.cards.rules import require_order_open
from billfold.payments.cards.settlement.inbound import book_record
from billfold.payments.cards.settlement.records import Chargeback, Presentment, RecordOfCard, Refund, Representment
from billfold.payments.cards.store import get_card, get_order
from billfold.payments.cards.worker import release_hold
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import derive
from billfold.sandbox.card_processor.launch import interchange_of, present_record, schedule_clearing
from billfold.sandbox.routes.operations import derived_id, request_id, sandbox_post

SETTLES_AFTER = 2
"""Banking days until a clearing settles (contract 9)."""
SHOP = Merchant(
    name="Vantorp Provisions",
    category_code="5411",
    street_address="9 Larkmoor Road",
    city="Vantorp",
    state="NV",
    country="US",
    terminal_id="00000001",
    acquirer_id="000001",
)

Cents = Annotated[int, msgspec.Meta(gt=0, le=999_999_999_999)]


class CardSwipe(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A purchase with a virtual card."""

    card_id: UUID
    amount_usdc: Cents


class CardPurchase(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A purchase, `cash_usdc` of it cash back; without a `network_reference` it gets one. An advice is not declined."""

    card_id: UUID
    amount_usdc: Cents
    network_reference: NetworkReference | None = None
    merchant: Merchant = SHOP
    entry_mode: commands.EntryMode = commands.EntryMode.ECOMMERCE
    cash_usdc: Annotated[int, msgspec.Meta(ge=0, le=999_999_999_999)] = 0
    is_partial_allowed: bool = False
    is_purchase_only_allowed: bool = False
    is_preauthorization: bool = False
    is_advice: bool = False


class CardIncrement(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An incremental amount for a held purchase."""

    card_id: UUID
    network_reference: NetworkReference
    amount_usdc: Cents


class CardReversal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A lower amount for a held purchase; without an amount, all of it is released."""

    card_id: UUID
    network_reference: NetworkReference
    amount_usdc: Cents | None = None


class CardHold(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A purchase that is held."""

    card_id: UUID
    network_reference: NetworkReference


class CardClearing(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A claim of a merchant. Without a `network_reference` it is forced: no hold belongs to it."""

    card_id: UUID
    amount_usdc: Cents
    network_reference: NetworkReference | None = None
    is_final: bool = True
    merchant: Merchant = SHOP


class CardRefund(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A refund by a merchant."""

    card_id: UUID
    amount_usdc: Cents
    merchant: Merchant = SHOP


class CardDisputed(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The refund of a cleared purchase, by the `record_id` of its clearing, in full or in part."""

    card_id: UUID
    record_id: UUID
    amount_usdc: Cents | None = None


class DisputeDecision(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The decision of the network about a dispute."""

    dispute_id: UUID
    outcome: Literal["WON", "LOST"]


class GenerateCard(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The order whose card is produced."""

    card_order_id: UUID


class CardDecision(msgspec.Struct, kw_only=True):
    """The decision of the bank, and the reference under which the purchase continues."""

    decision: Annotated[str, one_of(*commands.Decision)]
    approved_amount: int
    reason: Annotated[str, one_of(*commands.DeclineReason)] | None
    network_reference: str


class BookedCardRecord(msgspec.Struct, kw_only=True):
    """The record that was booked."""

    record_id: UUID
    transaction_id: UUID


@sandbox_post("card-swipe/", name="sandbox_card_swipe", moves_money=True, refuses=("not-found", "card-type-mismatch"))
async def swipe_card(caller: Caller, bank: Bank, data: CardSwipe) -> CardDecision:
    """Swipe a virtual card. An approved purchase is cleared after two business days; amounts ending in 04 are rejected.

    `card-clearing` with the `network_reference` of the answer clears it before.
    """
    owner, card_id = await caller.owned(bank, "card", data.card_id)
    if (await get_card(bank.pool, owner, card_id)).type != CardType.VIRTUAL:
        raise Refused("card-type-mismatch", "Only virtual cards are swiped here.")
    decision = await _send_message(caller, bank, MessageType.AUTHORIZATION, data)
    if decision.approved_amount:
        settles_on = bank.calendars.add_fed_days(et_date(caller.now), SETTLES_AFTER)
        await schedule_clearing(
            bank, owner, commands.authorization_id_of(card_id, decision.network_reference), settles_on
        )
    return decision


@sandbox_post("card-authorization/", name="sandbox_card_authorization", moves_money=True, refuses=("not-found",))
async def authorize(caller: Caller, bank: Bank, data: CardPurchase) -> CardDecision:
    """Send an authorization, or the advice of one, as a terminal would."""
    return await _send_message(caller, bank, MessageType.ADVICE if data.is_advice else MessageType.AUTHORIZATION, data)


@sandbox_post("card-increment/", name="sandbox_card_increment", moves_money=True, refuses=("not-found",))
async def increment(caller: Caller, bank: Bank, data: CardIncrement) -> CardDecision:
    """Hold more for a purchase."""
    return await _send_message(caller, bank, MessageType.INCREMENT, data)


@sandbox_post("card-reversal/", name="sandbox_card_reversal", moves_money=True, refuses=("not-found",))
async def reverse(caller: Caller, bank: Bank, data: CardReversal) -> CardDecision:
    """Reverse a purchase, or part of it, before it is cleared."""
    return await _send_message(caller, bank, MessageType.REVERSAL, data)


@sandbox_post("card-hold-expiry/", name="sandbox_card_hold_expiry", moves_money=True, refuses=("not-found",))
async def expire(caller: Caller, bank: Bank, data: CardHold) -> None:
    """Expire a hold."""
    owner, card_id = await caller.owned(bank, "card", data.card_id)
    held = await store.find_authorization(bank.pool, owner, card_id, data.network_reference)
    if held is None:
        raise NotFound("There is no such authorization.")
    await release_hold(bank, owner, held.authorization_id, due=held.expires_at)


@sandbox_post("card-clearing/", name="sandbox_card_clearing", moves_money=True, refuses=("not-found",))
async def clear(caller: Caller, bank: Bank, data: CardClearing) -> BookedCardRecord:
    """Clear a purchase: the held amount, less, more, in parts, late, or without any hold."""
    return await _book_record(caller, bank, Presentment, data.card_id, **_fields_of(data))


@sandbox_post("card-refund/", name="sandbox_card_refund", moves_money=True, refuses=("not-found", "pocket-not-open"))
async def refund(caller: Caller, bank: Bank, data: CardRefund) -> BookedCardRecord:
    """Refund to a card."""
    return await _book_record(caller, bank, Refund, data.card_id, **_fields_of(data))


@sandbox_post(
    "card-chargeback/",
    name="sandbox_card_chargeback",
    moves_money=True,
    refuses=("not-found", "chargeback-not-possible", "pocket-not-open"),
)
async def charge_back(caller: Caller, bank: Bank, data: CardDisputed) -> BookedCardRecord:
    """Charge a purchase back, until the merchant objects."""
    return await _dispute(caller, bank, Chargeback, data, reason_code="10-4")


@sandbox_post(
    "card-representment/",
    name="sandbox_card_representment",
    moves_money=True,
    refuses=("not-found", "representment-not-possible"),
)
async def represent(caller: Caller, bank: Bank, data: CardDisputed) -> BookedCardRecord:
    """Represent a purchase that was charged back."""
    return await _dispute(caller, bank, Representment, data)


@sandbox_post(
    "card-dispute-decision/",
    name="sandbox_card_dispute_decision",
    moves_money=True,
    refuses=("not-found", "dispute-not-possible", "chargeback-not-possible", "pocket-not-open"),
)
async def decide_dispute(caller: Caller, bank: Bank, data: DisputeDecision) -> CardDispute:
    """Decide a dispute as the network would. One that is won is charged back by a record of the settlement."""
    owner, dispute_id = await caller.owned(bank, "card_dispute", data.dispute_id)
    row = await get_dispute(bank.pool, owner, dispute_id)
    if data.outcome == "WON" and row.status in OPEN:
        disputed = CardDisputed(card_id=row.card_id, record_id=row.record_id, amount_usdc=row.amount - row.recovered)
        await _dispute(caller, bank, Chargeback, disputed, reason_code="10-4")
    else:
        await bank.engine.submit(
            DecideDispute(
                **caller.command_fields(owner),
                references=(dispute_id,),
                dispute_id=dispute_id,
                status=DisputeStatus(data.outcome),
            )
        )
    return render_dispute(await get_dispute(bank.pool, owner, dispute_id))


async def _send_message(
    caller: Caller, bank: Bank, kind: MessageType, data: CardSwipe | CardPurchase | CardIncrement | CardReversal
) -> CardDecision:
    _, card_id = await caller.owned(bank, "card", data.card_id)
    message_id = request_id(caller)
    fields = {"merchant": SHOP, **_fields_of(data)}
    fields["network_reference"] = fields.get("network_reference") or str(message_id)
    message = Message(message_id=message_id, type=kind, card_id=card_id, transmitted_at=caller.now, **fields)
    answer = await answer_message(bank, message)
    return CardDecision(
        decision=answer.decision,
        approved_amount=answer.approved_amount,
        reason=answer.reason,
        network_reference=message.network_reference,
    )


def _fields_of(data: msgspec.Struct) -> dict[str, Any]:
    """Return the payment in a request, under the names of messages and records; without its card."""
    names = (name for name in data.__struct_fields__ if name not in {"card_id", "is_advice"})
    return {name.removesuffix("_usdc"): getattr(data, name) for name in names}


async def _dispute(
    caller: Caller, bank: Bank, kind: type[Chargeback | Representment], data: CardDisputed, **fields: Any
) -> BookedCardRecord:
    owner, _ = await caller.owned(bank, "card", data.card_id)
    purchase = await store.get_payment(bank.pool, owner, data.record_id)
    amount = data.amount_usdc or purchase.amount
    return await _book_record(
        caller, bank, kind, data.card_id, amount=amount, original_record_id=data.record_id, **fields
    )


async def _book_record(
    caller: Caller, bank: Bank, kind: type[RecordOfCard], named: UUID, *, amount: int, **fields: Any
) -> BookedCardRecord:
    """Book a record at once; the processor lists it in the file of its settlement date."""
    owner, card_id = await caller.owned(bank, "card", named)
    settles_on = bank.calendars.add_fed_days(et_date(caller.now), SETTLES_AFTER)
    record = kind(
        record_id=derived_id(bank, caller),
        card_id=card_id,
        amount=amount,
        interchange=interchange_of(amount, kind.direction),
        **fields,
    )
    outcome = await book_record(bank, record, owner, settles_on)
    await present_record(bank, record, settles_on)
    return msgspec.convert(
        {name: outcome[name] for name in ("record_id", "transaction_id")}, BookedCardRecord, strict=False
    )


@sandbox_post(
    "generate-card/",
    name="sandbox_generate_card",
    refuses=("not-found", "card-order-not-open", "customer-not-open", "pocket-not-open", "pocket-frozen"),
)
async def generate_card(caller: Caller, bank: Bank, data: GenerateCard) -> None:
    """Produce the physical card of an order. It is NOT_ACTIVATED; its id is in the order."""
    owner, card_order_id = await caller.owned(bank, "card_order", data.card_order_id)
    order = await get_order(bank.pool, owner, card_order_id)
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
