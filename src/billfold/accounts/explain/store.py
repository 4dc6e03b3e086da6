"""The rows used in explanations: one indexed statement each, independent of the history."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.explain.schemas import Row, RowKind
from billfold.accounts.pockets.as_of_store import JOURNAL_NO_MAX
from billfold.accounts.pockets.commands import PocketRow
from billfold.bills.types import Period
from billfold.http.schemas import format_price, usd
from billfold.platform.calendars import Calendars
from billfold.platform.database.connection import Connection
from billfold.platform.database.rows import Table

ROWS_MAX = 30
"""Maximum number of trades or transactions in an explanation: the newest ones."""
NEVER = datetime.max.replace(tzinfo=UTC)
_SEARCHED_MAX = 1_000
_ACCOUNTS = """
SELECT account_no, kind, asset, acquired_on, debits, credits, reserved, earnings_basis FROM account
 WHERE customer_id = $1 AND pocket_id = $2 AND live AND kind IN ('lot', 'owed') AND (kind = 'owed' OR credits > debits)
 ORDER BY acquired_on, account_no
"""
# A snapshot is written when the day is over, so rows after the last one are of one day.
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
# The first state of the Pocket that has a journal entry in it.
_KNOWN = """
SELECT known_at FROM pocket_version WHERE customer_id = $1 AND pocket_id = $2 AND known_at >= $3 AND entry_no >= $4
 ORDER BY known_at, version LIMIT 1
"""
_HELD = """
SELECT o.hold_id, o.amount, o.until, coalesce(o.reason, 'May still be returned') AS reason
  FROM hold o JOIN ledger_head g USING (customer_id)
 WHERE o.customer_id = $1 AND o.pocket_id = $2
   AND (o.status IS NULL OR o.status = 'ACTIVE') AND o.until > g.booked_at - interval '14 days'
 ORDER BY o.until, o.hold_id
"""


class HeldAmount(NamedTuple):
    """Cents that a hold keeps in a Pocket until an instant."""

    hold_id: UUID
    amount: int
    until: datetime
    reason: str


class AccountRow(NamedTuple):
    """A lot that holds bills, or the account of the Pocket's overdraft."""

    account_no: int
    kind: str
    asset: str
    acquired_on: date | None
    debits: int
    credits: int
    reserved: int
    earnings_basis: int


class CashRow(msgspec.Struct, frozen=True):
    """The cash at the end of the last day with a snapshot, and its movements since, in cents."""

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


class PocketSpan(NamedTuple):
    """A time span of a Pocket, end excluded, and the range of journal entries that contains its rows."""

    customer_id: UUID
    pocket_id: UUID
    after_entry_no: int
    last_entry_no: int
    start: datetime
    end: datetime


_trades, _money = Table(MovedTrade, "trade"), Table(MovedMoney, "transaction")


async def list_accounts(conn: Connection, customer_id: UUID, pocket_id: UUID) -> list[AccountRow]:
    """Return the lots of a Pocket, oldest first, and the account of its overdraft."""
    return [AccountRow(*row) for row in await conn.fetch(_ACCOUNTS, customer_id, pocket_id)]


async def list_holds(conn: Connection, customer_id: UUID, pocket_id: UUID) -> list[HeldAmount]:
    """Return what holds keep in a Pocket, next end first, with some that ended lately."""
    return [HeldAmount(*row) for row in await conn.fetch(_HELD, customer_id, pocket_id)]


async def get_cash(conn: Connection, customer_id: UUID, pocket_id: UUID) -> CashRow:
    """Return the components of a Pocket's cash."""
    (row,) = await conn.fetch(_CASH, customer_id, pocket_id)
    return CashRow(*row)


async def stretch_of(conn: Connection, row: PocketRow, period: Period, calendars: Calendars) -> PocketSpan:
    """Return a period of a Pocket with its journal entries, as far as snapshots give them. A live one has no end.

    It ends with the last journal entry of a Pocket as of an instant.
    """
    key = row.customer_id, row.pocket_id
    days = calendars.business_date(period.start), calendars.business_date(period.end)
    ((after, last),) = await conn.fetch(_ENTRIES, *key, *days)
    last = last if row.last_entry is None else min(last, row.last_entry)
    return PocketSpan(*key, after, last, start=period.start, end=NEVER if period.live else period.end)


async def list_trades(conn: Connection, of: PocketSpan, activities: list[str]) -> list[MovedTrade]:
    """Return the newest trades, one more than is shown, among the last thousand."""
    return await _trades.all(conn, _TRADES, *of, activities)


async def list_transactions(
    conn: Connection, of: PocketSpan, *, direction: str | None = None, is_fee: bool | None = None
) -> list[MovedMoney]:
    """Return the newest transactions, one more than is shown, among the last thousand."""
    return await _money.all(conn, _TRANSACTIONS, *of, direction, is_fee)


async def list_charges(conn: Connection, of: PocketSpan) -> list[MovedMoney]:
    """Return the charges of the fee on assets after the start and through the end, within one month of one Pocket."""
    return await _money.all(conn, _CHARGED, *of)


async def find_known_at(
    conn: Connection, customer_id: UUID, pocket_id: UUID, since: datetime, *, entry_no: int
) -> datetime | None:
    """Return the instant of the first state of a Pocket that has a journal entry in it, or None if none is kept."""
    at: datetime | None = await conn.fetchval(_KNOWN, customer_id, pocket_id, since, entry_no)
    return at


_VERBS = {"BUY": "bought", "SELL": "sold", "MATURITY": "matured"}


def lot_row(lot: AccountRow, units: int | None = None) -> Row:
    """Return the row of a lot; `units` are the units that count here, by default all."""
    assert lot.acquired_on is not None
    return Row(
        kind=RowKind.LOT,
        label=f"Lot {lot.account_no} of {lot.asset}, acquired on {lot.acquired_on}",
        id=str(lot.account_no),
        cusip=lot.asset,
        units=lot.credits - lot.debits if units is None else units,
        amount=usd(lot.earnings_basis),
        on=lot.acquired_on,
    )


def hold_row(hold: HeldAmount) -> Row:
    """Return the row of a hold."""
    return Row(kind=RowKind.HOLD, label=hold.reason, id=str(hold.hold_id), amount=usd(hold.amount), at=hold.until)


def trade_rows(trades: Sequence[MovedTrade]) -> list[Row]:
    """Return the rows of trades, up to the number shown."""
    return [
        Row(
            kind=RowKind.TRADE,
            label=f"{each.units} bills of {each.cusip} {_verb(each)}",
            id=str(each.trade_id),
            entry_no=each.entry_no,
            cusip=each.cusip,
            units=each.units,
            amount=usd(each.notional),
            price=format_price(each.price_micros),
            at=each.traded_at,
        )
        for each in trades[:ROWS_MAX]
    ]


def transaction_rows(transactions: Sequence[MovedMoney]) -> list[Row]:
    """Return the rows of transactions, up to the number shown; a debit is negative."""
    return [
        Row(
            kind=RowKind.TRANSACTION,
            label=each.title,
            id=str(each.activity_id),
            entry_no=each.entry_no,
            posting_no=each.posting_no,
            amount=usd(each.amount if each.direction == "CREDIT" else -each.amount),
            at=each.booked_at,
        )
        for each in transactions[:ROWS_MAX]
    ]


def _verb(trade: MovedTrade) -> str:
    return _VERBS.get(trade.activity, "received" if trade.incoming else "transferred")
