"""Trades of v1 and v2, as pages and as one file."""

from collections.abc import Iterable
from decimal import Decimal
from operator import attrgetter
from typing import Annotated
from uuid import UUID

import msgspec

from billfold.accounts.pockets.as_of_store import entries_end
from billfold.accounts.pockets.requests import resolve_pockets
from billfold.accounts.pockets.store import list_by_id
from billfold.accounts.trades.schemas import Trade, V1Trade, render_trade, render_v1_trade
from billfold.accounts.trades.store import TRADES, TradeFilters, TradeRow, get_trade_row
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, MaybeInPath, get, with_scope
from billfold.http.parameters import DayQuery, OrderedQuery, Query, Since, Until, searched_page_of
from billfold.http.responses import (
    CSV_ANSWER,
    ROWS_PER_PAGE,
    ColumnChoice,
    Columns,
    Separated,
    StreamedResponse,
    csv_stream,
)
from billfold.http.schemas import SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.database.paging import Page
from billfold.platform.dates import ET
from billfold.platform.errors import NotFound
from billfold.platform.text import Separators

V1_ACTIVITIES = ["BUY", "SELL", "MATURITY"]


class TradeQuery(TradeFilters, frozen=True, kw_only=True):
    """Filter of trades; None does not filter."""

    traded_from: Annotated[Since, Query(name="trade_datetime_from")] = None
    traded_to: Annotated[Until, Query(name="trade_datetime_to")] = None
    booked_from: Annotated[DayQuery, Query(name="book_date_from")] = None
    booked_to: Annotated[DayQuery, Query(name="book_date_to")] = None
    settled_from: Annotated[DayQuery, Query(name="settlement_date_from")] = None
    settled_to: Annotated[DayQuery, Query(name="settlement_date_to")] = None


READS = with_scope("pockets.read", "trades")
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
_DECIMALS = frozenset({"price", "yield_to_maturity"})
_PATHS = {"notional": "notional.value", "currency": "notional.currency"}
_cells = attrgetter(*(_PATHS.get(name, name) for name in _COLUMNS))
_PEOPLE = (
    *("Date", "Time (Eastern)", "Pocket", "Activity", "Bill", "CUSIP", "Units of $100", "Price"),
    *("Amount (USD)", "Settles", "Matures", "Yield (%)"),
)


@get("/api/v1/customers/{customer_id}/trades/", as_of=True)
@get("/api/v1/trades/", READS, name="list_v1_trades", refuses=("not-found",), as_of=True)
async def list_v1_customer_trades(
    *,
    caller: Call,
    bank: Bank,
    customer_id: MaybeInPath,
    wanted: OrderedQuery,
    query: TradeQuery,
    account: Accounts = None,
) -> SearchedList[V1Trade]:
    """List trades (v1).

    Returns purchases, sales and maturities of a customer.
    """
    owner, own = await _resolve_pockets(caller, bank, customer_id, requested=account)
    scope = f"trades:v1:{owner}:{sorted(account or [])}"
    return await _v1_page(caller, bank, scope, of=(owner, own), wanted=wanted, query=query)


@get("/api/v1/service-accounts/{account_id}/trades/", as_of=True)
async def list_v1_trades(
    caller: Caller, bank: Bank, account_id: UUID, wanted: OrderedQuery, query: TradeQuery
) -> SearchedList[V1Trade]:
    """List trades of an account.

    Returns purchases, sales and maturities in their v1 form.
    """
    owner, own_id = await caller.pocket(bank, account_id)
    return await _v1_page(caller, bank, f"trades:pocket:{own_id}", of=(owner, [own_id]), wanted=wanted, query=query)


@get("/api/v1/trades.csv", READS, documented=CSV_ANSWER, refuses=("not-found",), as_of=True)
async def get_trades_csv(
    *,
    member: CustomerCaller,
    bank: Bank,
    query: TradeQuery,
    account: Accounts = None,
    separator: Separated = Separators.COMMA,
    columns: ColumnChoice = Columns.FIELDS,
) -> StreamedResponse:
    """Download trades as CSV.

    Returns the trades of `/api/v1/trades/` in one file, newest first; `notional` in cents, or for people in dollars.
    """
    _, own = await _resolve_pockets(member, bank, None, requested=account)
    end = await entries_end(bank.pool, member.customer_id, own, member.as_of)
    values = (member.customer_id, own, *_of_v1(query).values(end))

    async def fetch(bank: Bank, last: TradeRow | None) -> list[TradeRow]:
        after = None if last is None else (last.entry_no, last.trade_no)
        return await TRADES.rows(bank.pool, *values, after=after, limit=ROWS_PER_PAGE)

    is_for_people = columns == Columns.PEOPLE
    keys = [(member.customer_id, each) for each in own]
    pockets = await list_by_id(bank.pool, keys, member.as_of) if is_for_people else []
    names = {each.pocket_id: each.name for each in pockets}

    def cells_of(row: TradeRow) -> Iterable[object]:
        if is_for_people:
            return _cells_for_people(row, render_v1_trade(row, bank, member.now), names[row.pocket_id])
        shown = zip(_COLUMNS, _cells(render_v1_trade(row, bank, member.now)), strict=True)
        return (Decimal(value) if name in _DECIMALS else value for name, value in shown)

    shown = _PEOPLE if is_for_people else _COLUMNS
    return csv_stream("trades.csv", shown, fetch, cells_of=cells_of, separators=separator, bank=bank)


def _cells_for_people(row: TradeRow, trade: V1Trade, pocket: str) -> Iterable[object]:
    at = row.traded_at.astimezone(ET)
    return (
        *(at.date().isoformat(), f"{at:%H:%M}", pocket, row.activity.capitalize(), trade.description, row.cusip),
        *(row.units, Decimal(trade.price), Decimal(row.notional).scaleb(-2)),
        *(row.settles_on.isoformat(), trade.maturity_date.isoformat(), Decimal(trade.yield_to_maturity) * 100),
    )


@get("/api/v2/customers/{customer_id}/trades/", as_of=True)
@get("/api/v2/trades/", READS, name="list_trades", refuses=("not-found",), as_of=True)
async def list_customer_trades(
    *,
    caller: Call,
    bank: Bank,
    customer_id: MaybeInPath,
    wanted: OrderedQuery,
    query: TradeQuery,
    pocket_id: Pockets = None,
) -> SearchedList[Trade]:
    """List trades.

    Returns all trades of a customer, including transfers of bills.
    """
    owner, own = await _resolve_pockets(caller, bank, customer_id, requested=pocket_id)
    scope = f"trades:v2:{owner}:{sorted(pocket_id or [])}"
    return await _trade_page(caller, bank, scope, of=(owner, own), wanted=wanted, query=query)


@get("/api/v2/pockets/{pocket_id}/trades/", as_of=True)
async def list_pocket_trades(
    caller: Caller, bank: Bank, pocket_id: UUID, wanted: OrderedQuery, query: TradeQuery
) -> SearchedList[Trade]:
    """List trades of a Pocket.

    Returns all trades, including transfers of bills.
    """
    owner, own_id = await caller.pocket(bank, pocket_id)
    return await _trade_page(caller, bank, f"trades:pocket:{own_id}", of=(owner, [own_id]), wanted=wanted, query=query)


@get("/api/v2/pockets/{pocket_id}/trades/{trade_id}/", SIGNED, READS, as_of=True)
async def get_trade(caller: Call, bank: Bank, pocket_id: UUID, trade_id: UUID) -> Trade:
    """Get trade."""
    owner, own_id = await caller.pocket(bank, pocket_id)
    end = await entries_end(bank.pool, owner, [own_id], caller.as_of)
    row = await get_trade_row(bank.pool, owner, own_id, trade_id)
    if row.entry_no >= end:
        raise NotFound("There is no such trade.")
    return render_trade(row, bank, caller.now)


async def _resolve_pockets(
    caller: Call, bank: Bank, customer_id: UUID | None, requested: list[UUID] | None
) -> tuple[UUID, list[UUID]]:
    owner = await caller.owner(bank, customer_id)
    return owner, await resolve_pockets(caller, bank, owner, requested=requested)


async def _trade_page(
    caller: Call, bank: Bank, scope: str, of: tuple[UUID, list[UUID]], wanted: OrderedQuery, query: TradeFilters
) -> SearchedList[Trade]:
    page = await _read_trades(caller, bank, wanted, query, scope=scope, of=of)
    return searched_page_of(page, [render_trade(row, bank, caller.now) for row in page.items])


async def _v1_page(
    caller: Call, bank: Bank, scope: str, of: tuple[UUID, list[UUID]], wanted: OrderedQuery, query: TradeFilters
) -> SearchedList[V1Trade]:
    page = await _read_trades(caller, bank, wanted, _of_v1(query), scope=scope, of=of)
    return searched_page_of(page, [render_v1_trade(row, bank, caller.now) for row in page.items])


async def _read_trades(
    caller: Call, bank: Bank, wanted: OrderedQuery, query: TradeFilters, scope: str, of: tuple[UUID, list[UUID]]
) -> Page[TradeRow]:
    """Return a page of trades of (customer_id, pocket ids), newest booking first unless requested otherwise."""
    # A Pocket opened between two pages does not invalidate the cursor: `scope` names what was requested.
    end = await entries_end(bank.pool, *of, caller.as_of)
    values = query.by_calendars(bank.calendars).values(end)
    filters = query if caller.as_of is None else (query, caller.as_of)
    return await wanted.read(bank, TRADES, *of, *values, scope=scope, filters=filters)


def _of_v1(query: TradeFilters) -> TradeFilters:
    return msgspec.structs.replace(query, activities=V1_ACTIVITIES)
