"""Reads of one trade, and of the tax lots that it bought or sold."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.accounts.trades.store import TradeRow, find_by_id

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

_TRADE = """
SELECT customer_id, pocket_id, entry_no, trade_no, trade_id, activity, incoming, cusip, units, price_micros, notional,
       traded_at, book_date, settles_on, counter_pocket_id, transfer_id, tax_basis
  FROM trade t
"""
_EARLIER = """
SELECT coalesce(sum(units), 0)::bigint FROM trade
 WHERE customer_id = $1 AND pocket_id = $2 AND entry_no = $3 AND trade_no < $4 AND cusip = $5 AND activity = $6
"""
_LOT_POSTINGS = """
SELECT a.acquired_on, p.amount FROM posting p
  JOIN account a ON a.customer_id = p.customer_id AND a.kind = 'lot' AND a.pocket_id = $2
                AND a.account_no = CASE $5 WHEN 'BUY' THEN p.credit ELSE p.debit END
 WHERE p.customer_id = $1 AND p.entry_no = $3 AND p.asset = $4
 ORDER BY p.posting_no
"""


class TradedLot(NamedTuple):
    """Units that a trade put into a tax lot, or took from it. A lot is named by its bill and its day."""

    acquired_on: date
    units: int


async def find_trade(conn: Connection | Pool, customer_id: UUID, pocket_id: UUID, trade_id: UUID) -> TradeRow | None:
    """Return a purchase or a sale of a Pocket."""
    row = await find_by_id(conn, _TRADE, (customer_id, pocket_id, trade_id))
    return None if row is None or row["activity"] not in {"BUY", "SELL"} else TradeRow(*row)


async def list_lots(conn: Connection | Pool, trade: TradeRow) -> list[TradedLot]:
    """Return the tax lots of a purchase or a sale, in the order in which they were taken."""
    entry = (trade.customer_id, trade.pocket_id, trade.entry_no)
    # One journal entry may sell a bill twice, for a payment and for a fee: each goes on where the last one left.
    skipped = await conn.fetchval(_EARLIER, *entry, trade.trade_no, trade.cusip, trade.activity)
    lots, wanted = list[TradedLot](), trade.units
    for acquired_on, units in await conn.fetch(_LOT_POSTINGS, *entry, trade.cusip, trade.activity):
        left = max(units - skipped, 0)
        skipped -= units - left
        if taken := min(left, wanted):
            lots.append(TradedLot(acquired_on, taken))
            wanted -= taken
    return lots
