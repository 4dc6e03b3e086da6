"""The trades of a company, filtered by the query; as a CSV file; one of them with its confirmation."""

from litestar import get

from billfold.accounts.explain.prices import PriceField
from billfold.accounts.pockets.routes import get_pocket
from billfold.accounts.trades.routes import get_trade, get_trades_csv, list_customer_trades
from billfold.accounts.trades.schemas import Buy, Sell, Trade
from billfold.platform.dates import et_date
from billfold.reports.routes import redirect_to_confirmation
from billfold.web.console.lists import list_choices, operation_filters, read_listing
from billfold.web.console.team import InCompany
from billfold.web.page_context import PageResponse, path_id, redirect

_PAGE = 30
_FILTERS = {
    "pocket": "pocket_id[]",
    "from": "book_date_from",
    "to": "book_date_to",
    "settled_from": "settlement_date_from",
    "settled_to": "settlement_date_to",
    "as_of": "as_of",
}


@get("/companies/{customer_id:str}/trades")
async def show_trades(company: InCompany) -> PageResponse:
    """Show trades, the newest first."""
    listing = await read_listing(company, list_customer_trades, _FILTERS, limit=_PAGE)
    shown = [each.pocket_id for each in listing.rows.items]
    names = await list_choices(company, shown, listing.filters.get("pocket", ""))
    return company.render("trades", listing=listing, names=names)


@get("/companies/{customer_id:str}/trades.csv")
async def download_trades(company: InCompany) -> PageResponse:
    """Download the filtered trades."""
    names = {**_FILTERS, "pocket": "account[]"}
    filters = operation_filters(company.page.query, names)
    return await company.api.download(get_trades_csv, **filters, columns="people")


@get("/companies/{customer_id:str}/pockets/{pocket_id:str}/trades/{trade_id:str}")
async def show_trade(company: InCompany, pocket_id: str, trade_id: str) -> PageResponse:
    """Show one trade."""
    key, api = path_id(pocket_id, "There is no such Pocket."), company.api
    company.look_back()
    trade: Trade = await api.get(get_trade, pocket_id=key, trade_id=path_id(trade_id, "There is no such trade."))
    counter = getattr(trade, "counter_pocket_id", None)
    return company.render(
        "trade",
        trade=trade,
        activity=trade.__struct_config__.tag,
        price_field=_price_field(trade),
        pocket=await api.get(get_pocket, pocket_id=key, omit="PORTFOLIO"),
        counter_pocket=await api.get(get_pocket, pocket_id=counter, omit="PORTFOLIO") if counter else None,
    )


@get("/companies/{customer_id:str}/pockets/{pocket_id:str}/trades/{trade_id:str}/confirmation")
async def download_confirmation(company: InCompany, pocket_id: str, trade_id: str) -> PageResponse:
    """Redirect to the confirmation of a trade, a PDF."""
    names = {"account_id": path_id(pocket_id), "trade_id": path_id(trade_id, "There is no such trade.")}
    return redirect(await company.api.location_of(redirect_to_confirmation, **names))


def _price_field(trade: Trade) -> PriceField | None:
    """Return the kind of price of a trade; None if it has no price."""
    if isinstance(trade, Buy):
        return PriceField.ASK
    if not isinstance(trade, Sell):
        return None
    is_same_day = trade.settled_date == et_date(trade.trade_datetime)
    return PriceField.BID_T0 if is_same_day else PriceField.BID_T1
