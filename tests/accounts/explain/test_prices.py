"""Prices are explained at any published rate, below zero too, where a bid is par."""

from datetime import date

import pytest

from billfold.accounts.explain.prices import PriceField, explain_price
from billfold.bills import market_data
from billfold.bills.rules.market import Market
from billfold.bills.types import DailyRates, Quote
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant

CALENDARS = Calendars()
NOW = et_instant(date(2025, 6, 2), 9)


@pytest.mark.parametrize("milli", [(-5_000, -5_000), (-40, 30), (-3, 4_000)])
def test_every_price_has_an_explanation_with_negative_rates(milli):
    quotes = tuple(Quote(weeks, each, each) for weeks, each in zip((4, 52), milli, strict=True))
    rates = [DailyRates(date(2025, 6, 2), quotes)]
    market = Market(CALENDARS, market_data.securities(), market_data.auctions(), rates=rates)
    for weeks in (4, 13, 26, 52):
        bill = market.on_the_run(weeks, NOW.date())
        for field in PriceField:
            explained = explain_price(market, bill, NOW, field)
            assert explained.steps[-1].exact, (weeks, field)
