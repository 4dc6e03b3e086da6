"""Commands about cards and their orders."""

from datetime import date, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.platform.database.rows import Row

ORDER_JOB: Final = "card.order"
"""Sends an order to the card processor; its object is the order."""
STATUS_JOB: Final = "card.status"
"""Reports the status of a card to the card processor; its object is the card."""
PRINTED_NAME_MAX: Final = 26
"""Characters of a name on a card (ISO/IEC 7813)."""


class CardType(StrEnum):
    """A virtual card is only a number."""

    VIRTUAL = "VIRTUAL"
    PHYSICAL = "PHYSICAL"


class CardStatus(StrEnum):
    """ONLINE can pay, OFFLINE and FROZEN cannot; only the bank unfreezes. A closed card stays closed."""

    NOT_ACTIVATED = "NOT_ACTIVATED"
    ONLINE = "ONLINE"
    OFFLINE = "OFFLINE"
    FROZEN = "FROZEN"
    CLOSED = "CLOSED"


class MagstripeStatus(StrEnum):
    """The state of the magnetic stripe."""

    ON = "ON"
    OFF = "OFF"


class ClosureReason(StrEnum):
    """The reason why a card was closed."""

    LOST = "LOST"
    STOLEN = "STOLEN"
    DAMAGED = "DAMAGED"
    NEVER_RECEIVED = "NEVER_RECEIVED"
    EXPIRED = "EXPIRED"
    CANCELED = "CANCELED"


class OrderStatus(StrEnum):
    """INITIAL until the processor has the order; RECEIVED when the card is activated."""

    INITIAL = "INITIAL"
    ORDERED = "ORDERED"
    CARD_CREATED = "CARD_CREATED"
    RECEIVED = "RECEIVED"


class Padding(StrEnum):
    """The padding for encrypting card details to the client's key (RFC 8017)."""

    PKCS1_V1_5 = "PKCS1_V1_5"
    OAEP_SHA256 = "OAEP_SHA256"


class CardRow(Row, frozen=True, kw_only=True):
    """A card as stored. `expires_on` is the last day it can be used, by the bank's clock."""

    table = "card"
    key_column = "card_id"
    fingerprinted = True
    keeps_former = True
    # That of its Pocket; older cards have none.
    changing = frozenset({"partner_id"})

    customer_id: UUID
    card_id: UUID
    pocket_id: UUID
    card_order_id: UUID | None
    type: CardType
    name: str
    status: CardStatus
    magstripe_status: MagstripeStatus
    last_four: str
    expires_on: date
    has_pin: bool
    created_at: datetime
    updated_at: datetime
    closure_reason: ClosureReason | None = None
    lost_stolen_on: date | None = None
    partner_id: UUID | None = None


class CardOrderRow(Row, frozen=True, kw_only=True):
    """An order of a physical card. `shipping_address` is sealed JSON text."""

    table = "card_order"
    key_column = "card_order_id"
    fingerprinted = True
    keeps_former = True

    customer_id: UUID
    card_order_id: UUID
    pocket_id: UUID
    status: OrderStatus
    name_on_card: str
    shipping_address: str
    card_id: UUID | None
    created_at: datetime
    updated_at: datetime


class CreateVirtualCard(Command, frozen=True, kw_only=True):
    """Record a virtual card that the processor has issued."""

    audit = AuditedAction("card", "created", fields=("pocket_id", "last_four"))
    notes_on = ("card", "card_id")
    card_id: UUID
    pocket_id: UUID
    name: str
    last_four: str
    expires_on: date


class OrderCard(Command, frozen=True, kw_only=True):
    """Order a physical card. `shipping_address` is sealed."""

    notes_on = ("card_order", "card_order_id")
    audit = AuditedAction("card_order", "created", fields=("pocket_id", "name_on_card"))
    card_order_id: UUID
    pocket_id: UUID
    name_on_card: str
    shipping_address: str


class PlaceCardOrder(Command, frozen=True, kw_only=True):
    """Record that the processor has received an order. References the order."""

    reference_kinds = (Reference.CARD,)
    card_order_id: UUID


class ProduceCard(Command, frozen=True, kw_only=True):
    """Record the card that the processor made for an order. References the order."""

    reference_kinds = (Reference.CARD,)
    card_order_id: UUID
    card_id: UUID
    last_four: str
    expires_on: date


class SetCardStatus(Command, frozen=True, kw_only=True):
    """Switch a card ONLINE or OFFLINE, or close it. References the card, and its order."""

    reference_kinds = (Reference.CARD,)
    audit = AuditedAction("card", "updated", fields=("status", "magstripe_status"))
    card_id: UUID
    status: CardStatus
    magstripe_status: MagstripeStatus = MagstripeStatus.OFF


class RecordPin(Command, frozen=True, kw_only=True):
    """Record that the processor has the PIN of a card. References the card."""

    reference_kinds = (Reference.CARD,)
    audit = AuditedAction("card", "pin_set")
    card_id: UUID


class CloseCard(Command, frozen=True, kw_only=True):
    """Close a card; `only` refuses cards of the other type. References the card."""

    reference_kinds = (Reference.CARD,)
    audit = AuditedAction("card", "closed", fields=("reason", "lost_stolen_on"))
    card_id: UUID
    reason: ClosureReason | None = None
    lost_stolen_on: date | None = None
    only: CardType | None = None


class CloseCardsOfPocket(Command, frozen=True, kw_only=True):
    """Close the cards of a closed Pocket. References them."""

    reference_kinds = (Reference.CARD,)
    pocket_id: UUID


class FreezeCard(Command, frozen=True, kw_only=True):
    """Freeze or unfreeze a card, which only the bank does. References the card."""

    reference_kinds = (Reference.CARD,)
    audit = AuditedAction("card", lambda c: "frozen" if c.is_frozen else "unfrozen", fields=("reason",))
    card_id: UUID
    is_frozen: bool
    reason: str | None = None
