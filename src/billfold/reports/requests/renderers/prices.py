"""The security price report: a row for each bill and each day the bond market was open, when the day is over.

Prices as they were recorded when the bank closed the day: bid of the same day, ask of the next, and the price that
holdings are valued at. Those of bills that nobody held are computed of the same published rates.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from typing import IO, Final

from billfold.bills.rules.strategies import STRATEGIES
from billfold.ledger.bank import Bank
from billfold.platform.csv_text import lines_of
from billfold.platform.errors import MarketDataStale
from billfold.reports.requests.renderers.amounts import per_hundred
from billfold.reports.requests.renderers.facts import cusips_traded
from billfold.reports.requests.types import ReportSource

COLUMNS: Final = (
    "price_date",
    "cusip",
    "isin",
    "maturity_date",
    "bid_price",
    "ask_price",
    "end_of_day_price",
    "discount_rate",
)
_ONE_DAY = timedelta(days=1)
_RECORDED = """
SELECT cusip, bid_micros, ask_micros, mark_micros FROM closing_price WHERE business_date = $1 AND cusip = ANY($2)
"""
Prices = tuple[int, int, int]


async def write_prices(source: ReportSource, output: IO[bytes]) -> None:
    """Write the prices of the bills named; else of those on the run and those that the customer has traded."""
    bank, parameters = source.bank, source.request.parameters
    output.write(lines_of([COLUMNS]))
    request = source.request
    traded = () if parameters.cusips else await cusips_traded(bank.pool, request.customer_id, request.entry_no)
    for day in _days(source):
        cusips = sorted(parameters.cusips or {*traded, *_on_the_run(bank, day)})
        rows = await bank.pool.fetch(_RECORDED, day, cusips)
        recorded = {row["cusip"]: (row["bid_micros"], row["ask_micros"], row["mark_micros"]) for row in rows}
        output.write(lines_of(_rows(bank, day, cusips, recorded)))


def _days(source: ReportSource) -> Iterator[date]:
    """Yield the days of the range on which there are prices, as far as they were over at the request."""
    calendars, market = source.bank.calendars, source.bank.market
    first, last = source.request.parameters.date_from, source.request.parameters.date_to
    assert first is not None
    assert last is not None
    for number in range((last - first).days + 1):
        day = first + number * _ONE_DAY
        is_over = calendars.closes_at(day) <= source.request.created_at
        if day >= market.first_day and calendars.is_bond_day(day) and is_over:
            yield day


def _on_the_run(bank: Bank, day: date) -> Iterator[str]:
    for strategy in STRATEGIES:
        with suppress(MarketDataStale):
            yield bank.market.on_the_run(strategy.maturity_weeks, day).cusip


def _rows(bank: Bank, day: date, cusips: list[str], recorded: dict[str, Prices]) -> Iterator[tuple[object, ...]]:
    market, at = bank.market, bank.calendars.closes_at(day)
    for cusip in cusips:
        bill = market.bill(cusip)
        if not bill.first_issue <= day < bill.maturity:
            continue
        prices = recorded.get(cusip) or (market.t0_bid(bill, at), market.ask(bill, at), market.mark(bill, at))
        rate = Decimal(market.bid_rate(bill, day)).scaleb(-3)
        yield (day, cusip, bill.isin, bill.maturity, *map(per_hundred, prices), rate)
