"""Pages of trades of some Pockets of one customer, with the filters both APIs have."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from billfold.domain import trades
from billfold.domain.trades import TradeRow, WantedTrades
from billfold.engine.bank import Bank
from billfold.interfaces.http.lists import DayQuery, ListQuery, Since, Until
from billfold.interfaces.http.parameters import Query
from billfold.kit.paging import Page

V1_ACTIVITIES = ["BUY", "SELL", "MATURITY"]


class TradeQuery(WantedTrades, frozen=True, kw_only=True):
    """Which trades: every filter None lets all through."""

    traded_from: Annotated[Since, Query(name="trade_datetime_from")] = None
    traded_to: Annotated[Until, Query(name="trade_datetime_to")] = None
    booked_from: Annotated[DayQuery, Query(name="book_date_from")] = None
    booked_to: Annotated[DayQuery, Query(name="book_date_to")] = None
    settled_from: Annotated[DayQuery, Query(name="settlement_date_from")] = None
    settled_to: Annotated[DayQuery, Query(name="settlement_date_to")] = None


async def trade_page(
    bank: Bank, scope: str, of: tuple[UUID, list[UUID]], wanted: ListQuery, asked: WantedTrades
) -> Page[TradeRow]:
    """One page of trades of (customer_id, pocket ids), newest booking first unless asked."""
    # A Pocket opened between two pages does not spoil the cursor: `scope` says what was asked.
    filters = {"descending": wanted.descending, **msgspec.to_builtins(asked)}
    position = wanted.position(bank.pager, scope, filters)
    backwards = position is not None and position.direction == "prev"
    rows = await trades.list_trades(
        bank.pool,
        *of,
        asked,
        after=(int(position.place[0]), int(position.place[1])) if position else None,
        descending=wanted.descending != backwards,
        limit=wanted.limit + 1,
    )
    return bank.pager.page(
        scope,
        filters,
        rows,
        limit=wanted.limit,
        came_from=position,
        place_of=lambda row: (row.journal_no, row.trade_no),
    )
