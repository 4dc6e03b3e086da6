"""Signed roots and the pages of their trees; the state of all customers, read in one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from billfold.ledger.book.book import USD
from billfold.platform.crypto import associated_data
from billfold.platform.errors import NotFound
from billfold.reports.proofs.roots.types import CustomerState, Page, StoredRoot

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

CUSTOMERS: Final = "customers"
"""The name of the tree of customers; those of bills have their CUSIP."""
_LOOKBACK: Final = timedelta(days=30)
"""How far back trades may be that are not settled."""
_STATES = """
SELECT h.customer_id, h.version, h.entry_no, h.chain, held.assets, held.amounts
  FROM ledger_head h JOIN customer c USING (customer_id)
  LEFT JOIN (SELECT customer_id, array_agg(asset) AS assets, array_agg(amount) AS amounts
               FROM (SELECT customer_id, asset, sum(credits - debits)::bigint AS amount FROM account
                      WHERE kind IN ('lot', 'cash') AND credits <> debits GROUP BY customer_id, asset) each
              GROUP BY customer_id) held USING (customer_id)
 WHERE c.role <> 'house' ORDER BY h.customer_id
"""
_AT_CUSTODIAN = """
SELECT asset, sum(debits - credits)::bigint AS units FROM account WHERE kind = 'custodian' GROUP BY asset
"""
_TO_RECEIVE = """
SELECT cusip, sum(units)::bigint AS units FROM (
  SELECT cusip, CASE activity WHEN 'BUY' THEN units ELSE -units END AS units FROM trade
   WHERE settles_on >= $1 AND activity IN ('BUY', 'SELL', 'MATURITY')
  UNION ALL
  SELECT cusip, CASE side WHEN 'BUY' THEN -units ELSE units END FROM settlement WHERE settles_on >= $1) each
 GROUP BY cusip
"""
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


async def read_states(conn: Connection) -> list[CustomerState]:
    """Return every customer but the bank itself, in the order of their ids. Needs a transaction."""
    found = []
    async for row in conn.cursor(_STATES, prefetch=10_000):
        held = dict(zip(row["assets"] or (), row["amounts"] or (), strict=True))
        cash = held.pop(USD, 0)
        bills = tuple(sorted(held.items()))
        found.append(CustomerState(row["customer_id"], row["version"], row["entry_no"], row["chain"], cash, bills))
    return found


async def read_bills(conn: Connection, day: date) -> dict[str, tuple[int, int]]:
    """Return by CUSIP the units that the custodian holds, and those that trades which are not settled will bring."""
    held = {row["asset"]: row["units"] for row in await conn.fetch(_AT_CUSTODIAN)}
    coming = {row["cusip"]: row["units"] for row in await conn.fetch(_TO_RECEIVE, day - _LOOKBACK)}
    both = {cusip: (held.get(cusip, 0), coming.get(cusip, 0)) for cusip in sorted(held.keys() | coming.keys())}
    return {cusip: units for cusip, units in both.items() if any(units) and cusip != USD}


async def find_root(conn: Connection | Pool, day: date | None = None) -> StoredRoot | None:
    """Return the root of a day, or the last one."""
    row = await conn.fetchrow(f"{_ROOT} WHERE $1::date IS NULL OR day = $1 ORDER BY number DESC LIMIT 1", day)
    return None if row is None else StoredRoot(*row)


async def list_roots(conn: Connection | Pool, after: int = 0, *, limit: int = 1000) -> list[StoredRoot]:
    """Return the roots that follow one, oldest first."""
    rows = await conn.fetch(f"{_ROOT} WHERE number > $1 ORDER BY number LIMIT $2", after, limit)
    return [StoredRoot(*row) for row in rows]


async def get_root(conn: Connection | Pool, day: date | None = None) -> StoredRoot:
    """Return the root of a day, or the last one. Raises NotFound."""
    found = await find_root(conn, day)
    if found is None:
        raise NotFound(f"There is no root of {day}." if day else "There is no root yet.")
    return found


async def insert_root(conn: Connection, root: StoredRoot, made_at: datetime) -> None:
    """Keep a root; its pages come in the same transaction. Raises UniqueViolationError if the day has one."""
    await conn.execute(_NEW_ROOT, *root, made_at)


async def insert_pages(
    conn: Connection,
    number: int,
    tree: str,
    *,
    pages: Iterable[Page],
    leaves: Sequence[tuple[UUID, bytes]] = (),
) -> None:
    """Keep the pages of a tree; of that of customers also their leaves, each page a line for each of its customers."""

    def row(page: Page) -> tuple[object, ...]:
        first = page.page_no << page.height
        mine = leaves[first : first + (1 << page.height)] if page.height == min_height else ()
        text = b"\n".join(leaf for _, leaf in mine) if mine else None
        return number, tree, page.height, page.page_no, page.tiles, text, mine[0][0] if mine else None

    kept = list(pages)
    min_height = min(each.height for each in kept)
    await conn.copy_records_to_table("daily_root_page", records=map(row, kept), columns=_PAGE_COLUMNS)


async def record_refusal(conn: Connection | Pool, day: date, reason: str, at: datetime) -> None:
    """Record that nothing was published of a day."""
    await conn.execute(_REFUSED, day, reason, at)


async def list_refusals(conn: Connection | Pool) -> list[tuple[date, str]]:
    """Return the days of which nothing was published, and of none after them, with the reason."""
    return [(row["day"], row["reason"]) for row in await conn.fetch(_LIST_REFUSED)]


async def find_leaf(conn: Connection | Pool, number: int, customer_id: UUID) -> tuple[int, bytes] | None:
    """Return where the leaf of a customer is, and its text."""
    row = await conn.fetchrow(_PAGE_OF, number, customer_id)
    begins = f'{{"customer":"{customer_id}"'.encode()
    leaves = row["leaves"].split(b"\n") if row is not None else []
    found = next((nth for nth, leaf in enumerate(leaves) if leaf.startswith(begins)), None)
    return None if row is None or found is None else ((row["page_no"] << 8) + found, leaves[found])


async def read_pages(
    conn: Connection | Pool, number: int, wanted: Iterable[tuple[str, int, int]]
) -> dict[tuple[str, int, int], bytes]:
    """Return the tiles of pages by their tree, height and number."""
    columns = [list(each) for each in zip(*wanted, strict=True)]
    rows = await conn.fetch(_PAGES, number, *columns)
    return {(row["tree"], row["height"], row["page_no"]): row["tiles"] for row in rows}


def secret_place(day: date) -> bytes:
    """Return the one place where the secret of a day's salts opens, with the data key of the bank."""
    return associated_data("daily_root", "secret", day.isoformat(), tenant_id="")
