"""Checks of daily roots: pages hash to their root, roots are chained, and leaves are commits of their customers."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from billfold.data_keys.keys import DataKey
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvariantError
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.trees import height_of, leaf_hash, root_of_page, salt_of
from billfold.reports.proofs.roots.types import RETENTION_MIN, CustomerLeaf, DailyRoot, StoredRoot
from billfold.reports.proofs.signatures import (
    ROOT,
    PublicKey,
    RevokedKey,
    Unproven,
    list_public_keys,
    refuse_revoked,
    verify,
)

COUNTED = ("daily_root", "daily_root_page", "daily_root_purge")
_ROOT, _PAGE, _ = COUNTED
_PAGES = """
SELECT tree, height, page_no, tiles, leaves FROM daily_root_page WHERE number = $1 ORDER BY tree, height, page_no
"""
_LEAVES = "SELECT height, page_no, tiles, leaves FROM daily_root_page WHERE number = $1 AND leaves IS NOT NULL"
_COMMITS = """
WITH c AS MATERIALIZED (
  SELECT c.customer_id, c.version, c.hash FROM unnest($1::uuid[], $2::bigint[]) AS w (customer_id, version)
    JOIN chain_entry c USING (customer_id, version) WHERE c.customer_id = ANY($1::uuid[]))
SELECT w.customer_id FROM unnest($1::uuid[], $2::bigint[], $3::bytea[]) AS w (customer_id, version, hash)
 WHERE w.version > 0 AND NOT EXISTS (SELECT 1 FROM c
   WHERE c.customer_id = w.customer_id AND c.version = w.version AND c.hash = w.hash)
"""
_TILE: Final = 33
_ROOTS_MAX: Final = 100_000


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Verify every published root, oldest first."""
    keys, purged = await list_public_keys(conn), await store.list_purged(conn)
    number, previous = 0, ""
    while roots := await store.list_roots(conn, number):
        for root in roots:
            signed = _check_signature(findings, root, keys, follows=(number, previous))
            if signed is not None and root.number not in purged:
                await _check_pages(conn, findings, root, signed=signed)
            elif signed is not None and purged[root.number] < signed.taken_at + RETENTION_MIN:
                key = {"number": root.number}
                findings.add(_ROOT, key, "its pages were removed before their time", certainty=Certainty.MISSING)
            number, previous = root.number, hashlib.sha256(root.jws.encode()).hexdigest()
    for day, reason in await store.list_refusals(conn):
        findings.add(
            "daily_root_refusal", {"day": day}, f"nothing was published: {reason}", certainty=Certainty.SUSPECT
        )


def _check_signature(
    findings: Findings, root: StoredRoot, keys: Sequence[PublicKey], *, follows: tuple[int, str]
) -> DailyRoot | None:
    """Return the signed content if the signature is valid."""
    key, (number, previous) = {"number": root.number}, follows
    try:
        signed, key_id = verify(root.jws, keys, ROOT, DailyRoot)
    except Unproven as unproven:
        findings.add(_ROOT, key, str(unproven), certainty=Certainty.CHANGED)
        return None
    try:
        refuse_revoked(keys, key_id, signed.taken_at)
    except RevokedKey as revoked:
        findings.add(_ROOT, key, str(revoked), certainty=Certainty.SUSPECT)
    if (signed.number, signed.day, signed.previous) != (number + 1, root.day, previous):
        findings.add(_ROOT, key, "it does not follow the root before it", certainty=Certainty.CHANGED)
    return signed


async def _check_pages(conn: Connection, findings: Findings, root: StoredRoot, *, signed: DailyRoot) -> None:
    lengths = {store.CUSTOMERS: signed.customers.count, **{name: line.length for name, line in signed.bills.items()}}
    expected = {store.CUSTOMERS: signed.customers.root, **{name: line.root for name, line in signed.bills.items()}}
    below: dict[tuple[str, int, int], bytes] = {}
    async for page in conn.cursor(_PAGES, root.number, timeout=STATEMENT_TIMEOUT_SECONDS):
        tree, height, page_no = page["tree"], page["height"], page["page_no"]
        key = {"number": root.number, "tree": tree, "height": height, "page_no": page_no}
        computed = root_of_page(page["tiles"])
        is_top = height >= height_of(lengths.get(tree, 0))
        if not _has_pages_below(page, below) or (is_top and computed.hex() != expected.get(tree)):
            findings.add(_PAGE, key, "its hashes do not lead to the root that was signed", certainty=Certainty.CHANGED)
        below[tree, height, page_no] = computed
        if page["leaves"] is not None:
            await _check_leaves(conn, findings, key, page["leaves"])
    for tree in expected.keys() - {tree for tree, _, _ in below}:
        findings.add(_PAGE, {"number": root.number, "tree": tree}, "the tree is missing", certainty=Certainty.MISSING)


def _has_pages_below(page: Any, below: dict[tuple[str, int, int], bytes]) -> bool:  # noqa: ANN401 - a record
    """Return whether every tile that stands for a page has its hash; checked pages are removed from `below`."""
    begins, tiles, lower = page["page_no"] << page["height"], page["tiles"], page["height"] - 8
    for at in range(0, len(tiles), _TILE):
        if tiles[at] == lower:
            known = below.pop((page["tree"], lower, begins >> lower), None)
            if known is not None and known != tiles[at + 1 : at + _TILE]:
                return False
        begins += 1 << tiles[at]
    return True


async def _check_leaves(conn: Connection, findings: Findings, key: dict[str, object], text: bytes) -> None:
    try:
        leaves = [msgspec.json.decode(each, type=CustomerLeaf) for each in text.split(b"\n")]
    except msgspec.MsgspecError:
        findings.add(_PAGE, key, "its leaves cannot be read", certainty=Certainty.CHANGED)
        return
    columns = ([each.customer for each in leaves], [each.version for each in leaves])
    for row in await conn.fetch(_COMMITS, *columns, [bytes.fromhex(each.chain) for each in leaves]):
        message = f"no commit of customer {row['customer_id']} has the hash of its leaf"
        findings.add(_PAGE, key, message, certainty=Certainty.CHANGED)


async def check_opened(conn: Connection, findings: Findings, bank_key: DataKey) -> None:
    """Compare the leaves of customers with the signed hashes."""
    for root in await store.list_roots(conn, limit=_ROOTS_MAX):
        try:
            secret = bank_key.open(root.secret, store.secret_place(root.day))
        except InvariantError as error:
            findings.add(_ROOT, {"number": root.number}, str(error), certainty=Certainty.CHANGED)
            continue
        async for page in conn.cursor(_LEAVES, root.number, timeout=STATEMENT_TIMEOUT_SECONDS):
            leaves = page["leaves"].split(b"\n")
            expected = [page["tiles"][at + 1 : at + _TILE] for at in range(0, _TILE * len(leaves), _TILE)]
            if [_hash_of(secret, each) for each in leaves] != expected:
                key = {"number": root.number, "tree": store.CUSTOMERS}
                key |= {"height": page["height"], "page_no": page["page_no"]}
                findings.add(_PAGE, key, "its leaves are not those that were signed", certainty=Certainty.CHANGED)


def _hash_of(secret: bytes, leaf: bytes) -> bytes:
    try:
        customer_id = msgspec.json.decode(leaf, type=CustomerLeaf).customer
    except msgspec.MsgspecError:
        return b""
    return leaf_hash(salt_of(secret, customer_id), leaf)
