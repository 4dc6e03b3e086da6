"""Reads of trades, in booking order, by index."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.accounts.entry_numbers import BookedIn, MergedList, entries_of
from billfold.accounts.pockets.as_of_store import JOURNAL_NO_MAX
from billfold.platform.calendars import Calendars
from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table
from billfold.platform.errors import NotFound
from billfold.platform.ids import place_of

_ONE_DAY = timedelta(days=1)
_FIRST_DAY = date(2000, 1, 31)
"""No trade is older; the calendars of earlier days are never needed."""


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
    tax_basis: int
    counterparty_name: str | None = None


_trades = Table(TradeRow, "trade")
_COLUMNS = _trades.columns(
    "t",
    # The other side is looked up only for external transfers.
    counterparty_name="CASE WHEN t.activity = 'EXTERNAL_SECURITY_TRANSFER' THEN (SELECT s.counterparty_name "
    "FROM security_transfer s WHERE s.customer_id = $1 AND s.transfer_id = t.transfer_id) END",
)


class TradeFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of trades: times from included and to excluded, dates both included."""

    activities: list[str] | None = None
    traded_from: datetime | None = None
    traded_to: datetime | None = None
    booked_from: date | None = None
    booked_to: date | None = None
    settled_from: date | None = None
    settled_to: date | None = None

    def by_calendars(self, calendars: Calendars) -> TradeFilters:
        """Return the filters by originally agreed days: trades due on a closed day settle later."""
        settled_from, settled_to = self.settled_from, self.settled_to
        if settled_from is not None and settled_from > _FIRST_DAY:
            settled_from = calendars.settlement_on_or_before(settled_from - _ONE_DAY) + _ONE_DAY
        if settled_to is not None and settled_to > _FIRST_DAY:
            settled_to = calendars.settlement_on_or_before(settled_to)
        return msgspec.structs.replace(self, settled_from=settled_from, settled_to=settled_to)

    def values(self, end: int = JOURNAL_NO_MAX) -> tuple[BookedIn, *tuple[object, ...]]:
        """Return the parameters of TRADES after the Pockets, ignoring fields of subclasses; entries before `end`."""
        booked = BookedIn(self.traded_from, self.traded_to, self.booked_from, self.booked_to, end)
        return booked, *(getattr(self, name) for name in TradeFilters.__struct_fields__)


_FILTERED = """t.customer_id = $1 AND t.pocket_id = p.pocket_id AND t.entry_no >= $3 AND t.entry_no < $4
     AND ($5::text[] IS NULL OR t.activity = ANY($5))
     AND ($6::timestamptz IS NULL OR t.traded_at >= $6) AND ($7::timestamptz IS NULL OR t.traded_at < $7)
     AND ($8::date IS NULL OR t.book_date >= $8) AND ($9::date IS NULL OR t.book_date <= $9)
     AND ($10::date IS NULL OR t.settles_on >= $10) AND ($11::date IS NULL OR t.settles_on <= $11)"""
_COUNT = f"SELECT count(*) FROM unnest($2::uuid[]) AS p(pocket_id) JOIN trade t ON {_FILTERED}"


class _Trades(MergedList[TradeRow]):
    table = "trade"


TRADES = _Trades(
    f"""
SELECT {_COLUMNS} FROM unnest($2::uuid[]) AS p(pocket_id) CROSS JOIN LATERAL (
  SELECT * FROM trade t
   WHERE {_FILTERED}
     AND {{page}}) t
 {{order}}
""",
    _trades.read,
    entry_no="bigint",
    trade_no="smallint",
)
"""Trades of distinct Pockets of a customer, in a range of entries, by the values of TradeFilters; newest first."""


def by_id(columns: str) -> tuple[str, str]:
    """Return the statements of `find_by_id` for columns of a trade `t`.

    The id of a trade contains its position; trades of earlier releases are searched for in the Pocket.
    """
    searched = f"SELECT {columns} FROM trade t WHERE t.customer_id = $1 AND t.pocket_id = $2 AND t.trade_id = $3"
    return f"{searched} AND t.entry_no = $4 AND t.trade_no = $5::int", searched


_ONE = by_id(_COLUMNS)
_OF_ENTRY = f"""
SELECT {_COLUMNS} FROM trade t
 WHERE t.customer_id = $1 AND t.pocket_id = $2 AND t.entry_no = $3 ORDER BY t.trade_no
"""


async def list_of_entry(conn: Db, customer_id: UUID, pocket_id: UUID, entry_no: int) -> list[TradeRow]:
    """Return the trades of a Pocket in a journal entry."""
    return [TradeRow(*row) for row in await conn.fetch(_OF_ENTRY, customer_id, pocket_id, entry_no)]


async def get_trade_row(conn: Db, customer_id: UUID, pocket_id: UUID, trade_id: UUID) -> TradeRow:
    """Return a trade of a Pocket. Raises NotFound."""
    row = await find_by_id(conn, _ONE, (customer_id, pocket_id, trade_id))
    if row is None:
        raise NotFound("There is no such trade.")
    return TradeRow(*row)


async def find_by_id(conn: Db, statements: tuple[str, str], key: tuple[UUID, UUID, UUID]) -> Record | None:
    """Return a trade of a customer and a Pocket by its id."""
    by_place, searched = statements
    return await conn.fetchrow(by_place, *key, *place_of(key[2])) or await conn.fetchrow(searched, *key)


async def count_trades(conn: Db, customer_id: UUID, pocket_ids: list[UUID], booked: BookedIn, *filters: object) -> int:
    """Return the number of trades in the list with these parameters."""
    count: int = await conn.fetchval(
        _COUNT, customer_id, pocket_ids, *await entries_of(conn, customer_id, booked), *filters
    )
    return count
