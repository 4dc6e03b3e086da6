"""The trees of a day, built of the state of all customers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.reports.proofs.roots.trees import lay_out, leaf_hash, pages_of, salt_of
from billfold.reports.proofs.roots.types import (
    BillLeaf,
    BillLine,
    CustomerLeaf,
    CustomersLine,
    CustomerState,
    Holding,
    Page,
    Unbalanced,
)

encode = msgspec.json.encode


class BuiltTrees(NamedTuple):
    """The trees of a day: their roots, their pages by CUSIP, and the leaves of customers."""

    customers: CustomersLine
    bills: dict[str, BillLine]
    customer_pages: list[Page]
    bill_pages: dict[str, list[Page]]
    leaves: list[tuple[UUID, bytes]]


class _Owner(msgspec.Struct, frozen=True):
    """A customer who holds a bill: its index, what its leaves begin with, salt included, and how many it holds."""

    index: int
    prefix: bytes
    units: int


def build(states: Sequence[CustomerState], available: Mapping[str, tuple[int, int]], secret: bytes) -> BuiltTrees:
    """Return the trees; `available` are units at the custodian and to receive by CUSIP. Raises Unbalanced."""
    salts = [salt_of(secret, each.customer_id) for each in states]
    owners = _owners(states, salts)
    at: list[dict[str, tuple[int, ...]]] = [{} for _ in states]
    lines, bill_pages = {}, {}
    for cusip in sorted(owners.keys() | available.keys()):
        mine, (held, coming) = owners.get(cusip, []), available.get(cusip, (0, 0))
        lots = sum(each.units for each in mine)
        if lots > held + coming:
            raise Unbalanced(
                f"{lots} of {cusip} are owed to customers; the custodian holds {held}, {coming} are to be received."
            )
        root, bill_pages[cusip], places = _bill_tree(mine, held + coming, secret + cusip.encode())
        lines[cusip] = BillLine(held, coming, lots, root.hex())
        for owner, found in zip(mine, places, strict=True):
            at[owner.index][cusip] = found
    leaves = [(state.customer_id, encode(_leaf(state, at[index]))) for index, state in enumerate(states)]
    hashed = [(index, 0, leaf_hash(salts[index], leaf)) for index, (_, leaf) in enumerate(leaves)]
    root, customer_pages = pages_of(hashed, len(states))
    return BuiltTrees(CustomersLine(len(states), root.hex()), lines, customer_pages, bill_pages, leaves)


def _owners(states: Sequence[CustomerState], salts: Sequence[bytes]) -> dict[str, list[_Owner]]:
    found: dict[str, list[_Owner]] = {}
    for index, state in enumerate(states):
        if state.cash < 0 or any(units <= 0 for _, units in state.bills):
            raise Unbalanced(f"The customer {state.customer_id} has a balance below zero.")
        for cusip, units in state.bills:
            prefix = salts[index] + _bill_prefix(cusip, state.customer_id)
            found.setdefault(cusip, []).append(_Owner(index, prefix, units))
    return found


def _bill_tree(owners: Sequence[_Owner], length: int, secret: bytes) -> tuple[bytes, list[Page], list[tuple[int, ...]]]:
    """Return the root of a bill's tree, its pages, and where the units of each owner are, the largest leaf first."""
    free_salt = hashlib.sha256(secret).digest()
    hashed: list[tuple[int, int, bytes]] = []
    places: list[list[tuple[int, int]]] = [[] for _ in owners]
    for begins, power, owner in lay_out([each.units for each in owners], length, secret):
        if owner >= 0:
            places[owner].append((-power, begins))
            leaf = leaf_hash(owners[owner].prefix, b"%d}" % (1 << power))
        else:
            leaf = leaf_hash(free_salt, b"%d %d" % (begins, power))
        hashed.append((begins, power, leaf))
    root, pages = pages_of(hashed, length)
    return root, pages, [tuple(begins for _, begins in sorted(each)) for each in places]


def _leaf(state: CustomerState, at: Mapping[str, tuple[int, ...]]) -> CustomerLeaf:
    return CustomerLeaf(
        customer=state.customer_id,
        version=state.version,
        entry_no=state.entry_no,
        chain=state.chain.hex(),
        cash=state.cash,
        bills={cusip: Holding(units, at[cusip]) for cusip, units in state.bills},
    )


def _bill_prefix(cusip: str, customer_id: UUID) -> bytes:
    """Return a leaf of a bill up to its units."""
    return encode(BillLeaf(cusip, customer_id, 0)).removesuffix(b"0}")
