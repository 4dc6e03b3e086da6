"""A book as one value: what the head of a customer carries so that nothing else need be read.

The tables stay the truth. The image is written by the same statement that moves the head on, so it
is always that of the head's version; `verify` proves that both say the same. A head without one,
or with one of another layout, is loaded from the tables.
"""

from __future__ import annotations

from uuid import UUID
from zlib import crc32

import msgspec
from asyncpg.pgproto import pgproto

from billfold.accounts.directory.types import CustomerStatus
from billfold.ledger.book.book import Book
from billfold.ledger.book.holdings import Account, PocketBook

LAYOUT = 2
"""Goes up with every change of the fields below, of `Account`, `Lot` or `PocketBook`."""
_CHECKSUM = 4


class BookImage(msgspec.Struct, array_like=True, eq=False):
    """All of a book but its head, its names and its draft."""

    layout: int
    partner_id: UUID | None
    name: str
    account_status: CustomerStatus
    role: str
    pockets: list[PocketBook]
    house: list[Account]


_encode = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_decode = msgspec.msgpack.Decoder(BookImage).decode


def image_of(book: Book) -> bytes:
    """Return the image of a book as it is when its draft has been written.

    A CRC-32 (4 bytes) stands before it. Liens that have run out by the book's time are left out.
    """
    pockets = list(book.pockets.values())
    for pocket in pockets:
        if pocket.liens:
            pocket.liens = [lien for lien in pocket.liens if lien[1] > book.booked_at]
    encoded = _encode(
        BookImage(
            LAYOUT, book.partner_id, book.name, book.account_status, book.role, pockets,
            list(book.house.values()),
        )
    )  # fmt: skip
    return crc32(encoded).to_bytes(_CHECKSUM) + encoded


def is_whole(raw: bytes) -> bool:
    """Is this image as it was written?"""
    return crc32(raw[_CHECKSUM:]).to_bytes(_CHECKSUM) == raw[:_CHECKSUM]


def read_image(raw: bytes | None) -> BookImage | None:
    """Return the image, or None where there is none that this code can read."""
    if not raw or not is_whole(raw):
        return None
    try:
        image = _decode(raw[_CHECKSUM:])
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return image if image.layout == LAYOUT else None


def hang(book: Book, image: BookImage) -> None:
    """Fill a book with what its image shows."""
    if image.partner_id is not None:
        book.partner_id = pgproto.UUID(image.partner_id.bytes)
    book.name, book.account_status, book.role = image.name, image.account_status, image.role
    for account in image.house:
        book.house[account.kind, account.asset] = account
    for pocket in image.pockets:
        # The driver's own UUIDs are told apart several times as fast.
        pocket.pocket_id = pgproto.UUID(pocket.pocket_id.bytes)
        pocket.partner_id = pgproto.UUID(pocket.partner_id.bytes)
        book.pockets[pocket.pocket_id] = pocket
