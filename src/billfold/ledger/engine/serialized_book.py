"""A book as one value: what the head of a customer carries so that nothing else need be read.

The tables stay the truth. The image is written by the same statement that moves the head on, so it
is always that of the head's version; `verify` proves that both say the same. A head without one,
or with one of another layout, is loaded from the tables.
"""

from functools import lru_cache
from uuid import UUID
from zlib import crc32

import msgspec
from asyncpg.pgproto import pgproto

from billfold.ledger.book.book import Book
from billfold.ledger.book.holdings import HOLDS_KEPT, Account, PocketBook
from billfold.ledger.directory.types import CustomerStatus
from billfold.ledger.types import DERIVED_BALANCES

SERIALIZATION_VERSION = 5
"""Goes up with every change of the fields below, of `Account`, `Lot` or `PocketBook`."""
_CHECKSUM_BYTES = 4
_PARTNERS_MAX = 1_000


class SerializedBook(msgspec.Struct, array_like=True, eq=False):
    """All of a book but its head, its names and its draft."""

    layout: int
    partner_id: UUID | None
    name: str
    account_status: CustomerStatus
    role: str
    agreement_version: str | None
    pockets: list[PocketBook]
    house: list[Account]


_encode = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_decode = msgspec.msgpack.Decoder(SerializedBook).decode


def serialize_book(book: Book) -> bytes:
    """Return a book as it is when its draft has been written, after a CRC-32 (4 bytes).

    Holds that have expired by the book's time are left out, and balances that no row keeps.
    """
    pockets = list(book.pockets.values())
    for pocket in pockets:
        if pocket.liens:
            pocket.liens = [lien for lien in pocket.liens if lien[1] > book.booked_at - HOLDS_KEPT]
    for account in book.house.values():
        if account.kind in DERIVED_BALANCES:
            account.balance = 0
    encoded = _encode(
        SerializedBook(
            SERIALIZATION_VERSION,
            book.partner_id,
            book.name,
            account_status=book.account_status,
            role=book.role,
            agreement_version=book.agreement_version,
            pockets=pockets,
            house=list(book.house.values()),
        )
    )
    return crc32(encoded).to_bytes(_CHECKSUM_BYTES) + encoded


def is_intact(raw: bytes) -> bool:
    """Is this image as it was written?"""
    return crc32(raw[_CHECKSUM_BYTES:]).to_bytes(_CHECKSUM_BYTES) == raw[:_CHECKSUM_BYTES]


def deserialize_book(raw: bytes | None) -> SerializedBook | None:
    """Return the image, or None where there is none that this code can read."""
    if not raw or not is_intact(raw):
        return None
    try:
        serialized = _decode(raw[_CHECKSUM_BYTES:])
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return serialized if serialized.layout == SERIALIZATION_VERSION else None


def restore_book(book: Book, serialized: SerializedBook) -> None:
    """Fill a book with what its image shows."""
    if serialized.partner_id is not None:
        book.partner_id = _partner_id(serialized.partner_id)
    book.name, book.account_status, book.role = (serialized.name, serialized.account_status, serialized.role)
    book.agreement_version = serialized.agreement_version
    for account in serialized.house:
        book.house[account.kind + account.asset] = account
    for pocket in serialized.pockets:
        # The driver's own UUIDs compare several times as fast.
        pocket.pocket_id = pgproto.UUID(pocket.pocket_id.bytes)
        pocket.partner_id = _partner_id(pocket.partner_id)
        book.pockets[pocket.pocket_id] = pocket


@lru_cache(_PARTNERS_MAX)
def _partner_id(partner_id: UUID) -> UUID:
    """The id as the driver has it: one for all books of a partner."""
    return pgproto.UUID(partner_id.bytes)
