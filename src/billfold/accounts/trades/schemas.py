"""Trades: v2 by activity, and their older form in v1."""

from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.accounts.trades.store import TradeRow
from billfold.bills import types
from billfold.bills.rules import yields
from billfold.http.schemas import Amount, format_price, one_of, usd
from billfold.ledger.bank import Bank
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date
from billfold.platform.money import PRICE_PAR_MICROS


class SharedTrade(msgspec.Struct, kw_only=True):
    """The fields of every trade of v2."""

    id: UUID
    trade_datetime: datetime
    book_date: date
    settled_date: date | None
    status: Literal["BOOKED", "SETTLED"]
    pocket_id: UUID
    cusip: str
    quantity: int
    maturity_date: date


class PricedTrade(SharedTrade, kw_only=True):
    """The additional fields of purchases, sales and maturities."""

    description: str
    price: str
    notional: Amount
    yield_to_maturity: str
    object_type: Literal["Trade"] = "Trade"


class Buy(PricedTrade, kw_only=True, tag_field="activity", tag="BUY"):
    """Bills bought."""


class Sell(PricedTrade, kw_only=True, tag_field="activity", tag="SELL"):
    """Bills sold."""


class Maturity(PricedTrade, kw_only=True, tag_field="activity", tag="MATURITY"):
    """Bills redeemed at par."""


class SameEntitySecurityTransfer(SharedTrade, kw_only=True, tag_field="activity", tag="SAME_ENTITY_SECURITY_TRANSFER"):
    """Bills moved between two Pockets of one customer."""

    market_value: Amount
    direction: Literal["IN", "OUT"]
    counter_pocket_id: UUID | None
    on_us_transfer_id: UUID | None
    object_type: Literal["SecurityTransfer"] = "SecurityTransfer"


class ExternalSecurityTransfer(SharedTrade, kw_only=True, tag_field="activity", tag="EXTERNAL_SECURITY_TRANSFER"):
    """Bills received from or sent to a custodian elsewhere."""

    market_value: Amount
    direction: Literal["IN", "OUT"]
    counterparty_name: str
    object_type: Literal["SecurityTransfer"] = "SecurityTransfer"


Trade = Buy | Sell | Maturity | SameEntitySecurityTransfer | ExternalSecurityTransfer
_PRICED: dict[str, type[Buy | Sell | Maturity]] = {"BUY": Buy, "SELL": Sell, "MATURITY": Maturity}


class V1Trade(msgspec.Struct, kw_only=True):
    """A trade of v1."""

    id: UUID
    trade_datetime: datetime
    settled_date: date | None
    is_settled: bool
    activity: Annotated[str, one_of("BUY", "SELL", "MATURITY")]
    cusip: str
    description: str
    notional: Amount
    quantity: int
    price: str
    maturity_date: date
    service_account_id: UUID
    yield_to_maturity: str
    tradable_id: UUID
    object_type: Literal["Trade"] = "Trade"


def render_trade(row: TradeRow, bank: Bank, now: datetime) -> Trade:
    """Return a trade for display, v2."""
    bill = bank.market.bill(row.cusip)
    settled_on = settles_on(row, bank.calendars)
    settled = is_settled(row, now, bank.calendars)
    shared: dict[str, Any] = {
        "id": row.trade_id,
        "trade_datetime": row.traded_at,
        "book_date": row.book_date,
        "settled_date": settled_on if settled else None,
        "status": "SETTLED" if settled else "BOOKED",
        "pocket_id": row.pocket_id,
        "cusip": row.cusip,
        "quantity": row.units,
        "maturity_date": bill.maturity,
    }
    if priced := _PRICED.get(row.activity):
        return priced(
            **shared,
            description=bill.description,
            price=format_price(row.price_micros),
            notional=usd(row.notional),
            yield_to_maturity=yield_of(row, bank),
        )
    moved = shared | {"market_value": usd(row.notional), "direction": "IN" if row.incoming else "OUT"}
    if row.activity == "EXTERNAL_SECURITY_TRANSFER":
        return ExternalSecurityTransfer(**moved, counterparty_name=row.counterparty_name or "")
    return SameEntitySecurityTransfer(
        **moved, counter_pocket_id=row.counter_pocket_id, on_us_transfer_id=row.transfer_id
    )


def render_v1_trade(row: TradeRow, bank: Bank, now: datetime) -> V1Trade:
    """Return the same trade in its older form."""
    bill = bank.market.bill(row.cusip)
    settled_on = settles_on(row, bank.calendars)
    settled = is_settled(row, now, bank.calendars)
    return V1Trade(
        id=row.trade_id,
        trade_datetime=row.traded_at,
        settled_date=settled_on if settled else None,
        is_settled=settled,
        activity=row.activity,
        cusip=row.cusip,
        description=bill.description,
        notional=usd(row.notional),
        quantity=row.units,
        price=format_price(row.price_micros),
        maturity_date=bill.maturity,
        service_account_id=row.pocket_id,
        yield_to_maturity=yield_of(row, bank),
        tradable_id=types.tradable_id(row.cusip),
    )


def yield_of(row: TradeRow, bank: Bank) -> str:
    """Return the investment rate of a trade's price as a fraction: "0.04286"; "0" at par."""
    bill, since = bank.market.bill(row.cusip), priced_from(row, bank.calendars)
    if row.price_micros >= PRICE_PAR_MICROS or since >= bill.maturity:
        return "0"
    percent = yields.investment_rate(row.price_micros, since, bill.maturity)
    return f"{percent / 100:.5f}"


def priced_from(row: TradeRow, calendars: Calendars) -> date:
    """Return the settlement day from which the price of a trade counts its days.

    It is the day the trade settles on, except for a sale that settles on its own business date: at night or on a
    closed day that is later than the day of the last price, which counts.
    """
    return calendars.pricing_day(row.traded_at) if row.settles_on == row.book_date else row.settles_on


def settles_on(row: TradeRow, calendars: Calendars) -> date:
    """Return the day a trade settles on: the next open one if its own has been declared closed since."""
    return calendars.settlement_on_or_after(row.settles_on)


def is_settled(row: TradeRow, now: datetime, calendars: Calendars) -> bool:
    """Return whether a trade is settled: bills settle on their day, not on the evening before with its business date.

    A day that was declared closed since settles nothing: the next open one does.
    """
    return calendars.has_settled(row.settles_on, et_date(now))
