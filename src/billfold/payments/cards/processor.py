"""The card processor: its port, the keys of clients, and the customers for whom it may issue a card."""

import hashlib
from datetime import date
from typing import Protocol, runtime_checkable
from uuid import UUID

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from billfold.accounts.pockets.rules import require_usable
from billfold.accounts.pockets.store import get_pocket
from billfold.ledger.bank import Bank
from billfold.ledger.customers import CustomerRow
from billfold.ledger.directory import find_customer
from billfold.payments.cards.commands import CardOrderRow, CardStatus, Padding
from billfold.platform.errors import NotFound, Refused


class IssuedCard(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a card number that the bank may keep (PCI DSS 3.4.1)."""

    last_four: str
    expires_on: date


class EncryptedDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Card number, CVV and expiration (`MM/YY`), each encrypted to the client's key, in base64."""

    pan: str
    cvv: str
    expiration: str


class PinError(Exception):
    """The encrypted PIN does not contain four digits."""


class PublicKeyError(Exception):
    """Card details cannot be encrypted to this key; the text is the reason."""


@runtime_checkable
class CardProcessor(Protocol):
    """Issues cards. Every call may be repeated. Raises `platform.errors.Unavailable` if it does not answer."""

    async def issue(self, card_id: UUID, *, on: date) -> IssuedCard:
        """Issue the card with this id, or return it if it exists. `on` is the business date."""

    async def encrypt_detail(self, card_id: UUID, public_key: str, padding: Padding) -> EncryptedDetail:
        """Encrypt number, CVV and expiration to an RSA key in PEM. Raises PublicKeyError."""

    async def order(self, order: CardOrderRow, shipping_address: str) -> None:
        """Order a physical card; `shipping_address` is JSON text."""

    async def set_status(self, card_id: UUID, status: CardStatus) -> None:
        """Store the status of a card: while the bank does not answer, only ONLINE cards may pay."""

    async def pin_key(self) -> str:
        """Return the RSA key, in PEM, to which clients encrypt PINs."""

    async def set_pin(self, card_id: UUID, encrypted_pin: bytes) -> None:
        """Store the PIN of a card, encrypted to `pin_key` (RSAES-PKCS1-v1_5). Raises PinError."""

    async def close(self) -> None:
        """Release open resources when the bank closes."""


KEY_BITS = 4096
_EXPONENT = 65_537


def load_detail_key(pem: str) -> RSAPublicKey:
    """Return the key. Raises PublicKeyError."""
    if "PRIVATE KEY" in pem:
        raise PublicKeyError("holds a private key, which others know from now on: make another pair")
    try:
        key = load_pem_public_key(pem.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        raise PublicKeyError("is not a public key in PEM (`RSA PUBLIC KEY` or `PUBLIC KEY`)") from None
    if not isinstance(key, RSAPublicKey):
        raise PublicKeyError("is not an RSA key")
    if key.key_size != KEY_BITS:
        raise PublicKeyError(f"has {key.key_size} bits, not {KEY_BITS}")
    if key.public_numbers().e != _EXPONENT:
        raise PublicKeyError(f"has another exponent than {_EXPONENT}")
    return key


def fingerprint_of(pem: str) -> bytes:
    """Return the SHA-256 of a key, the same for both forms. Raises PublicKeyError."""
    der = load_detail_key(pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).digest()


def processor_of(bank: Bank) -> CardProcessor:
    """Return the processor. Refuses: rail-not-available if the bank has none."""
    processor = bank.ports.get(CardProcessor)
    if processor is None:
        raise Refused("rail-not-available", "The bank has no card processor.")
    return processor


async def holder_of(bank: Bank, customer_id: UUID, pocket_id: UUID) -> CustomerRow:
    """Return the holder for a new card, checked before issuing: a later refusal would leave an unowned card number.

    Raises NotFound. Refuses: customer-not-open, pocket-not-open, pocket-frozen.
    """
    customer = await find_customer(bank.pool, customer_id)
    if customer is None:
        raise NotFound("There is no such customer.")
    require_usable(customer.account_status, await get_pocket(bank.pool, customer_id, pocket_id))
    return customer
