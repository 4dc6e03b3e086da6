"""The proof of one customer out of the stored pages."""

from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.platform.database.connection import Db
from billfold.platform.errors import InvariantError, NotFound
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.trees import Nodes, height_of, nodes_of, pages_above, salt_of, way_up
from billfold.reports.proofs.roots.types import BillLeaf, CustomerLeaf, CustomerProof, DailyRoot, ProvenLeaf, StoredRoot
from billfold.reports.proofs.signatures import payload_of

Place = tuple[str, int, int, int, str]
"""A tree, its height, where a leaf begins, the power of two of its units, and its text."""


async def prove_customer(conn: Db, bank: Bank, root: StoredRoot, customer_id: UUID) -> CustomerProof:
    """Return the proof of a customer's balance. Raises NotFound for one who was not there, or of a day long ago."""
    found = await store.find_leaf(conn, root.number, customer_id)
    if found is None:
        raise await _gone(conn, root) or NotFound("The customer was not there on that day.")
    index, text = found
    signed = payload_of(root.jws, DailyRoot)
    leaf = msgspec.json.decode(text, type=CustomerLeaf)
    places = [(store.CUSTOMERS, height_of(signed.customers.count), index, 0, text.decode()), *_places(leaf, signed)]
    wanted = {(tree, *each) for tree, height, at, power, _ in places for each in pages_above(at, power, height)}
    kept = await store.read_pages(conn, root.number, wanted)
    pages = {key: nodes_of(tiles, key[2] << key[1]) for key, tiles in kept.items()}
    try:
        proven = [_prove(place, pages) for place in places]
    except KeyError as missing:
        gone = await _gone(conn, root)
        raise gone or InvariantError("A page of a daily root is missing.", page=missing.args[0]) from None
    bank_id, place = bank_customer_id(bank.seed), store.secret_place(root.day)
    secret = await bank.ports[DataKeys].open(conn, bank_id, root.secret, place)
    salt = salt_of(secret, customer_id).hex()
    return CustomerProof(root=root.jws, salt=salt, customer=proven[0], bills=tuple(proven[1:]))


async def _gone(conn: Db, root: StoredRoot) -> NotFound | None:
    if root.number in await store.list_purged(conn):
        return NotFound(f"Proofs of {root.day} are no longer kept; its signed root is.")
    return None


def _places(leaf: CustomerLeaf, signed: DailyRoot) -> list[Place]:
    found: list[Place] = []
    for cusip, held in leaf.bills.items():
        height = height_of(signed.bills[cusip].length)
        powers = [each for each in range(held.units.bit_length() - 1, -1, -1) if held.units >> each & 1]
        for power, at in zip(powers, held.at, strict=True):
            text = msgspec.json.encode(BillLeaf(cusip, leaf.customer, 1 << power)).decode()
            found.append((cusip, height, at, power, text))
    return found


def _prove(place: Place, pages: dict[tuple[str, int, int], Nodes]) -> ProvenLeaf:
    tree, height, at, power, text = place
    crossed = [pages[tree, *each] for each in pages_above(at, power, height)]
    path = way_up(at, power, height, pages=crossed)
    return ProvenLeaf(text, at, tuple(each.hex() for each in path))
