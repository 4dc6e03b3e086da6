"""Daily roots as published, the leaves of customers, and proofs."""

from collections.abc import MutableSequence, Sequence
from datetime import date, datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKey
from billfold.reports.proofs.signatures import DocumentKey

RETENTION_MIN: Final = timedelta(days=30)
"""Minimum time for which proofs can be made from a root."""


class CustomersLine(msgspec.Struct, frozen=True):
    """The tree of all customers: their number, and the root in hex."""

    count: int
    root: str


class BillLine(msgspec.Struct, frozen=True):
    """The tree of one bill, with a leaf for each customer's units, which are at most those available.

    `at_custodian` is held by the custodian; `to_receive` is bought and not settled, less sold.
    """

    at_custodian: int
    to_receive: int
    lots: int
    root: str

    @property
    def length(self) -> int:
        """Number of units that can have an owner."""
        return self.at_custodian + self.to_receive


class DailyRoot(msgspec.Struct, frozen=True, kw_only=True):
    """The signed content of a day's root. `previous` is the SHA-256 of the root before it, empty for the first."""

    bank: str
    number: int
    day: date
    taken_at: datetime
    previous: str
    customers: CustomersLine
    bills: dict[str, BillLine]


class Holding(msgspec.Struct, frozen=True):
    """Units of a bill, and their positions in its tree: a leaf for each power of two."""

    units: int
    at: tuple[int, ...]


class CustomerLeaf(msgspec.Struct, frozen=True, kw_only=True):
    """The bank's liabilities to a customer: cents of cash and units of bills, and its ledger head.

    `entry_no` is the last journal entry included; `version` and `chain` are of the last commit that has no later entry.
    """

    customer: UUID
    version: int
    entry_no: int
    chain: str
    cash: int
    bills: dict[str, Holding]


class BillLeaf(msgspec.Struct, frozen=True):
    """A customer's units of a bill."""

    bill: str
    customer: UUID
    units: int


class ProvenLeaf(msgspec.Struct, frozen=True):
    """A leaf as it was hashed, where it is, and the sibling hashes on the way up to the root, in hex."""

    leaf: str
    at: int
    path: tuple[str, ...]


class CustomerProof(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that the bank owed a customer its balance at the close of a day: `tools/check_proof.py` checks it."""

    root: str
    salt: str
    customer: ProvenLeaf
    bills: tuple[ProvenLeaf, ...]
    object_type: Literal["DailyProof"] = "DailyProof"


class Head(NamedTuple):
    """The ledger head of a customer at the close."""

    customer_id: UUID
    version: int
    entry_no: int
    chain: bytes


class Owners(NamedTuple):
    """The owners of a bill, as indexes into all customers, and their units."""

    customers: MutableSequence[int]
    units: MutableSequence[int]


class Balances(NamedTuple):
    """Liabilities to each customer at the close of a day, in the order of their ids, in arrays for millions.

    `held` are the customers' bills, as indexes into `cusips`; those of a customer begin at its index in `first_held`.
    """

    customers: Sequence[UUID]
    cash: Sequence[int]
    first_held: Sequence[int]
    held: Sequence[int]
    cusips: Sequence[str]
    owners: Sequence[Owners]


class Page(NamedTuple):
    """A part of a tree: its tiles (a byte for the size as a power of two, 32 for the hash), first to last."""

    height: int
    page_no: int
    tiles: bytes


class StoredRoot(NamedTuple):
    """A signed root, and the sealed secret from which its salts are derived."""

    number: int
    day: date
    jws: str
    secret: bytes


class MakingKeys(NamedTuple):
    """The keys for a root: the signing key, the bank's key that seals the secret, and the secret."""

    document: DocumentKey
    bank: DataKey
    secret: bytes


class Unbalanced(Exception):
    """More bills are owed than available: nothing is published. The message gives the details."""
