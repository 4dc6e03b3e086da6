"""The market in its tables: loaded once, newer files added, nothing changed."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from billfold.bills import market_data
from billfold.bills.imports import import_auctions, import_rates, load_bundled_market
from billfold.bills.rules.market import Market
from billfold.bills.store import load_market
from billfold.bills.types import Auction, DailyRates, Quote
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant
from billfold.platform.errors import InvalidInput

NEW_DAY = date(2026, 11, 20)
NEW = Auction(
    cusip="912797ZZ1",
    term="4-Week",
    auction_date=date(2026, 11, 18),
    issue_date=date(2026, 11, 24),
    maturity=date(2026, 12, 22),
)


async def test_the_market_loaded_from_its_tables_equals_the_bundled_market(conn):
    await load_bundled_market(conn)
    calendars = Calendars()
    loaded, direct = await load_market(conn), Market.packaged(calendars)
    for day in (date(2023, 6, 1), date(2025, 6, 2), date(2026, 7, 1), date(2027, 3, 3)):
        at = et_instant(day, 11)
        for weeks in (4, 13, 26, 52):
            bill = direct.on_the_run(weeks, day)
            assert loaded.on_the_run(weeks, day) == bill
            assert loaded.ask(bill, at) == direct.ask(bill, at)
            assert loaded.mark(bill, at) == direct.mark(bill, at)


async def test_loading_the_bundled_market_into_an_existing_market_changes_nothing(conn):
    await load_bundled_market(conn)
    await conn.execute("DELETE FROM bill_rate WHERE day > '2023-01-05'")
    await load_bundled_market(conn)
    assert await conn.fetchval("SELECT max(day) FROM bill_rate") == date(2023, 1, 5)


async def test_importing_rates_adds_new_days_and_skips_known_days(conn):
    await load_bundled_market(conn)
    new = DailyRates(NEW_DAY, (Quote(4, 3950, 4010), Quote(26, 3700, 3800)))
    done = await import_rates(conn, (*market_data.rates()[-3:], new), today=NEW_DAY)
    assert done == (1, 3)
    assert await conn.fetchval("SELECT count(*) FROM bill_rate WHERE day = $1", NEW_DAY) == 2


async def test_a_rate_import_with_one_contradicting_day_is_refused_as_a_whole(conn):
    await load_bundled_market(conn)
    last = market_data.rates()[-1]
    other = replace(last, quotes=(Quote(4, 1, 1),))
    with pytest.raises(InvalidInput, match=last.day.isoformat()):
        await import_rates(conn, (DailyRates(NEW_DAY, (Quote(4, 3950, 4010),)), other), today=NEW_DAY)
    assert await conn.fetchval("SELECT max(day) FROM bill_rate") == last.day


async def test_rates_of_a_future_day_are_refused(conn):
    await load_bundled_market(conn)
    with pytest.raises(InvalidInput, match="is after today"):
        await import_rates(conn, [DailyRates(NEW_DAY, (Quote(4, 3950, 4010),))], today=NEW_DAY - timedelta(days=1))


async def test_importing_a_new_auction_adds_its_bill(conn):
    await load_bundled_market(conn)
    assert await import_auctions(conn, [NEW]) == (1, 0)
    bill = (await load_market(conn)).bill(NEW.cusip)
    assert (bill.maturity, bill.original_term) == (NEW.maturity, "4-Week")


async def test_an_auction_result_completes_an_auction_recorded_without_one(conn):
    await load_bundled_market(conn)
    await import_auctions(conn, [NEW])
    result = replace(NEW, price_micros=99_690_000, high_rate_milli=3985, basis="published")
    assert await import_auctions(conn, [result]) == (1, 0)
    assert await import_auctions(conn, [result]) == (0, 1)
    row = await conn.fetchrow("SELECT * FROM auction WHERE cusip = $1", NEW.cusip)
    assert (row["price_micros"], row["basis"]) == (99_690_000, "published")


@pytest.mark.parametrize("change", [{"price_micros": 99_000_000}, {"term": "8-Week"}])
async def test_an_auction_that_contradicts_the_record_is_refused(conn, change):
    await load_bundled_market(conn)
    result = replace(NEW, price_micros=99_690_000, high_rate_milli=3985, basis="published")
    await import_auctions(conn, [result])
    with pytest.raises(InvalidInput, match="otherwise"):
        await import_auctions(conn, [replace(result, **change)])


async def test_an_auction_with_a_different_maturity_for_its_bill_is_refused(conn):
    await load_bundled_market(conn)
    await import_auctions(conn, [NEW])
    again = replace(NEW, issue_date=date(2026, 12, 1), maturity=date(2026, 12, 29))
    with pytest.raises(InvalidInput, match="maturity_date"):
        await import_auctions(conn, [again])
