"""Trades of v1 and v2, as pages and as one file."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from uuid import UUID

import msgspec

from billfold.accounts.trades import store as trade_store
from billfold.accounts.trades.pages import V1_ACTIVITIES, TradeQuery, trade_page
from billfold.accounts.trades.schemas import Trade, V1Trade, render_trade, render_v1_trade
from billfold.accounts.trades.store import TradeFilters, TradeRow
from billfold.http.csv_export import ROWS_PER_PAGE, csv_stream
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.customer_api.openapi import CSV_ANSWER
from billfold.http.limits.rate_groups import TRADES
from billfold.http.list_params import OrderedQuery, page_of
from billfold.http.operations import get, with_scope
from billfold.http.parameters import Query
from billfold.http.responses import StreamedResponse
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank

READS = with_scope("pockets.read", TRADES)
Accounts = Annotated[list[UUID] | None, Query(name="account[]")]
Pockets = Annotated[list[UUID] | None, Query(name="pocket_id[]")]
_COLUMNS = (
    "id",
    "service_account_id",
    "activity",
    "cusip",
    "description",
    "quantity",
    "price",
    "notional",
    "currency",
    "trade_datetime",
    "settled_date",
    "is_settled",
    "maturity_date",
    "yield_to_maturity",
    "tradable_id",
)


@get("/api/v1/trades/", READS, refuses=("not-found",))
async def list_v1_trades(
    member: CustomerCaller, bank: Bank, wanted: OrderedQuery, asked: TradeQuery, account: Accounts = None
) -> CursorList[V1Trade]:
    """List purchases, sales and maturities."""
    of = member.customer_id, await member.pockets(bank, account)
    asked = msgspec.structs.replace(asked, activities=V1_ACTIVITIES)
    scope = f"trades:v1:{member.customer_id}:{sorted(account or [])}"
    page = await trade_page(bank, scope, of, wanted, asked)
    return page_of(page, [render_v1_trade(row, bank, member.now) for row in page.items])


@get("/api/v1/trades.csv", READS, documented=CSV_ANSWER, refuses=("not-found",))
async def get_trades_csv(
    member: CustomerCaller, bank: Bank, asked: TradeQuery, account: Accounts = None
) -> StreamedResponse:
    """Read the same trades as one CSV file, newest first; `notional` in cents."""
    own = await member.pockets(bank, account)
    asked = msgspec.structs.replace(asked, activities=V1_ACTIVITIES)
    rows = partial(_rows, member, bank, own, asked)
    return csv_stream("trades.csv", _COLUMNS, rows, partial(_cells, member, bank))


@get("/api/v2/trades/", READS, refuses=("not-found",))
async def list_trades(
    member: CustomerCaller, bank: Bank, wanted: OrderedQuery, asked: TradeQuery, pocket_id: Pockets = None
) -> CursorList[Trade]:
    """List trades, transfers of bills included."""
    of = member.customer_id, await member.pockets(bank, pocket_id)
    scope = f"trades:v2:{member.customer_id}:{sorted(pocket_id or [])}"
    page = await trade_page(bank, scope, of, wanted, asked)
    return page_of(page, [render_trade(row, bank, member.now) for row in page.items])


async def _rows(
    member: CustomerCaller, bank: Bank, own: list[UUID], asked: TradeFilters, last: TradeRow | None
) -> list[TradeRow]:
    return await trade_store.list_trades(
        bank.pool,
        member.customer_id,
        own,
        asked,
        after=None if last is None else (last.journal_no, last.trade_no),
        descending=True,
        limit=ROWS_PER_PAGE,
    )


def _cells(member: CustomerCaller, bank: Bank, row: TradeRow) -> tuple[object, ...]:
    shown = render_v1_trade(row, bank, member.now)
    return (
        shown.id,
        shown.service_account_id,
        shown.activity,
        shown.cusip,
        shown.description,
        shown.quantity,
        shown.price,
        shown.notional.value,
        shown.notional.currency,
        shown.trade_datetime,
        shown.settled_date,
        shown.is_settled,
        shown.maturity_date,
        shown.yield_to_maturity,
        shown.tradable_id,
    )
