"""Reads one Pocket's log between two journal entries: one indexed statement each, whatever came before or after."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.transactions.settlement import TransactionRow
from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table
from billfold.reports.entries.types import LedgerPosition, ListedTransaction, Movements, TradeTotal, TransferInKind

# Entries and commits are numbered without gaps and their instants never decrease, so a binary search finds either.
_ENTRY_BEFORE = """
WITH RECURSIVE search(low, high) AS (
  SELECT 0::bigint, entry_no FROM ledger_head WHERE customer_id = $1
  UNION ALL
  SELECT CASE WHEN j.booked_at < $2 THEN s.middle ELSE s.low END,
         CASE WHEN j.booked_at < $2 THEN s.high ELSE s.middle - 1 END
    FROM (SELECT low, high, (low + high + 1) / 2 AS middle FROM search WHERE low < high) s
    JOIN journal_entry j ON j.customer_id = $1 AND j.entry_no = s.middle)
SELECT low FROM search WHERE low = high
"""
_COMMIT_OF = """
WITH RECURSIVE search(low, high) AS (
  SELECT 1::bigint, version FROM ledger_head WHERE customer_id = $1
  UNION ALL
  SELECT CASE WHEN c.entry_no < $2 THEN s.middle + 1 ELSE s.low END,
         CASE WHEN c.entry_no < $2 THEN s.high ELSE s.middle END
    FROM (SELECT low, high, (low + high) / 2 AS middle FROM search WHERE low < high) s
    JOIN chain_entry c ON c.customer_id = $1 AND c.version = s.middle)
SELECT version, hash FROM search JOIN chain_entry ON customer_id = $1 AND version = low WHERE low = high
"""
_BOOKED_AT = "SELECT booked_at FROM journal_entry WHERE customer_id = $1 AND entry_no = $2"
_DUE_AT = "SELECT due_at FROM ledger_head WHERE customer_id = $1"
_ACCOUNT = """
WITH p AS MATERIALIZED (
  SELECT c.name AS owner, p.name, p.opened_at, p.real_time_yield FROM pocket p JOIN customer c USING (customer_id)
   WHERE customer_id = $1 AND p.pocket_id = $2)
SELECT p.owner, p.name, p.opened_at, p.real_time_yield, n.account_number, n.routing_number
  FROM p LEFT JOIN LATERAL (
    SELECT account_number, routing_number FROM portal
     WHERE customer_id = $1 AND pocket_id = $2 AND account_number IS NOT NULL AND created_at < $3
     ORDER BY created_at, written_no LIMIT 1) n ON true
"""
_SNAPSHOT = """
SELECT entry_no, cash, positions FROM snapshot
 WHERE customer_id = $1 AND pocket_id = $2 AND business_date < $3 AND entry_no <= $4
 ORDER BY business_date DESC LIMIT 1
"""
_OF_POCKET = "customer_id = $1 AND pocket_id = $2 AND entry_no > $3 AND entry_no <= $4"
_PAYMENTS = f"""
SELECT direction = 'CREDIT' AS is_credit, count(*), sum(amount)::bigint FROM transaction
 WHERE {_OF_POCKET} AND (swept OR type <> 'CARD') GROUP BY 1
"""
_TRADES = f"""
SELECT cusip, incoming, activity IN ('BUY', 'SELL', 'MATURITY'), count(*), sum(units)::bigint, sum(notional)::bigint
  FROM trade WHERE {_OF_POCKET} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
_transactions = Table(TransactionRow, "transaction")
_PAGE = f"""
WITH page AS MATERIALIZED (
  SELECT {_transactions.columns("t")},
         EXISTS (SELECT 1 FROM journal_entry j WHERE j.customer_id = $1 AND j.entry_no = t.entry_no
                                                 AND j.reverses IS NOT NULL) AS is_reversal,
         e.party_name, CASE WHEN t.direction = 'DEBIT' AND e.entry_no = t.entry_no THEN e.settled_at END AS settled_at,
         w.end_to_end_identification, w.uetr, w.imad, w.direction AS wire_direction, w.wire_id
    FROM transaction t LEFT JOIN wire w
      ON t.type = 'WIRE' AND w.customer_id = $1 AND w.wire_id = (t.details ->> 'wire_id')::uuid
    LEFT JOIN ach_entry e
      ON t.type = 'ACH' AND e.customer_id = $1 AND e.ach_id = (t.details ->> 'ach_id')::uuid
     AND e.way = 'ORIGINATION'
   WHERE t.customer_id = $1 AND t.pocket_id = $2 AND (t.entry_no, t.posting_no) > ($3, $4) AND t.entry_no <= $5
     AND (t.swept OR t.type <> 'CARD')
   ORDER BY t.entry_no, t.posting_no LIMIT $6
)
SELECT {_transactions.columns()}, is_reversal, party_name, settled_at, end_to_end_identification, uetr,
       CASE wire_direction WHEN 'INCOMING' THEN imad ELSE (
         SELECT min(m.imad) FROM wire_message m WHERE m.wire_id = page.wire_id AND m.sent_at < $7) END
  FROM page ORDER BY entry_no, posting_no
"""
_IN_KIND = f"""
SELECT entry_no, trade_id, incoming, cusip, units, notional, traded_at, settles_on FROM trade
 WHERE {_OF_POCKET} AND activity IN ('SAME_ENTITY_SECURITY_TRANSFER', 'EXTERNAL_SECURITY_TRANSFER')
 ORDER BY entry_no, trade_no
"""
_CLOSING_PRICES = "SELECT cusip, mark_micros FROM closing_price WHERE business_date = $1 AND cusip = ANY($2)"


class AccountRow(msgspec.Struct, frozen=True):
    """The owner and name of a Pocket, and the number of its first portal, if it has one."""

    owner: str
    name: str
    opened_at: datetime
    real_time_yield: bool
    account_number: str | None
    routing_number: str | None


_accounts = Table(AccountRow, "pocket")


class Span(NamedTuple):
    """A Pocket, and a range of its customer's journal entries: after one number up to another."""

    customer_id: UUID
    pocket_id: UUID
    after: int
    through: int


class Snapshot(NamedTuple):
    """The holdings of a Pocket after a journal entry: cents, and units by CUSIP."""

    entry_no: int
    cash: int
    positions: dict[str, int]


async def last_entry_before(conn: Db, customer_id: UUID, at: datetime) -> int:
    """Return the number of the last journal entry booked before an instant, or 0."""
    return await conn.fetchval(_ENTRY_BEFORE, customer_id, at) or 0


async def position_of(conn: Db, customer_id: UUID, entry_no: int) -> LedgerPosition:
    """Return the position of a journal entry in the customer's chain."""
    row = await conn.fetchrow(_COMMIT_OF, customer_id, entry_no) if entry_no else None
    version, chain = row or (0, b"")
    return LedgerPosition(version, entry_no, chain.hex())


async def find_booked_at(conn: Db, customer_id: UUID, entry_no: int) -> datetime | None:
    """Return when a journal entry was booked."""
    booked_at: datetime | None = await conn.fetchval(_BOOKED_AT, customer_id, entry_no)
    return booked_at


async def due_at(conn: Db, customer_id: UUID) -> datetime | None:
    """Return when the customer's next work is due, or None."""
    due: datetime | None = await conn.fetchval(_DUE_AT, customer_id)
    return due


async def get_account(conn: Db, customer_id: UUID, pocket_id: UUID, at: datetime) -> AccountRow:
    """Return owner, name and account number of a Pocket, with portals opened before an instant. Raises NotFound."""
    return await _accounts.one(conn, _ACCOUNT, customer_id, pocket_id, at)


async def snapshot_before(conn: Db, span: Span, business_date: date) -> Snapshot:
    """Return the holdings at the end of the last day before a business date, `span.through` at the latest."""
    row = await conn.fetchrow(_SNAPSHOT, span.customer_id, span.pocket_id, business_date, span.through)
    if row is None:
        return Snapshot(0, 0, {})
    return Snapshot(row["entry_no"], row["cash"], dict(msgspec.json.decode(row["positions"])))


async def movements(conn: Db, span: Span) -> Movements:
    """Return the totals of a span, computed by the database."""
    payments = {is_credit: (count, cents) for is_credit, count, cents in await conn.fetch(_PAYMENTS, *span)}
    return Movements(payments, [TradeTotal(*row) for row in await conn.fetch(_TRADES, *span)])


async def list_transactions(
    conn: Db, span: Span, after: tuple[int, int], limit: int, *, ends_at: datetime
) -> list[ListedTransaction]:
    """Return up to `limit` transactions from (entry_no, posting_no) on, as known when the period ended."""
    rows = await conn.fetch(_PAGE, span.customer_id, span.pocket_id, *after, span.through, limit, ends_at)
    return [ListedTransaction(_transactions.read(row), *row[len(TransactionRow.__struct_fields__) :]) for row in rows]


async def list_transfers_in_kind(conn: Db, span: Span) -> list[TransferInKind]:
    """Return the transfers of bills in kind, in booking order."""
    return [TransferInKind(*row) for row in await conn.fetch(_IN_KIND, *span)]


async def closing_prices(conn: Db, day: date, cusips: Sequence[str]) -> dict[str, int]:
    """Return the prices in micros recorded when the bank closed a day."""
    rows = await conn.fetch(_CLOSING_PRICES, day, cusips) if cusips else []
    return {row["cusip"]: row["mark_micros"] for row in rows}
