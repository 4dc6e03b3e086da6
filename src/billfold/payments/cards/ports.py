"""The port to the card processor: it issues cards and keeps their numbers, so that the bank never sees one."""

from datetime import date
from typing import Protocol, runtime_checkable
from uuid import UUID

import msgspec

from billfold.payments.cards.types import CardOrderRow, CardStatus, Padding


class IssuedCard(msgspec.Struct, frozen=True, kw_only=True):
    """What the bank may know of a card number (PCI DSS 3.4.1)."""

    last_four: str
    expires_on: date


class EncryptedDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Card number, CVV and expiration (`MM/YY`), each encrypted to the client's key, in base64."""

    pan: str
    cvv: str
    expiration: str


class PinError(Exception):
    """The encrypted PIN does not hold four digits."""


class PublicKeyError(Exception):
    """The key is not one that card details can be encrypted to; the text is the reason."""


@runtime_checkable
class CardProcessor(Protocol):
    """Issues cards. Every call may be repeated. Raises `platform.errors.Unavailable` when it does not answer."""

    async def issue(self, card_id: UUID, *, on: date) -> IssuedCard:
        """Issue the card of this id, or return it as it was issued. `on` is the business date."""

    async def encrypt_detail(self, card_id: UUID, public_key: str, padding: Padding) -> EncryptedDetail:
        """Encrypt number, CVV and expiration to an RSA key in PEM. Raises PublicKeyError."""

    async def order(self, order: CardOrderRow, shipping_address: str) -> None:
        """Order a physical card; `shipping_address` is JSON text."""

    async def set_status(self, card_id: UUID, status: CardStatus) -> None:
        """Take over the status of a card: while the bank does not answer, only one that is ONLINE may pay."""

    async def pin_key(self) -> str:
        """Return the RSA key, in PEM, to which clients encrypt PINs."""

    async def set_pin(self, card_id: UUID, encrypted_pin: bytes) -> None:
        """Take the PIN of a card, encrypted to `pin_key` (RSAES-PKCS1-v1_5). Raises PinError."""

    async def close(self) -> None:
        """End what it keeps open; the bank closes."""
