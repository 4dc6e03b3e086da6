"""The trees of a day: the leaves of what customers own, hashed where they are."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.reports.proofs.roots.pages import pages_of
from billfold.reports.proofs.roots.places import Layout, lay_out, one_each
from billfold.reports.proofs.roots.trees import leaf_hash, salt_of
from billfold.reports.proofs.roots.types import (
    Balances,
    BillLeaf,
    CustomerLeaf,
    Head,
    Holding,
    Page,
    Unbalanced,
)

CUSTOMERS_PER_BLOCK = 1 << 16
_sha256 = hashlib.sha256
_encode = msgspec.json.encode
_CUSTOMER_PAGE, _BILL_PAGE = 8, 16
_BILL_NODES = 64
"""How many pages are above those of bills that are made at a time."""


class GrownBill(NamedTuple):
    """The tree of a bill: where its units are, and its pages, of which the top is the last."""

    layout: Layout
    pages: Sequence[Page]


def check_covered(balances: Balances, available: Mapping[str, tuple[int, int]]) -> None:
    """Raise Unbalanced if more of a bill is owed than there is: units at the custodian, and to receive."""
    for cusip, owners in zip(balances.cusips, balances.owners, strict=True):
        owed, (held, coming) = sum(owners.units), available.get(cusip, (0, 0))
        if owed > held + coming:
            raise Unbalanced(
                f"{owed} of {cusip} are owed to customers; the custodian holds {held}, {coming} are to be received."
            )


def grow_bill(cusip: str, customers: Sequence[bytes], units: Sequence[int], *, length: int, secret: bytes) -> GrownBill:
    """Return the tree over so many units of a bill; those of customers by their ids."""
    layout = lay_out(units, length, secret + cusip.encode())
    hashes: list[bytes] = []
    for id_bytes, owned in zip(customers, units, strict=True):
        customer_id, left = UUID(bytes=id_bytes), owned
        prefix = b"\x00" + salt_of(secret, customer_id) + _bill_prefix(cusip, customer_id)
        while left:
            size = 1 << left.bit_length() - 1
            hashes.append(_sha256(prefix + b"%d}" % size).digest())
            left -= size
    free_salt = hashlib.sha256(secret + cusip.encode()).digest()
    for begins, power in layout.free:
        hashes.append(leaf_hash(free_salt, b"%d %d" % (begins, power)))
    pages = pages_of(layout, hashes.__getitem__, level=_BILL_PAGE, count=_BILL_NODES)
    return GrownBill(layout._replace(levels=(), split_at={}, free=()), [page for each in pages for page in each])


class CustomersTree:
    """The tree of all customers, whose heads come in blocks of `CUSTOMERS_PER_BLOCK`, the last one shorter."""

    def __init__(self, balances: Balances, layouts: Sequence[Layout], secret: bytes) -> None:
        self._balances, self._layouts, self._secret = balances, layouts, secret
        self._next = [0] * len(layouts)
        self._index = 0
        self._hashes: list[bytes] = []
        self._first = 0
        layout = one_each(len(balances.customers))
        blocks = CUSTOMERS_PER_BLOCK >> _CUSTOMER_PAGE
        self._pages = pages_of(layout, self._hash_of, level=_CUSTOMER_PAGE, count=blocks)

    def add(self, heads: Sequence[Head]) -> tuple[list[tuple[UUID, bytes]], list[Page]]:
        """Return the leaves of the next customers and their pages: none of a tree that has but one."""
        leaves = [(head.customer_id, _encode(self._leaf(head))) for head in heads]
        self._first += len(self._hashes)
        self._hashes = [leaf_hash(salt_of(self._secret, each), leaf) for each, leaf in leaves]
        return leaves, next(self._pages)

    def close(self) -> list[Page]:
        """Return the pages above; the top is the last."""
        return next(self._pages, [])

    def _hash_of(self, leaf: int) -> bytes:
        return self._hashes[leaf - self._first]

    def _leaf(self, head: Head) -> CustomerLeaf:
        balances, index = self._balances, self._index
        self._index += 1
        if balances.customers[index] != head.customer_id:
            raise Unbalanced(f"The customer {head.customer_id} has no balance of its own.")
        bills = {}
        for number in balances.held[balances.first_held[index] : balances.first_held[index + 1]]:
            layout, owner = self._layouts[number], self._next[number]
            self._next[number] += 1
            at = layout.places[layout.firsts[owner] : layout.firsts[owner + 1]]
            bills[balances.cusips[number]] = Holding(balances.owners[number].units[owner], tuple(at))
        return CustomerLeaf(
            customer=head.customer_id,
            version=head.version,
            entry_no=head.entry_no,
            chain=head.chain.hex(),
            cash=balances.cash[index],
            bills=bills,
        )


def _bill_prefix(cusip: str, customer_id: UUID) -> bytes:
    """Return a leaf of a bill up to its units."""
    return _encode(BillLeaf(cusip, customer_id, 0)).removesuffix(b"0}")
