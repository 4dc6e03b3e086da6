"""How new the market data is: the rates, and the newest bill of each term."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from billfold.bills.rules.issue_calendar import TERMS
from billfold.bills.rules.market import Market
from billfold.platform.errors import MarketDataStale


class MarketDataState(NamedTuple):
    """One kind of market data: what is newest in it, and why nothing is traded by it; empty when it is."""

    what: str
    newest: str
    problem: str = ""


def market_data_states(market: Market, at: datetime) -> Iterator[MarketDataState]:
    """Yield the state of the rates, then of the bills of each term, as they are at an instant."""
    problem = "" if market.is_current(at) else "too old: nothing is bought or sold"
    age = market.age_days(at)
    yield MarketDataState("rates", f"{market.last_day}, {age} bond market {'day' if age == 1 else 'days'} ago", problem)
    for weeks in TERMS:
        try:
            bill = market.on_the_run(weeks, market.calendars.business_date(at))
            simulated = ", simulated" if bill.simulated else ""
            yield MarketDataState(f"{weeks}-week bill", f"{bill.cusip}, issued {bill.first_issue}{simulated}")
        except MarketDataStale as stale:
            yield MarketDataState(f"{weeks}-week bill", "none", stale.detail)
