"""Daily roots as published, the leaves of customers, and proofs."""

from collections.abc import MutableSequence, Sequence
from datetime import date, datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.data_keys.data_key import DataKey
from billfold.reports.proofs.signatures import DocumentKey

RETENTION_MIN: Final = timedelta(days=30)
"""How long at least proofs can be made of a root."""


class CustomersLine(msgspec.Struct, frozen=True):
    """The tree of all customers: how many there are, and its root in hex."""

    count: int
    root: str


class BillLine(msgspec.Struct, frozen=True):
    """The tree of one bill, a leaf for the units of each customer: whose are at most those that there are.

    `at_custodian` is what the custodian holds; `to_receive` what was bought and is not settled, less what was sold.
    """

    at_custodian: int
    to_receive: int
    lots: int
    root: str

    @property
    def length(self) -> int:
        """Units that may have an owner."""
        return self.at_custodian + self.to_receive


class DailyRoot(msgspec.Struct, frozen=True, kw_only=True):
    """What the bank signs of a day. `previous` is the SHA-256 of the signed root before it, empty for the first."""

    bank: str
    number: int
    day: date
    taken_at: datetime
    previous: str
    customers: CustomersLine
    bills: dict[str, BillLine]


class Holding(msgspec.Struct, frozen=True):
    """Units of a bill, and where in its tree they are: a leaf for each power of two."""

    units: int
    at: tuple[int, ...]


class CustomerLeaf(msgspec.Struct, frozen=True, kw_only=True):
    """What the bank owes a customer: cents of cash, units of bills; and how far its ledger had come.

    `entry_no` is the last journal entry that counts; `version` and `chain` are of the last commit without a later one.
    """

    customer: UUID
    version: int
    entry_no: int
    chain: str
    cash: int
    bills: dict[str, Holding]


class BillLeaf(msgspec.Struct, frozen=True):
    """Units of a bill that are a customer's."""

    bill: str
    customer: UUID
    units: int


class ProvenLeaf(msgspec.Struct, frozen=True):
    """A leaf as it was hashed, where it is, and the sibling hashes on the way up to the root, in hex."""

    leaf: str
    at: int
    path: tuple[str, ...]


class CustomerProof(msgspec.Struct, frozen=True, kw_only=True):
    """What proves that the bank owed a customer its balance at the close of a day: `tools/check_proof.py` checks it."""

    root: str
    salt: str
    customer: ProvenLeaf
    bills: tuple[ProvenLeaf, ...]
    object_type: Literal["DailyProof"] = "DailyProof"


class Head(NamedTuple):
    """How far the ledger of a customer had come."""

    customer_id: UUID
    version: int
    entry_no: int
    chain: bytes


class Owners(NamedTuple):
    """Who owns a bill, by their index among all customers, and how many units."""

    customers: MutableSequence[int]
    units: MutableSequence[int]


class Balances(NamedTuple):
    """What the bank owed each customer at the close of a day, in the order of their ids, in arrays: of millions.

    `held` are the bills of customers, as indexes of `cusips`; a customer's begin at its index in `first_held`.
    """

    customers: Sequence[UUID]
    cash: Sequence[int]
    first_held: Sequence[int]
    held: Sequence[int]
    cusips: Sequence[str]
    owners: Sequence[Owners]


class Page(NamedTuple):
    """A part of a tree: its tiles (a byte for the power of two of their units, 32 for their hash), first to last."""

    height: int
    page_no: int
    tiles: bytes


class StoredRoot(NamedTuple):
    """A signed root, and the sealed secret that its salts derive from."""

    number: int
    day: date
    jws: str
    secret: bytes


class MakingKeys(NamedTuple):
    """What a root is made with: the key that signs it, that of the bank which seals its secret, and the secret."""

    document: DocumentKey
    bank: DataKey
    secret: bytes


class Unbalanced(Exception):
    """More bills are owed than there are: nothing is published. The message says which."""
