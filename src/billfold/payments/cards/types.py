"""Cards and card orders as stored, and the words for their states (contract 2.7)."""

from datetime import date, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

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
    """Whether the magnetic stripe may be swiped."""

    ON = "ON"
    OFF = "OFF"


class ClosureReason(StrEnum):
    """Why a card was closed."""

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
    """How card details are encrypted to the client's key (RFC 8017)."""

    PKCS1_V1_5 = "PKCS1_V1_5"
    OAEP_SHA256 = "OAEP_SHA256"


class CardRow(Row, frozen=True, kw_only=True):
    """A card as stored. `expires_on` is the last day it can be used, by the bank's clock."""

    table = "card"
    key_column = "card_id"
    fingerprinted = True
    # That of its Pocket: earlier cards have none.
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

    customer_id: UUID
    card_order_id: UUID
    pocket_id: UUID
    status: OrderStatus
    name_on_card: str
    shipping_address: str
    card_id: UUID | None
    created_at: datetime
    updated_at: datetime
