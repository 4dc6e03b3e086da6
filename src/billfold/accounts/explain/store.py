"""The rows that explanations name: one statement by index each, whatever the history."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.pockets.history import JOURNAL_NO_MAX
from billfold.platform.database.keyset import reads

if TYPE_CHECKING:
    from billfold.accounts.pockets.types import PocketRow
    from billfold.bills.types import Period
    from billfold.platform.calendars import Calendars
    from billfold.platform.database.connection import (Connection)

ROWS_MAX = 30
"""How many trades or transactions an explanation names: the newest."""
NEVER = datetime.max.replace(tzinfo=UTC)
_SEARCHED_MAX = 1_000
_ACCOUNTS = """
SELECT account_no, kind, asset, acquired_on, debits, credits, reserved, earnings_basis FROM account
 WHERE customer_id = $1 AND pocket_id = $2 AND live AND kind IN ('lot', 'owed') AND (kind = 'owed' OR credits > debits)
 ORDER BY acquired_on, account_no
"""
# A snapshot is written when the day is over, so that what follows the last one is of one day.
_CASH = """
SELECT s.business_date, coalesce(s.entry_no, 0) AS entry_no, coalesce(s.cash, 0) AS cash, t.bought, t.sold, a.received,
       a.paid
  FROM (VALUES (1)) AS one(row)
  LEFT JOIN LATERAL (SELECT * FROM snapshot WHERE customer_id = $1 AND pocket_id = $2
                      ORDER BY business_date DESC LIMIT 1) s ON true
 CROSS JOIN LATERAL (
    SELECT coalesce(sum(notional) FILTER (WHERE incoming), 0)::bigint AS bought,
           coalesce(sum(notional) FILTER (WHERE NOT incoming), 0)::bigint AS sold
      FROM trade WHERE customer_id = $1 AND pocket_id = $2 AND entry_no > coalesce(s.entry_no, 0)
       AND activity IN ('BUY', 'SELL', 'MATURITY')) t
 CROSS JOIN LATERAL (
    SELECT coalesce(sum(amount) FILTER (WHERE direction = 'CREDIT'), 0)::bigint AS received,
           coalesce(sum(amount) FILTER (WHERE direction = 'DEBIT'), 0)::bigint AS paid
      FROM transaction WHERE customer_id = $1 AND pocket_id = $2 AND entry_no > coalesce(s.entry_no, 0)
       AND (swept OR type <> 'CARD')) a
"""
_TRADES = f"""
SELECT trade_id, entry_no, activity, incoming, cusip, units, price_micros, notional, earnings_basis, traded_at
  FROM (SELECT * FROM trade WHERE customer_id = $1 AND pocket_id = $2 AND entry_no > $3 AND entry_no <= $4
         ORDER BY entry_no DESC, trade_no DESC LIMIT {_SEARCHED_MAX}) t
 WHERE activity = ANY($7) AND traded_at >= $5 AND traded_at < $6
 LIMIT {ROWS_MAX + 1}
"""
_TRANSACTIONS = f"""
SELECT activity_id, entry_no, posting_no, type, direction, amount, title, booked_at
  FROM (SELECT * FROM transaction WHERE customer_id = $1 AND pocket_id = $2 AND entry_no > $3 AND entry_no <= $4
         ORDER BY entry_no DESC, posting_no DESC LIMIT {_SEARCHED_MAX}) a
 WHERE (swept OR type <> 'CARD') AND ($7::text IS NULL OR direction = $7) AND ($8::bool IS NULL OR (type = 'FEE') = $8)
   AND booked_at >= $5 AND booked_at < $6
 LIMIT {ROWS_MAX + 1}
"""
_ENTRIES = f"""
SELECT coalesce((SELECT entry_no FROM snapshot WHERE customer_id = $1 AND pocket_id = $2 AND business_date < $3
                  ORDER BY business_date DESC LIMIT 1), 0),
       coalesce((SELECT entry_no FROM snapshot WHERE customer_id = $1 AND pocket_id = $2 AND business_date >= $4
                  ORDER BY business_date LIMIT 1), {JOURNAL_NO_MAX})
"""
_CHARGED = """
SELECT activity_id, entry_no, posting_no, type, direction, amount, title, booked_at FROM transaction
 WHERE customer_id = $1 AND pocket_id = $2 AND entry_no > $3 AND entry_no <= $4 AND type = 'FEE'
   AND details->>'fee_type' = 'AUM_FEE' AND booked_at > $5 AND booked_at <= $6
"""


class AccountRow(NamedTuple):
    """A lot that holds bills, or the account of what the Pocket owes."""

    account_no: int
    kind: str
    asset: str
    acquired_on: date | None
    debits: int
    credits: int
    reserved: int
    earnings_basis: int


class CashRow(msgspec.Struct, frozen=True):
    """The cash at the end of the last day with a snapshot, and what moved it since, in cents."""

    business_date: date | None
    entry_no: int
    cash: int
    bought: int
    sold: int
    received: int
    paid: int


class MovedTrade(msgspec.Struct, frozen=True):
    """A trade of a Pocket."""

    trade_id: UUID
    entry_no: int
    activity: str
    incoming: bool
    cusip: str
    units: int
    price_micros: int
    notional: int
    earnings_basis: int
    traded_at: datetime


class MovedMoney(msgspec.Struct, frozen=True):
    """A transaction of a Pocket."""

    activity_id: UUID
    entry_no: int
    posting_no: int
    type: str
    direction: str
    amount: int
    title: str
    booked_at: datetime


class Stretch(NamedTuple):
    """A stretch of time of a Pocket, its end left out, and the journal entries between which its rows are."""

    customer_id: UUID
    pocket_id: UUID
    after_entry_no: int
    last_entry_no: int
    start: datetime
    end: datetime


_cash, _trade, _money = reads(CashRow), reads(MovedTrade), reads(MovedMoney)


async def list_accounts(conn: Connection, customer_id: UUID, pocket_id: UUID) -> list[AccountRow]:
    """Return the lots of a Pocket, the oldest first, and the account of what it owes."""
    return [AccountRow(*row) for row in await conn.fetch(_ACCOUNTS, customer_id, pocket_id)]


async def get_cash(conn: Connection, customer_id: UUID, pocket_id: UUID) -> CashRow:
    """Return what the cash of a Pocket is made of."""
    (row,) = await conn.fetch(_CASH, customer_id, pocket_id)
    return _cash(row)


async def stretch_of(conn: Connection, row: PocketRow, period: Period, calendars: Calendars) -> Stretch:
    """Return a period of a Pocket with its journal entries, as far as snapshots name them. A live one has no end."""
    key = row.customer_id, row.pocket_id
    days = calendars.business_date(period.start), calendars.business_date(period.end)
    ((after, last),) = await conn.fetch(_ENTRIES, *key, *days)
    return Stretch(*key, after, last, start=period.start, end=NEVER if period.live else period.end)


async def list_trades(conn: Connection, of: Stretch, activities: list[str]) -> list[MovedTrade]:
    """Return the newest trades, one more than is shown; of the last thousand."""
    rows = await conn.fetch(_TRADES, *of, activities)
    return [_trade(row) for row in rows]


async def list_transactions(
    conn: Connection, of: Stretch, *, direction: str | None = None, is_fee: bool | None = None
) -> list[MovedMoney]:
    """Return the newest transactions, one more than is shown; of the last thousand."""
    rows = await conn.fetch(_TRANSACTIONS, *of, direction, is_fee)
    return [_money(row) for row in rows]


async def list_charges(conn: Connection, of: Stretch) -> list[MovedMoney]:
    """Return the charges of the fee on assets after the start and through the end: of a month of one Pocket at most."""
    return [_money(row) for row in await conn.fetch(_CHARGED, *of)]
