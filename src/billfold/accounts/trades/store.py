"""Reads of trades, in booking order, by index."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_COLUMNS = (
    "t.customer_id, t.pocket_id, t.entry_no, t.trade_no, t.trade_id, t.activity, t.incoming, "
    "t.cusip, t.units, t.price_micros, t.notional, t.traded_at, t.book_date, t.settles_on, "
    "t.counter_pocket_id, t.transfer_id, "
    # Only of what went elsewhere is the other side looked up.
    "CASE WHEN t.activity = 'EXTERNAL_SECURITY_TRANSFER' THEN (SELECT s.counterparty_name "
    "FROM security_transfer s WHERE s.customer_id = t.customer_id "
    "AND s.transfer_id = t.transfer_id) END AS counterparty_name"
)
_LIST = f"""
SELECT {_COLUMNS} FROM unnest($2::uuid[]) AS p(pocket_id) CROSS JOIN LATERAL (
  SELECT * FROM trade t
   WHERE t.customer_id = $1 AND t.pocket_id = p.pocket_id
     AND ($3::bigint IS NULL OR (t.entry_no, t.trade_no) {{than}} ($3, $4::smallint))
     AND ($6::text[] IS NULL OR t.activity = ANY($6))
     AND ($7::timestamptz IS NULL OR t.traded_at >= $7)
     AND ($8::timestamptz IS NULL OR t.traded_at < $8)
     AND ($9::date IS NULL OR t.book_date >= $9) AND ($10::date IS NULL OR t.book_date <= $10)
     AND ($11::date IS NULL OR t.settles_on >= $11)
     AND ($12::date IS NULL OR t.settles_on <= $12)
   ORDER BY t.entry_no {{way}}, t.trade_no {{way}} LIMIT $5) t
 ORDER BY t.entry_no {{way}}, t.trade_no {{way}} LIMIT $5
"""
_DOWN = _LIST.format(than="<", way="DESC")
_UP = _LIST.format(than=">", way="ASC")


class TradeRow(msgspec.Struct, frozen=True):
    """A trade as stored: units of $100 face, micro-dollars per $100, cents."""

    customer_id: UUID
    pocket_id: UUID
    entry_no: int
    trade_no: int
    trade_id: UUID
    activity: str
    incoming: bool
    cusip: str
    units: int
    price_micros: int
    notional: int
    traded_at: datetime
    book_date: date
    settles_on: date
    counter_pocket_id: UUID | None
    transfer_id: UUID | None
    counterparty_name: str | None = None


class TradeFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Which trades: times from included and to excluded, dates both included."""

    activities: list[str] | None = None
    traded_from: datetime | None = None
    traded_to: datetime | None = None
    booked_from: date | None = None
    booked_to: date | None = None
    settled_from: date | None = None
    settled_to: date | None = None


async def list_trades(
    conn: Connection | Pool,
    customer_id: UUID,
    pocket_ids: list[UUID],
    filters: TradeFilters,
    *,
    after: tuple[int, int] | None,
    descending: bool,
    limit: int,
) -> list[TradeRow]:
    """The trades of these pockets of one customer, merged, on from (entry_no, trade_no).

    A pocket named twice would give its rows twice.
    """
    entry_no, trade_no = after or (None, None)
    sql = _DOWN if descending else _UP
    rows = await conn.fetch(
        sql,
        customer_id,
        pocket_ids,
        entry_no,
        trade_no,
        limit,
        filters.activities,
        filters.traded_from,
        filters.traded_to,
        filters.booked_from,
        filters.booked_to,
        filters.settled_from,
        filters.settled_to,
    )
    return [TradeRow(*row) for row in rows]
