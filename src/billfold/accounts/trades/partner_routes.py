"""Trades of v1 and v2."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.trades.pages import V1_ACTIVITIES, TradeQuery, trade_page
from billfold.accounts.trades.schemas import Trade, V1Trade, render_trade, render_v1_trade
from billfold.http.caller import Caller
from billfold.http.list_params import OrderedQuery, page_of
from billfold.http.operations import get
from billfold.http.parameters import Query
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank

Accounts = Annotated[list[UUID] | None, Query(name="account[]")]
Pockets = Annotated[list[UUID] | None, Query(name="pocket_id[]")]


@get("/api/v1/customers/{customer_id}/trades/")
async def list_v1_customer_trades(
    caller: Caller, bank: Bank, customer_id: UUID, wanted: OrderedQuery, asked: TradeQuery, account: Accounts = None
) -> CursorList[V1Trade]:
    """List a customer's purchases, sales and maturities."""
    owner, own = await _resolve_pockets(caller, bank, customer_id, account)
    asked = msgspec.structs.replace(asked, activities=V1_ACTIVITIES)
    scope = f"trades:customer:{owner}:{sorted(account or [])}"
    page = await trade_page(bank, scope, (owner, own), wanted, asked)
    return page_of(page, [render_v1_trade(row, bank, caller.now) for row in page.items])


@get("/api/v1/service-accounts/{account_id}/trades/")
async def list_v1_trades(
    caller: Caller, bank: Bank, account_id: UUID, wanted: OrderedQuery, asked: TradeQuery
) -> CursorList[V1Trade]:
    """List an account's purchases, sales and maturities."""
    owner, own_id = await caller.pocket(bank, account_id)
    asked = msgspec.structs.replace(asked, activities=V1_ACTIVITIES)
    page = await trade_page(bank, f"trades:pocket:{own_id}", (owner, [own_id]), wanted, asked)
    return page_of(page, [render_v1_trade(row, bank, caller.now) for row in page.items])


@get("/api/v2/customers/{customer_id}/trades/")
async def list_customer_trades(
    caller: Caller, bank: Bank, customer_id: UUID, wanted: OrderedQuery, asked: TradeQuery, pocket_id: Pockets = None
) -> CursorList[Trade]:
    """List a customer's trades, transfers of bills included."""
    owner, own = await _resolve_pockets(caller, bank, customer_id, pocket_id)
    scope = f"trades:customer:{owner}:{sorted(pocket_id or [])}"
    page = await trade_page(bank, scope, (owner, own), wanted, asked)
    return page_of(page, [render_trade(row, bank, caller.now) for row in page.items])


@get("/api/v2/pockets/{pocket_id}/trades/")
async def list_pocket_trades(
    caller: Caller, bank: Bank, pocket_id: UUID, wanted: OrderedQuery, asked: TradeQuery
) -> CursorList[Trade]:
    """List a Pocket's trades, transfers of bills included."""
    owner, own_id = await caller.pocket(bank, pocket_id)
    page = await trade_page(bank, f"trades:pocket:{own_id}", (owner, [own_id]), wanted, asked)
    return page_of(page, [render_trade(row, bank, caller.now) for row in page.items])


async def _resolve_pockets(
    caller: Caller, bank: Bank, customer_id: UUID, asked: list[UUID] | None
) -> tuple[UUID, list[UUID]]:
    owner = await caller.customer_id(bank, customer_id)
    if asked is None:
        return owner, await pocket_store.list_ids(bank.pool, owner)
    ids = dict.fromkeys(asked)
    return owner, [await caller.pocket_of(bank, owner, each) for each in ids]
