"""Reads of trades, in booking order, by index."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.accounts.entry_numbers import BookedIn, MergedList, entries_of
from billfold.platform.errors import NotFound
from billfold.platform.ids import place_of

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.calendars import Calendars
    from billfold.platform.database.connection import (Connection, Pool)

_ONE_DAY = timedelta(days=1)
_FIRST_DAY = date(2000, 1, 31)
"""No trade is so old; what the calendars say of earlier days is never asked for."""
_COLUMNS = (
    "t.customer_id, t.pocket_id, t.entry_no, t.trade_no, t.trade_id, t.activity, t.incoming, "
    "t.cusip, t.units, t.price_micros, t.notional, t.traded_at, t.book_date, t.settles_on, "
    "t.counter_pocket_id, t.transfer_id, t.tax_basis, "
    # Only of what went elsewhere is the other side looked up.
    "CASE WHEN t.activity = 'EXTERNAL_SECURITY_TRANSFER' THEN (SELECT s.counterparty_name "
    "FROM security_transfer s WHERE s.customer_id = $1 "
    "AND s.transfer_id = t.transfer_id) END AS counterparty_name"
)


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


class TradeFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Which trades: times from included and to excluded, dates both included."""

    activities: list[str] | None = None
    traded_from: datetime | None = None
    traded_to: datetime | None = None
    booked_from: date | None = None
    booked_to: date | None = None
    settled_from: date | None = None
    settled_to: date | None = None

    def by_calendars(self, calendars: Calendars) -> TradeFilters:
        """Return the filters of the days that trades agreed on: what was to settle on a closed day settles later."""
        settled_from, settled_to = self.settled_from, self.settled_to
        if settled_from is not None and settled_from > _FIRST_DAY:
            settled_from = calendars.settlement_on_or_before(settled_from - _ONE_DAY) + _ONE_DAY
        if settled_to is not None and settled_to > _FIRST_DAY:
            settled_to = calendars.settlement_on_or_before(settled_to)
        return msgspec.structs.replace(self, settled_from=settled_from, settled_to=settled_to)

    def values(self) -> tuple[BookedIn, *tuple[object, ...]]:
        """Return the values of TRADES after the Pockets, whatever subclasses add."""
        booked = BookedIn(self.traded_from, self.traded_to, self.booked_from, self.booked_to)
        return booked, *(getattr(self, name) for name in TradeFilters.__struct_fields__)


_FILTERED = """t.customer_id = $1 AND t.pocket_id = p.pocket_id AND t.entry_no >= $3 AND t.entry_no < $4
     AND ($5::text[] IS NULL OR t.activity = ANY($5))
     AND ($6::timestamptz IS NULL OR t.traded_at >= $6) AND ($7::timestamptz IS NULL OR t.traded_at < $7)
     AND ($8::date IS NULL OR t.book_date >= $8) AND ($9::date IS NULL OR t.book_date <= $9)
     AND ($10::date IS NULL OR t.settles_on >= $10) AND ($11::date IS NULL OR t.settles_on <= $11)"""
_COUNT = f"SELECT count(*) FROM unnest($2::uuid[]) AS p(pocket_id) JOIN trade t ON {_FILTERED}"


class _Trades(MergedList[TradeRow]):
    __slots__ = ()
    table = "trade"


TRADES = _Trades(
    f"""
SELECT {_COLUMNS} FROM unnest($2::uuid[]) AS p(pocket_id) CROSS JOIN LATERAL (
  SELECT * FROM trade t
   WHERE {_FILTERED}
     AND {{page}}) t
 {{order}}
""",
    lambda row: TradeRow(*row),
    entry_no="bigint",
    trade_no="smallint",
)
"""Trades of Pockets of a customer, each named once, between entries, by the values of TradeFilters; newest first."""

_BY_ID = "t.customer_id = $1 AND t.pocket_id = $2 AND t.trade_id = $3"
# The id of a trade says where it is, but for those that earlier releases booked: they are looked for in the Pocket.
_BY_PLACE = f"{_BY_ID} AND t.entry_no = $4 AND t.trade_no = $5::int"
_ONE = f"SELECT {_COLUMNS} FROM trade t"


async def get_trade_row(conn: Connection | Pool, customer_id: UUID, pocket_id: UUID, trade_id: UUID) -> TradeRow:
    """Return a trade of a Pocket. Raises NotFound."""
    row = await find_by_id(conn, _ONE, (customer_id, pocket_id, trade_id))
    if row is None:
        raise NotFound("There is no such trade.")
    return TradeRow(*row)


async def find_by_id(conn: Connection | Pool, selected: str, key: tuple[UUID, UUID, UUID]) -> Record | None:
    """Return a trade of a customer and a Pocket by its id, as `selected` FROM trade t."""
    row = await conn.fetchrow(f"{selected} WHERE {_BY_PLACE}", *key, *place_of(key[2]))
    return row or await conn.fetchrow(f"{selected} WHERE {_BY_ID}", *key)


async def count_trades(
    conn: Connection | Pool, customer_id: UUID, pocket_ids: list[UUID], booked: BookedIn, *filters: object
) -> int:
    """Return how many trades there are in the list of these values."""
    count: int = await conn.fetchval(
        _COUNT, customer_id, pocket_ids, *await entries_of(conn, customer_id, booked), *filters
    )
    return count
