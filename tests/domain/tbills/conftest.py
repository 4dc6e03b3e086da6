"""The packaged market, and markets small enough to work out by hand."""

from collections.abc import Callable
from datetime import date

import pytest

from billfold.domain.tbills import Bill, DailyRates, Market, Quote
from billfold.domain.tbills.cusips import isin_of
from billfold.kit.calendars import Calendars

MarketBuilder = Callable[..., Market]


@pytest.fixture(scope="session")
def calendars() -> Calendars:
    return Calendars()


@pytest.fixture(scope="session")
def market(calendars: Calendars) -> Market:
    return Market.packaged(calendars)


@pytest.fixture(scope="session")
def he0() -> Bill:
    """The 52-week bill of the worked examples."""
    cusip = "912797HE0"
    return Bill(cusip, isin_of(cusip), date(2024, 10, 31), date(2023, 11, 2), "52-Week")


@pytest.fixture(scope="session")
def flat_market(calendars: Calendars) -> MarketBuilder:
    """Build a market in which every term is bid at one rate for ever."""

    def build(rate_milli: int, *bills: Bill) -> Market:
        rates = [DailyRates(date(2023, 1, 3), (Quote(26, rate_milli, rate_milli),))]
        return Market.from_rows(calendars, bills, [], rates)

    return build
