"""What the bank signs about a document, and the keys that it signs with."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from billfold.reports.entries.types import LedgerPosition


class Figure(msgspec.Struct, frozen=True, array_like=True):
    """A figure as the document shows it: "Closing value" and "12,345.76"."""

    label: str
    value: str


class NamedPocket(msgspec.Struct, frozen=True):
    """A Pocket that a document is about."""

    id: UUID
    name: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says, without its layout.

    `document` names it ("Brokerage statement for October 2026"), `at` is the moment of its balances. `figures` are all
    that it shows, in the order in which it shows them, so that a changed one can be named.
    """

    bank: str
    document: str
    customer_id: UUID
    customer: str
    pockets: tuple[NamedPocket, ...]
    at: datetime
    position: LedgerPosition
    figures: tuple[Figure, ...]


class SignedBytes(msgspec.Struct, frozen=True, kw_only=True):
    """A file without the proof in it: its SHA-256 in hex, and of a text 6 bytes of that of every few lines."""

    sha256: str
    lines_per_mark: int = 0
    marks: str = ""


class SignedManifest(msgspec.Struct, frozen=True):
    """The payload of the signature of a document."""

    manifest: Manifest
    content: SignedBytes


class PublicKey(NamedTuple):
    """A key of the bank that signatures are checked with; its id is its thumbprint (RFC 7638).

    What is of `revoked_at` or later, and signed with it, is not the bank's.
    """

    key_id: str
    key: Ed25519PublicKey
    revoked_at: datetime | None = None


class DocumentKey(NamedTuple):
    """A key that signs from an instant of the business clock on, until the next one does."""

    key_id: str
    active_at: datetime
    private: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        """What its signatures are checked with."""
        return PublicKey(self.key_id, self.private.public_key())
