"""Pages of trades of some Pockets of one customer, with the filters both APIs have."""

from __future__ import annotations

from uuid import UUID

import msgspec
from litestar.di import Provide

from billfold.domain import trades
from billfold.domain.trades import TradeRow, WantedTrades
from billfold.engine.bank import Bank
from billfold.interfaces.http.lists import DayText, ListQuery, Since, Until, list_query
from billfold.interfaces.http.transaction_lists import day, instant, through
from billfold.kit.paging import Page

V1_ACTIVITIES = ["BUY", "SELL", "MATURITY"]


def _dates(
    trade_datetime_from: Since = None,
    trade_datetime_to: Until = None,
    book_date_from: DayText = None,
    book_date_to: DayText = None,
    settlement_date_from: DayText = None,
    settlement_date_to: DayText = None,
) -> WantedTrades:
    return WantedTrades(
        traded_from=instant("trade_datetime_from", trade_datetime_from),
        traded_to=through("trade_datetime_to", trade_datetime_to),
        booked_from=day("book_date_from", book_date_from),
        booked_to=day("book_date_to", book_date_to),
        settled_from=day("settlement_date_from", settlement_date_from),
        settled_to=day("settlement_date_to", settlement_date_to),
    )


DATES = {"asked": Provide(_dates, sync_to_thread=False)}
LISTED = {**list_query(ordered=True), **DATES}


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
