"""Reads of pockets: one statement each, by index, whatever the history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.domain.pockets.types import PocketRow
from billfold.kit.errors import NotFound

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.kit.db import Connection, Pool

_ROW = """
SELECT p.customer_id, p.pocket_id, p.partner_id, p.name, p.type, p.status, p.deposit_weeks,
       p.reinvestment_weeks, p.real_time_yield, p.opened_at, p.inflow, p.outflow, p.fees,
       p.realised, p.fee_accrued, p.accrued_through,
       coalesce(h.cash, 0) AS cash, coalesce(h.basis, 0) AS earnings_basis,
       coalesce(h.cusips, '{}') AS lot_cusips, coalesce(h.units, '{}') AS lot_units,
       coalesce(h.dates, '{}') AS lot_dates
"""
_HOLDINGS = """
  LEFT JOIN LATERAL (
    SELECT max(a.credits - a.debits) FILTER (WHERE a.kind = 'cash') AS cash,
           sum(a.earnings_basis)::bigint AS basis,
           array_agg(a.asset) FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS cusips,
           array_agg(a.credits - a.debits)
             FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS units,
           array_agg(a.acquired_on)
             FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS dates
      FROM account a
     WHERE a.customer_id = p.customer_id AND a.pocket_id = p.pocket_id AND a.live
  ) h ON true
"""
_GET = f"{_ROW} FROM pocket p {_HOLDINGS} WHERE p.customer_id = $1 AND p.pocket_id = $2"
_BY_ID = f"""{_ROW}
  FROM unnest($1::uuid[], $2::uuid[]) AS k(customer_id, pocket_id)
  JOIN pocket p USING (customer_id, pocket_id) {_HOLDINGS}
 ORDER BY p.opened_at, p.pocket_id"""
_OPEN = f"""{_ROW}
  FROM (SELECT * FROM pocket WHERE partner_id = $1 AND status <> 'CLOSED'
           AND ($2::uuid IS NULL OR customer_id = $2)
         ORDER BY opened_at, pocket_id LIMIT $3) p {_HOLDINGS}
 ORDER BY p.opened_at, p.pocket_id"""  # noqa: S608 - built from our own texts
_LIST = """{row}
  FROM (SELECT * FROM pocket
         WHERE partner_id = $1
           AND ($2::uuid[] IS NULL OR customer_id = ANY($2))
           AND ($3::text[] IS NULL OR status = ANY($3))
           AND ($4::timestamptz IS NULL OR (opened_at, pocket_id) {than} ($4, $5::uuid))
         ORDER BY opened_at {way}, pocket_id {way} LIMIT $6) p {holdings}
 ORDER BY p.opened_at {way}, p.pocket_id {way}"""
_DOWN = _LIST.format(row=_ROW, holdings=_HOLDINGS, than="<", way="DESC")
_UP = _LIST.format(row=_ROW, holdings=_HOLDINGS, than=">", way="ASC")


async def get_pocket(conn: Connection | Pool, customer_id: UUID, pocket_id: UUID) -> PocketRow:
    """The pocket and what it holds. Raises NotFound."""
    row = await conn.fetchrow(_GET, customer_id, pocket_id)
    if row is None:
        raise NotFound("There is no such pocket.")
    return _pocket(row)


async def list_by_id(conn: Connection | Pool, keys: Sequence[tuple[UUID, UUID]]) -> list[PocketRow]:
    """These pockets, given as (customer_id, pocket_id), oldest first."""
    rows = await conn.fetch(_BY_ID, [c for c, _ in keys], [p for _, p in keys])
    return [_pocket(row) for row in rows]


async def list_ids(conn: Connection | Pool, customer_id: UUID) -> list[UUID]:
    """The ids of a customer's pockets, closed ones included."""
    rows = await conn.fetch("SELECT pocket_id FROM pocket WHERE customer_id = $1", customer_id)
    return [row["pocket_id"] for row in rows]


async def list_open(
    conn: Connection | Pool, partner_id: UUID, customer_id: UUID | None, *, limit: int
) -> list[PocketRow]:
    """Up to `limit` pockets that are not closed, of a partner or one of his customers."""
    rows = await conn.fetch(_OPEN, partner_id, customer_id, limit)
    return [_pocket(row) for row in rows]


async def list_of_partner(
    conn: Connection | Pool,
    partner_id: UUID,
    *,
    customer_ids: list[UUID] | None,
    statuses: list[str] | None,
    after: tuple[datetime, UUID] | None,
    backwards: bool,
    limit: int,
) -> list[PocketRow]:
    """Newest first, `limit` rows on from `after`; backwards they come oldest first."""
    opened_at, pocket_id = after or (None, None)
    sql = _UP if backwards else _DOWN
    rows = await conn.fetch(sql, partner_id, customer_ids, statuses, opened_at, pocket_id, limit)
    return [_pocket(row) for row in rows]


def _pocket(row: Record) -> PocketRow:
    return PocketRow(*row.values())
