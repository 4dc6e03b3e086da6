"""Signed roots and the pages of their trees; the state of all customers, read from one snapshot."""

from array import array
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.ledger.book.book import USD
from billfold.platform.crypto import associated_data
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.errors import InvariantError, NotFound
from billfold.reports.proofs.roots import types
from billfold.reports.proofs.roots.trees import Nodes, height_of, nodes_of, pages_above, salt_of, way_up
from billfold.reports.proofs.roots.types import StoredRoot
from billfold.reports.proofs.signatures import payload_of

CUSTOMERS: Final = "customers"
"""The name of the tree of customers; trees of bills are named by CUSIP."""
_LOOKBACK: Final = timedelta(days=30)
"""Maximum age of unsettled trades."""
_LATE = """
SELECT h.customer_id, coalesce(e.entry_no, 0) AS entry_no
  FROM ledger_head h
  LEFT JOIN LATERAL (SELECT entry_no FROM journal_entry j WHERE j.customer_id = h.customer_id AND j.business_date <= $1
                      ORDER BY entry_no DESC LIMIT 1) e ON true
 WHERE h.booked_at >= $2 AND h.entry_no > coalesce(e.entry_no, 0)
"""
_CUSTOMERS = "SELECT customer_id FROM customer WHERE role <> 'house' AND opened_at < $1 ORDER BY customer_id"
_BALANCES = """
SELECT customer_id, asset, sum(amount)::bigint AS amount FROM (
  SELECT customer_id, asset, credits - debits AS amount FROM account
   WHERE kind = ANY ($1) AND credits <> debits
  UNION ALL
  SELECT p.customer_id, p.asset, p.amount
    FROM unnest($2::uuid[], $3::bigint[]) AS late (customer_id, entry_no)
    JOIN posting p ON p.customer_id = late.customer_id AND p.entry_no > late.entry_no AND p.phase = 0
    JOIN account a ON a.customer_id = p.customer_id AND a.account_no = p.debit
   WHERE a.kind = ANY ($1)
  UNION ALL
  SELECT p.customer_id, p.asset, -p.amount
    FROM unnest($2::uuid[], $3::bigint[]) AS late (customer_id, entry_no)
    JOIN posting p ON p.customer_id = late.customer_id AND p.entry_no > late.entry_no AND p.phase = 0
    JOIN account a ON a.customer_id = p.customer_id AND a.account_no = p.credit
   WHERE a.kind = ANY ($1)) each
 GROUP BY customer_id, asset HAVING sum(amount) <> 0
"""
_HEADS = """
SELECT h.customer_id, CASE WHEN late.customer_id IS NULL THEN h.version ELSE last.version END,
       coalesce(late.entry_no, h.entry_no),
       CASE WHEN late.customer_id IS NULL THEN h.chain ELSE last.hash END
  FROM ledger_head h JOIN customer c USING (customer_id)
  LEFT JOIN unnest($2::uuid[], $3::bigint[]) AS late (customer_id, entry_no) USING (customer_id)
  LEFT JOIN LATERAL (SELECT version, hash FROM chain_entry e
                      WHERE e.customer_id = h.customer_id AND e.entry_no <= late.entry_no
                      ORDER BY version DESC LIMIT 1) last ON true
 WHERE c.role <> 'house' AND c.opened_at < $1 ORDER BY h.customer_id
"""
_TO_RECEIVE = """
SELECT cusip, sum(units)::bigint AS units FROM (
  SELECT cusip, CASE activity WHEN 'BUY' THEN units ELSE -units END AS units FROM trade
   WHERE settles_on >= $1 AND book_date <= $2 AND activity IN ('BUY', 'SELL', 'MATURITY')
  UNION ALL
  SELECT cusip, CASE side WHEN 'BUY' THEN -units ELSE units END FROM settlement
   WHERE settles_on >= $1 AND closed_on <= $2) each
 GROUP BY cusip
"""
_BALANCES_IN_ORDER = f"{_BALANCES} ORDER BY customer_id, asset"
_CUSTODIAN = f"SELECT asset, -sum(amount)::bigint AS units FROM ({_BALANCES}) each GROUP BY asset"
_OWED, _AT_CUSTODIAN = ["lot", "cash"], ["custodian"]
# What the custodian has still to receive from dealers, and to redeem.
_IN_TRANSIT = "SELECT DISTINCT kind FROM account WHERE kind LIKE 'dealer:%' OR kind = 'redemptions'"
_ROWS: Final = 10_000
_SECONDS_MAX: Final = 600
_ROOT = "SELECT number, day, jws, secret FROM daily_root"
_NEW_ROOT = "INSERT INTO daily_root (number, day, jws, secret, made_at) VALUES ($1, $2, $3, $4, $5)"
_REFUSED = """
INSERT INTO daily_root_refusal (day, reason, refused_at) VALUES ($1, $2, $3)
ON CONFLICT (day) DO UPDATE SET reason = excluded.reason, refused_at = excluded.refused_at
"""
_LIST_REFUSED = """
SELECT day, reason FROM daily_root_refusal r
 WHERE NOT EXISTS (SELECT 1 FROM daily_root d WHERE d.day >= r.day) ORDER BY day
"""
_PURGE = """
INSERT INTO daily_root_purge (number, purged_at)
SELECT number, $2 FROM daily_root r
 WHERE made_at < $1 AND NOT EXISTS (SELECT 1 FROM daily_root_purge p WHERE p.number = r.number)
"""
_PURGE_PAGES = """
DELETE FROM daily_root_page WHERE (number, tree, height, page_no) IN (
  SELECT number, tree, height, page_no FROM daily_root_page JOIN daily_root_purge USING (number) LIMIT $1)
"""
_LIST_PURGED = "SELECT number, purged_at FROM daily_root_purge"
_PAGE_OF = """
SELECT page_no, leaves FROM daily_root_page
 WHERE number = $1 AND first_customer_id <= $2 ORDER BY first_customer_id DESC LIMIT 1
"""
_PAGES = """
SELECT p.tree, p.height, p.page_no, p.tiles
  FROM unnest($2::text[], $3::int[], $4::bigint[]) AS w (tree, height, page_no)
  JOIN daily_root_page p USING (tree, height, page_no) WHERE p.number = $1
"""
_PAGE_COLUMNS = ("number", "tree", "height", "page_no", "tiles", "leaves", "first_customer_id")


class Close(NamedTuple):
    """The close of a business day as read: customers with entries of later days, and their last entry of this one."""

    day: date
    at: datetime
    late: tuple[list[UUID], list[int]]


async def read_close(conn: Connection, day: date, at: datetime) -> Close:
    """Return the close of a day. Read its data in the same transaction, with one snapshot."""
    rows = await conn.fetch(_LATE, day, at, timeout=_SECONDS_MAX)
    return Close(day, at, ([row["customer_id"] for row in rows], [row["entry_no"] for row in rows]))


async def read_balances(conn: Connection, close: Close) -> types.Balances:
    """Return the bank's liabilities to customers. Raises Unbalanced for a negative one, or an unknown customer."""
    customers = [row[0] for row in await conn.fetch(_CUSTOMERS, close.at, timeout=_SECONDS_MAX)]
    cash, first_held, held = array("q", bytes(8 * len(customers))), array("q", [0]), array("H")
    number_of: dict[str, int] = {}
    owners: list[types.Owners] = []
    index = 0
    rows = conn.cursor(_BALANCES_IN_ORDER, _OWED, *close.late, prefetch=_ROWS, timeout=_SECONDS_MAX)
    async for customer_id, asset, amount in rows:
        while index < len(customers) and customers[index] < customer_id:
            index += 1
            first_held.append(len(held))
        if amount < 0 or index == len(customers) or customers[index] != customer_id:
            raise types.Unbalanced(f"The customer {customer_id} has {amount} of {asset}: below zero, or not there.")
        if asset == USD:
            cash[index] = amount
            continue
        number = number_of.setdefault(asset, len(owners))
        if number == len(owners):
            owners.append(types.Owners(array("i"), array("q")))
        held.append(number)
        owners[number].customers.append(index)
        owners[number].units.append(amount)
    first_held.extend([len(held)] * (len(customers) - index))
    return types.Balances(customers, cash, first_held, held, [*number_of], owners)


async def read_bills(conn: Connection, close: Close) -> dict[str, tuple[int, int]]:
    """Return by CUSIP the units that the custodian held, and those that unsettled trades will bring."""
    rows = await conn.fetch(_CUSTODIAN, _AT_CUSTODIAN, *close.late, timeout=_SECONDS_MAX)
    held = {row["asset"]: row["units"] for row in rows}
    rows = await conn.fetch(_TO_RECEIVE, close.day - _LOOKBACK, close.day, timeout=_SECONDS_MAX)
    coming = Counter[str]({row["cusip"]: row["units"] for row in rows})
    kinds = [kind for (kind,) in await conn.fetch(_IN_TRANSIT)]
    for row in await conn.fetch(_CUSTODIAN, kinds, *close.late, timeout=_SECONDS_MAX):
        coming[row["asset"]] += row["units"]
    both = {cusip: (held.get(cusip, 0), coming.get(cusip, 0)) for cusip in sorted(held.keys() | coming.keys())}
    return {cusip: units for cusip, units in both.items() if any(units) and cusip != USD}


async def read_heads(conn: Connection, close: Close, count: int) -> AsyncIterator[list[types.Head]]:
    """Yield the ledger heads of up to `count` customers at a time, in the order of their ids."""
    cursor = await conn.cursor(_HEADS, close.at, *close.late, timeout=_SECONDS_MAX)
    while rows := await cursor.fetch(count, timeout=_SECONDS_MAX):
        yield [types.Head(*row) for row in rows]


async def find_root(conn: Db, day: date | None = None) -> StoredRoot | None:
    """Return the root of a day, or the latest."""
    row = await conn.fetchrow(f"{_ROOT} WHERE $1::date IS NULL OR day = $1 ORDER BY number DESC LIMIT 1", day)
    return None if row is None else StoredRoot(*row)


async def list_roots(conn: Db, after: int = 0, *, limit: int = 1000) -> list[StoredRoot]:
    """Return the roots after a number, oldest first."""
    rows = await conn.fetch(f"{_ROOT} WHERE number > $1 ORDER BY number LIMIT $2", after, limit)
    return [StoredRoot(*row) for row in rows]


async def list_roots_since(conn: Db, made_at: datetime) -> list[StoredRoot]:
    """Return the roots made at or after an instant, oldest first."""
    return [StoredRoot(*row) for row in await conn.fetch(f"{_ROOT} WHERE made_at >= $1 ORDER BY number", made_at)]


async def get_root(conn: Db, day: date | None = None) -> StoredRoot:
    """Return the root of a day, or the latest. Raises NotFound."""
    found = await find_root(conn, day)
    if found is None:
        raise NotFound(f"There is no root of {day}." if day else "There is no root yet.")
    return found


async def insert_root(conn: Connection, root: StoredRoot, made_at: datetime) -> None:
    """Store a root, after its pages in the same transaction. Raises UniqueViolationError if the day has one."""
    await conn.execute(_NEW_ROOT, *root, made_at)


async def insert_pages(conn: Connection, number: int, tree: str, pages: Iterable[types.Page]) -> None:
    """Store pages of a tree of bills, or those above the lowest level of the tree of customers."""
    rows = [(number, tree, *page, None, None) for page in pages]
    await conn.copy_records_to_table("daily_root_page", records=rows, columns=_PAGE_COLUMNS, timeout=_SECONDS_MAX)


async def insert_lowest_pages(
    conn: Connection, number: int, pages: Iterable[types.Page], leaves: Sequence[tuple[UUID, bytes]]
) -> None:
    """Store pages of the tree of customers with their leaves, each page as one line per customer."""
    rows, first = [], 0
    for page in pages:
        mine = leaves[first : first + (1 << page.height)]
        rows.append((number, CUSTOMERS, *page, b"\n".join(leaf for _, leaf in mine), mine[0][0]))
        first += len(mine)
    await conn.copy_records_to_table("daily_root_page", records=rows, columns=_PAGE_COLUMNS, timeout=_SECONDS_MAX)


async def record_refusal(conn: Db, day: date, reason: str, at: datetime) -> None:
    """Record that no root was published for a day."""
    await conn.execute(_REFUSED, day, reason, at)


async def list_refusals(conn: Db) -> list[tuple[date, str]]:
    """Return the days since the last root for which none was published, with the reason."""
    return [(row["day"], row["reason"]) for row in await conn.fetch(_LIST_REFUSED)]


async def purge_pages(pool: Pool, now: datetime, retention: timedelta, *, limit: int) -> int:
    """Delete the pages of old roots, up to `limit` at a time; return how many. The signed roots stay."""
    await pool.execute(_PURGE, now - retention, now)
    removed = 0
    while last := int((await pool.execute(_PURGE_PAGES, limit)).split()[-1]):
        removed += last
    return removed


async def list_purged(conn: Db) -> dict[int, datetime]:
    """Return the numbers of roots whose pages were deleted, and when."""
    return {row["number"]: row["purged_at"] for row in await conn.fetch(_LIST_PURGED)}


async def find_leaf(conn: Db, number: int, customer_id: UUID) -> tuple[int, bytes] | None:
    """Return the position of a customer's leaf, and its text."""
    row = await conn.fetchrow(_PAGE_OF, number, customer_id)
    begins = f'{{"customer":"{customer_id}"'.encode()
    leaves = row["leaves"].split(b"\n") if row is not None else []
    found = next((nth for nth, leaf in enumerate(leaves) if leaf.startswith(begins)), None)
    return None if row is None or found is None else ((row["page_no"] << 8) + found, leaves[found])


async def read_pages(
    conn: Db, number: int, wanted: Iterable[tuple[str, int, int]]
) -> dict[tuple[str, int, int], bytes]:
    """Return the tiles of pages by tree, height and number."""
    columns = [list(each) for each in zip(*wanted, strict=True)]
    rows = await conn.fetch(_PAGES, number, *columns)
    return {(row["tree"], row["height"], row["page_no"]): row["tiles"] for row in rows}


def secret_place(day: date) -> bytes:
    """Return the associated data for sealing the secret of a day's salts with the bank's data key."""
    return associated_data("daily_root", "secret", day.isoformat(), tenant_id="")


Place = tuple[str, int, int, int, str]
"""A tree, its height, where a leaf begins, its size as a power of two, and its text."""


async def prove_customer(conn: Db, bank: Bank, root: StoredRoot, customer_id: UUID) -> types.CustomerProof:
    """Return the proof of a customer's balance. Raises NotFound for an unknown customer, or for a day long ago."""
    found = await find_leaf(conn, root.number, customer_id)
    if found is None:
        raise await _purged_error(conn, root) or NotFound("The customer did not exist on that day.")
    index, text = found
    signed = payload_of(root.jws, types.DailyRoot)
    leaf = msgspec.json.decode(text, type=types.CustomerLeaf)
    places = [(CUSTOMERS, height_of(signed.customers.count), index, 0, text.decode()), *_places(leaf, signed)]
    wanted = {(tree, *each) for tree, height, at, power, _ in places for each in pages_above(at, power, height)}
    kept = await read_pages(conn, root.number, wanted)
    pages = {key: nodes_of(tiles, key[2] << key[1]) for key, tiles in kept.items()}
    try:
        proven = [_prove_place(place, pages) for place in places]
    except KeyError as missing:
        gone = await _purged_error(conn, root)
        raise gone or InvariantError("A page of a daily root is missing.", page=missing.args[0]) from None
    bank_id, place = bank.own_id, secret_place(root.day)
    secret = await bank.ports[DataKeys].open(conn, bank_id, root.secret, place)
    salt = salt_of(secret, customer_id).hex()
    return types.CustomerProof(root=root.jws, salt=salt, customer=proven[0], bills=tuple(proven[1:]))


async def _purged_error(conn: Db, root: StoredRoot) -> NotFound | None:
    if root.number in await list_purged(conn):
        return NotFound(f"Proofs of {root.day} are no longer kept; its signed root is.")
    return None


def _places(leaf: types.CustomerLeaf, signed: types.DailyRoot) -> list[Place]:
    found: list[Place] = []
    for cusip, held in leaf.bills.items():
        height = height_of(signed.bills[cusip].length)
        powers = [each for each in range(held.units.bit_length() - 1, -1, -1) if held.units >> each & 1]
        for power, at in zip(powers, held.at, strict=True):
            text = msgspec.json.encode(types.BillLeaf(cusip, leaf.customer, 1 << power)).decode()
            found.append((cusip, height, at, power, text))
    return found


def _prove_place(place: Place, pages: dict[tuple[str, int, int], Nodes]) -> types.ProvenLeaf:
    tree, height, at, power, text = place
    crossed = [pages[tree, *each] for each in pages_above(at, power, height)]
    path = way_up(at, power, height, pages=crossed)
    return types.ProvenLeaf(text, at, tuple(each.hex() for each in path))
