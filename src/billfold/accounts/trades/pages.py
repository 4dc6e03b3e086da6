"""Pages of trades of some Pockets of one customer, with the filters both APIs have."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from billfold.accounts.trades import store as trade_store
from billfold.accounts.trades.store import TradeFilters, TradeRow
from billfold.http.list_params import DayQuery, ListQuery, Since, Until
from billfold.http.parameters import Query
from billfold.ledger.bank import Bank
from billfold.platform.paging import Page

V1_ACTIVITIES = ["BUY", "SELL", "MATURITY"]


class TradeQuery(TradeFilters, frozen=True, kw_only=True):
    """Which trades: every filter None lets all through."""

    traded_from: Annotated[Since, Query(name="trade_datetime_from")] = None
    traded_to: Annotated[Until, Query(name="trade_datetime_to")] = None
    booked_from: Annotated[DayQuery, Query(name="book_date_from")] = None
    booked_to: Annotated[DayQuery, Query(name="book_date_to")] = None
    settled_from: Annotated[DayQuery, Query(name="settlement_date_from")] = None
    settled_to: Annotated[DayQuery, Query(name="settlement_date_to")] = None


async def trade_page(
    bank: Bank, scope: str, of: tuple[UUID, list[UUID]], wanted: ListQuery, asked: TradeFilters
) -> Page[TradeRow]:
    """One page of trades of (customer_id, pocket ids), newest booking first unless asked."""
    # A Pocket opened between two pages does not spoil the cursor: `scope` says what was asked.
    filters = {"descending": wanted.descending, **msgspec.to_builtins(asked)}
    return await wanted.page(
        bank.pager,
        scope,
        filters,
        read=lambda part: trade_store.list_trades(
            bank.pool,
            *of,
            asked,
            after=None if part.place is None else (int(part.place[0]), int(part.place[1])),
            descending=part.descending,
            limit=part.limit,
        ),
        sort_key_of=lambda row: (row.journal_no, row.trade_no),
    )
