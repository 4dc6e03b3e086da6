"""Reads of pockets: one statement each, by index, whatever the history."""

from collections.abc import Sequence
from uuid import UUID

from billfold.accounts.pockets.types import PocketRow
from billfold.platform.database.connection import Db
from billfold.platform.database.paging import BY_OPENING, KeysetList
from billfold.platform.database.rows import Table

_pockets = Table(PocketRow, "pocket")
_HELD = {
    **{name: f"coalesce(h.{name}, 0)" for name in ("cash", "earnings_basis", "owed", "reserved")},
    **{name: f"coalesce(h.{name}, '{{}}')" for name in ("lot_cusips", "lot_units", "lot_dates")},
}
_ROW = f"SELECT {_pockets.columns('p', **_HELD)}, p.written_no"
_HOLDINGS = """
  LEFT JOIN LATERAL (
    SELECT max(a.credits - a.debits) FILTER (WHERE a.kind = 'cash') AS cash,
           max(a.debits - a.credits) FILTER (WHERE a.kind = 'owed') AS owed,
           max(a.reserved) FILTER (WHERE a.kind = 'cash') AS reserved,
           sum(a.earnings_basis)::bigint AS earnings_basis,
           array_agg(a.asset) FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS lot_cusips,
           array_agg(a.credits - a.debits)
             FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS lot_units,
           array_agg(a.acquired_on)
             FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS lot_dates
      FROM account a
     WHERE a.customer_id = p.customer_id AND a.pocket_id = p.pocket_id AND a.live
  ) h ON true
"""
_GET = f"{_ROW} FROM pocket p {_HOLDINGS} WHERE p.customer_id = $1 AND p.pocket_id = $2"
_BY_ID = f"""{_ROW}
  FROM unnest($1::uuid[], $2::uuid[]) AS k(customer_id, pocket_id)
  JOIN pocket p USING (customer_id, pocket_id) {_HOLDINGS}
 ORDER BY p.opened_at, p.written_no"""
# Of a partner by the index in the order of the list; of customers by their keys, however many
# pockets their partner has.
_OF_PARTNER = """
         SELECT * FROM pocket
          WHERE partner_id = $1 AND ($2::text[] IS NULL OR status = ANY($2)) AND {page}"""
_OF_CUSTOMERS = """
         SELECT o.* FROM unnest($1::uuid[]) AS c(customer_id) CROSS JOIN LATERAL (
           SELECT * FROM pocket q
            WHERE q.customer_id = c.customer_id AND ($2::text[] IS NULL OR q.status = ANY($2)) AND {page}) o
         {order}"""


def _list_of(selected: str) -> KeysetList[PocketRow]:
    return KeysetList(f"{_ROW} FROM ({selected}) p {_HOLDINGS} {{order}}", _pockets.read, **BY_OPENING)


_OF_CUSTOMER = """customer_id = $1 AND ($2::text[] IS NULL OR status = ANY($2))
           AND ($3::uuid[] IS NULL OR pocket_id = ANY($3))"""
_PAGE_BY_OFFSET = f"""{_ROW}
  FROM (SELECT * FROM pocket WHERE {_OF_CUSTOMER}
         ORDER BY opened_at DESC, written_no DESC OFFSET $4 LIMIT $5) p {_HOLDINGS}
 ORDER BY p.opened_at DESC, p.written_no DESC"""
_NOT_CLOSED_OF_CUSTOMER = f"""{_ROW} FROM pocket p {_HOLDINGS}
 WHERE p.customer_id = $1 AND p.status = ANY($2) ORDER BY p.opened_at, p.written_no"""
_COUNT = f"SELECT count(*) FROM pocket WHERE {_OF_CUSTOMER}"
_IDS = "SELECT pocket_id FROM pocket WHERE customer_id = $1 AND ($2::uuid[] IS NULL OR pocket_id = ANY($2))"
POCKETS_OF_PARTNER, POCKETS_OF_CUSTOMERS = _list_of(_OF_PARTNER), _list_of(_OF_CUSTOMERS)
"""Pockets of a partner, or of a list of customers that names each once; of some statuses or of all. Newest first."""
_NOT_CLOSED = ["PENDING", "OPEN", "FROZEN"]


async def get_pocket(conn: Db, customer_id: UUID, pocket_id: UUID) -> PocketRow:
    """The pocket and what it holds. Raises NotFound."""
    return await _pockets.one(conn, _GET, customer_id, pocket_id)


async def list_by_id(conn: Db, keys: Sequence[tuple[UUID, UUID]]) -> list[PocketRow]:
    """These pockets, given as (customer_id, pocket_id), oldest first."""
    return await _pockets.all(conn, _BY_ID, [c for c, _ in keys], [p for _, p in keys])


async def list_ids(conn: Db, customer_id: UUID, among: Sequence[UUID] | None = None) -> list[UUID]:
    """The ids of a customer's pockets, closed ones included; of those `among` these."""
    rows = await conn.fetch(_IDS, customer_id, among)
    return [row["pocket_id"] for row in rows]


async def list_open(conn: Db, partner_id: UUID, customer_id: UUID | None, *, limit: int) -> list[PocketRow]:
    """The oldest `limit` pockets that are not closed, of a partner or one of its customers."""
    listed, owners = (POCKETS_OF_PARTNER, partner_id) if customer_id is None else (POCKETS_OF_CUSTOMERS, [customer_id])
    return await listed.rows(conn, owners, _NOT_CLOSED, descending=False, limit=limit)


async def list_not_closed(conn: Db, customer_id: UUID) -> list[PocketRow]:
    """All pockets of a customer that are not closed, the oldest first."""
    return await _pockets.all(conn, _NOT_CLOSED_OF_CUSTOMER, customer_id, _NOT_CLOSED)


async def list_page_by_offset(
    conn: Db,
    customer_id: UUID,
    *,
    statuses: list[str] | None,
    pocket_ids: list[UUID] | None,
    offset: int,
    limit: int,
) -> tuple[int, list[PocketRow]]:
    """How many pockets a customer has, among `pocket_ids` if given, and `limit` beyond `offset`, newest first."""
    wanted = (customer_id, statuses, pocket_ids)
    count: int = await conn.fetchval(_COUNT, *wanted)
    return count, await _pockets.all(conn, _PAGE_BY_OFFSET, *wanted, offset, limit) if offset < count else []
