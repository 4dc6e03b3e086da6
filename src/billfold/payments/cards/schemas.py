"""Cards and card orders as the Partner API accepts and returns them (contract 1.11)."""

from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.accounts.addresses import Address
from billfold.accounts.notes.schemas import NewNote
from billfold.accounts.notes.types import ShownNote
from billfold.http.schemas import NOT_BLANK, one_of
from billfold.payments.cards import commands
from billfold.payments.cards.processor import EncryptedDetail

Pem = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=4096, description="RSA, 4096 bits, PEM: `RSA PUBLIC KEY` or `PUBLIC KEY`."),
]
Base64 = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9+/]+={0,2}\Z", max_length=1024)]
RequestedStatus = Literal["ONLINE", "OFFLINE", "CLOSED", "OPEN", "LOCKED"]
STATUS_ALIASES = {"OPEN": commands.CardStatus.ONLINE, "LOCKED": commands.CardStatus.OFFLINE}
"""Names of an earlier release."""


class Card(ShownNote, kw_only=True):
    """A card, without its secrets."""

    card_id: UUID
    customer_id: UUID
    pocket_id: UUID
    name: str
    type: Annotated[str, one_of(*commands.CardType)]
    status: Annotated[str, one_of(*commands.CardStatus)]
    magstripe_status: Annotated[str, one_of(*commands.MagstripeStatus)]
    last_four: str
    time_created: datetime
    object_type: Literal["Card"] = "Card"


class CardStatusResponse(msgspec.Struct, kw_only=True):
    """The status of a card."""

    card_id: UUID
    status: Annotated[str, one_of(*commands.CardStatus)]
    magstripe_status: Annotated[str, one_of(*commands.MagstripeStatus)]
    object_type: Literal["CardStatusResponse"] = "CardStatusResponse"


class ChangeCardStatus(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """ONLINE, OFFLINE or CLOSED. The magnetic stripe is ON only if requested, and only while ONLINE."""

    card_status: RequestedStatus
    magstripe_status: Literal["ON", "OFF"] = "OFF"


class SetPin(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Four digits, encrypted to the key `set_pin` of `/api/v1/public-keys/` (RSAES-PKCS1-v1_5), in base64."""

    encrypted_pin: Base64


class PinResponse(msgspec.Struct, kw_only=True):
    """The PIN is set."""

    success: bool = True
    object_type: Literal["SetPinResponse"] = "SetPinResponse"


class ClosingCard(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The reason for closing a card: a physical card needs a reason, LOST and STOLEN a date."""

    closure_reason: commands.ClosureReason | None = None
    lost_stolen_date: date | None = None


class DetailKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The client's public key, for this request only."""

    public_key: Pem
    padding: commands.Padding = commands.Padding.PKCS1_V1_5


class NewVirtualCard(NewNote, forbid_unknown_fields=True, kw_only=True):
    """A virtual card to create, and the client's public key, for this request only."""

    public_key: Pem
    padding: commands.Padding = commands.Padding.PKCS1_V1_5


class CardDetail(msgspec.Struct, kw_only=True):
    """Number, CVV and expiration (`MM/YY`), encrypted to the client's key with its padding, in base64."""

    card_id: UUID
    encrypted_pan: str
    encrypted_cvv: str
    encrypted_expiration: str
    object_type: Literal["CardDetail"] = "CardDetail"


class CreateCardOrder(NewNote, forbid_unknown_fields=True, kw_only=True):
    """A physical card to produce and send."""

    name_on_card: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=100,
            pattern=NOT_BLANK,
            description=f"The first {commands.PRINTED_NAME_MAX} characters are printed.",
        ),
    ]
    shipping_address: Address


class CardOrder(ShownNote, kw_only=True):
    """An order of a physical card; `card_id` once the card is made."""

    card_order_id: UUID
    card_id: UUID | None
    status: Annotated[str, one_of(*commands.OrderStatus)]
    name_on_card: str
    shipping_address: Address | None
    object_type: Literal["CardOrder"] = "CardOrder"


class CardOrderItem(ShownNote, kw_only=True):
    """An order in a list."""

    card_order_id: UUID
    card_id: UUID | None
    status: Annotated[str, one_of(*commands.OrderStatus)]
    object_type: Literal["MinimalPhysicalCardOrderResponse"] = "MinimalPhysicalCardOrderResponse"


class PublicKeys(msgspec.Struct, kw_only=True):
    """Public keys for encryption by clients: `set_pin`, in PEM."""

    set_pin: str
    object_type: Literal["PublicKeys"] = "PublicKeys"


def render_card(row: commands.CardRow) -> Card:
    """Return a card for a list."""
    return Card(
        card_id=row.card_id,
        customer_id=row.customer_id,
        pocket_id=row.pocket_id,
        name=row.name,
        type=row.type,
        status=row.status,
        magstripe_status=row.magstripe_status,
        last_four=row.last_four,
        time_created=row.created_at,
    )


def render_status(row: commands.CardRow) -> CardStatusResponse:
    """Return the status of a card."""
    return CardStatusResponse(card_id=row.card_id, status=row.status, magstripe_status=row.magstripe_status)


def render_detail(card_id: UUID, detail: EncryptedDetail) -> CardDetail:
    """Return card details that only the client can decrypt."""
    return CardDetail(
        card_id=card_id, encrypted_pan=detail.pan, encrypted_cvv=detail.cvv, encrypted_expiration=detail.expiration
    )


def render_order(row: commands.CardOrderRow, address: str | None) -> CardOrder:
    """Return an order with its decrypted address; None if that was destroyed."""
    found: Any = None if address is None else msgspec.json.decode(address, type=Address)
    return CardOrder(
        card_order_id=row.card_order_id,
        card_id=row.card_id,
        status=row.status,
        name_on_card=row.name_on_card,
        shipping_address=found,
    )


def render_order_item(row: commands.CardOrderRow) -> CardOrderItem:
    """Return an order for a list."""
    return CardOrderItem(card_order_id=row.card_order_id, card_id=row.card_id, status=row.status)
