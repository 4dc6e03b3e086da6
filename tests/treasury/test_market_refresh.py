"""A running bank uses an import without a restart; no process buys a bill that another does not know."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date, time

import pytest
from tests.support.databases import owner_of
from tests.support.whole_bank import close_bank, open_bank

from billfold.bills.imports import import_auctions, import_rates
from billfold.bills.store import CalendarOverride, load_market, save_override
from billfold.bills.types import Auction, DailyRates, Quote
from billfold.ledger.types import Origin
from billfold.platform.clock import monotonic
from billfold.platform.dates import et_instant
from billfold.treasury import market_log
from billfold.treasury.market_log import MarketRefresher, market_change

TODAY = date(2025, 6, 2)
NEW = Auction(
    cusip="912797ZZ1", term="4-Week", auction_date=date(2025, 5, 28), issue_date=TODAY, maturity=date(2025, 7, 1)
)
RATES = DailyRates(TODAY, (Quote(4, 1000, 1014), Quote(52, 1000, 1014)))


@asynccontextmanager
async def changing(bank):
    """A connection on which the market is changed as commands do it."""
    async with owner_of(bank) as conn, conn.transaction(), market_change(conn, bank.vault, Origin.operator()):
        yield conn


async def forget_todays_rates(*banks):
    """Give each bank a market of its own with the data of the day before."""
    async with changing(banks[0]) as conn:
        await conn.execute("DELETE FROM auction WHERE issue_date >= $1", TODAY)
        await conn.execute("DELETE FROM bill_rate WHERE day >= $1", TODAY)
        for bank in banks:
            bank.market = bank.engine.market = await load_market(conn)


@pytest.fixture
async def banks(bank, bank_dsn):
    """Two processes of one bank."""
    other = await open_bank(bank_dsn)
    await forget_todays_rates(bank, other)
    yield bank, other
    await close_bank(other)


async def import_both(bank):
    async with changing(bank) as conn:
        await import_auctions(conn, [NEW])
        await import_rates(conn, [RATES], today=RATES.day)


async def bought(bank):
    rows = await bank.pool.fetch("SELECT DISTINCT cusip FROM trade WHERE activity = 'BUY'")
    return {row["cusip"] for row in rows}


async def test_a_bill_bought_by_one_process_is_known_to_all_after_an_import(banks, new_holder):
    here, there = banks
    watch = MarketRefresher(here.pool, here.market, activation_delay=0)
    holder = await new_holder(at=here)
    await holder.deposit(10_000_00)
    assert NEW.cusip not in await bought(here)

    await import_both(here)
    await watch.refresh()
    await MarketRefresher(there.pool, there.market).refresh()
    bill = here.market.on_the_run(4, TODAY)
    assert bill.cusip == NEW.cusip
    assert here.market.bid_rate(bill, TODAY) == 1000
    # The other one has noticed too and waits: it does not buy the bill and knows it.
    assert there.market.on_the_run(4, TODAY) != bill
    assert there.market.bill(NEW.cusip) == bill

    await holder.deposit(10_000_00)
    assert NEW.cusip in await bought(here)
    holder.bank = there
    assert (await holder.deposit(10_000_00))["status"] == "COMPLETED"


async def test_a_calendar_override_is_picked_up_and_applied_to_cached_books(bank, new_holder):
    due_at = "SELECT due_at FROM ledger_head WHERE customer_id = $1"
    await forget_todays_rates(bank)
    holder = await new_holder()
    watch = MarketRefresher(bank.pool, bank.market, activation_delay=0)
    await holder.deposit(10_000_00)
    assert await bank.pool.fetchval(due_at, holder.customer_id) == et_instant(TODAY, 17)
    async with bank.pool.acquire() as conn:
        await save_override(conn, CalendarOverride(TODAY, None, time(13), None, "Early close"))
    await watch.refresh()
    assert bank.calendars.closes_at(TODAY) == bank.engine.calendars.closes_at(TODAY) == et_instant(TODAY, 13)
    await holder.deposit(10_000_00)
    assert await bank.pool.fetchval(due_at, holder.customer_id) == et_instant(TODAY, 13)


async def test_a_market_refresh_picks_up_an_auction_result_and_rereads_nothing(banks):
    here, _ = banks
    async with here.pool.acquire() as conn:
        await import_auctions(conn, [NEW])
    watch = MarketRefresher(here.pool, here.market, activation_delay=0)
    await watch.refresh()
    before = here.market.version
    async with here.pool.acquire() as conn:
        await import_auctions(conn, [replace(NEW, price_micros=99_690_000, high_rate_milli=3985, basis="published")])
    await watch.refresh()
    assert here.market.version == (*before[:2], before[2] + 1, *before[3:])
    tick_prices = here.market.tick_prices(await here.now())
    await watch.refresh()
    assert here.market.tick_prices(await here.now()) is tick_prices


async def test_all_processes_activate_a_declared_closure_at_the_same_instant(banks, monkeypatch):
    """Else bills were bought at one of them by the price for a day, and sold at another by that for the next."""
    monkeypatch.setattr(market_log, "REFRESH_SECONDS", 2.0)
    began = list[float]()

    async def follow(bank, noticed_after):
        await asyncio.sleep(noticed_after)
        task = asyncio.create_task(MarketRefresher(bank.pool, bank.market, activation_delay=4).run())
        while bank.calendars.is_fed_day(TODAY):
            await asyncio.sleep(0.01)
        began.append(monotonic())
        task.cancel()

    changed_at = monotonic()
    async with changing(banks[0]) as conn:
        await save_override(conn, CalendarOverride(TODAY, "closed", None, "closed", "Mourning"))
    await asyncio.gather(follow(banks[0], 0), follow(banks[1], 1.2))
    assert max(began) - min(began) < 0.6
    assert 3.5 < min(began) - changed_at < 5.5
