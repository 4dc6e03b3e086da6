"""The worker fetches market data from a folder: what is wrong is refused with its reason, and the rest is used."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from tests.support.cases import in_one_bank
from tests.treasury.test_market_refresh import changing

from billfold.bills.store import load_market
from billfold.platform.database.checks import Findings
from billfold.platform.dates import et_instant
from billfold.treasury.market_log import MarketRefresher, check_market
from billfold.treasury.price_fetch import QUOTES, PriceFetch
from billfold.treasury.price_sources import FolderSource

FRIDAY, TODAY = date(2025, 5, 30), date(2025, 6, 2)
HEADER = "Date,4 WEEKS BANK DISCOUNT,4 WEEKS COUPON EQUIVALENT\n"
BID = "SELECT discount_milli FROM bill_rate WHERE day = $1 AND weeks = 4"


class Desk:
    """A bank whose newest rates are of Friday, and the folder from which it fetches."""

    def __init__(self, bank, folder):
        self.bank, self.folder = bank, folder
        self.task = PriceFetch([FolderSource(folder)])

    async def fetch(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.csv").write_text(text)
        added = await self.task.fetch(self.bank, now=True)
        await MarketRefresher(self.bank.pool, self.bank.market, activation_delay=0).refresh()
        return added

    async def refusal(self, source=None):
        query = "SELECT refusal FROM market_fetch WHERE source = $1"
        return await self.bank.pool.fetchval(query, source or str(self.folder))

    async def quotes(self, *prices, at=None, dealer="citadel"):
        """Quote the 4-week bill at so many micro-dollars above its bid by the published curve."""
        at = at or await self.bank.now()
        bill = self.bank.market.on_the_run(4, TODAY)
        lines = ["dealer,cusip,quoted_at,bid,ask"]
        for number, bid in enumerate(prices):
            lines.append(f"{dealer}{number},{bill.cusip},{at.isoformat()},{bid / 1e6:.6f},{bid / 1e6 + 0.0005:.6f}")
        return await self.fetch(quotes="\n".join(lines))


@pytest.fixture
async def desk(bank, tmp_path):
    bank.settings = replace(bank.settings, max_price_age=600)
    async with changing(bank) as conn:
        await conn.execute("DELETE FROM bill_rate WHERE day >= $1", TODAY)
        bank.market = bank.engine.market = await load_market(conn, age_max_days=1)
    return Desk(bank, tmp_path)


async def quoted(desk):
    """Let the bank trade by quotes alone."""
    async with desk.bank.pool.acquire() as conn:
        bank = desk.bank
        bank.market = bank.engine.market = await load_market(
            conn, age_max_days=1, quotes_age_max=timedelta(seconds=600)
        )


async def test_rates_of_a_folder_are_imported_once_and_bad_lines_and_files_are_refused_alone(desk):
    before = await desk.bank.pool.fetchval(BID, FRIDAY)
    rate = f"{before / 1000 + 0.05:.3f}"
    good = f"{HEADER}05/30/2025,{before / 1000 - 0.1:.3f},4.9\n06/02/2025,{rate},4.9\n06/31/2025,4,4.9\n"
    assert await desk.fetch(a="nonsense", b=good) == 1
    assert desk.bank.market.last_day == TODAY
    said = await desk.refusal()
    assert "a.csv: line.1.Date: column is missing" in said
    assert "b.csv: line 4 Date `06/31/2025` is not a date" in said
    assert "2025-05-30 says otherwise than what is on record" in said
    assert await desk.fetch() == 0
    async with desk.bank.pool.acquire() as conn:
        await check_market(conn, found := Findings())
    assert found.found == []


@in_one_bank(
    ("day", "change", "said"),
    [
        ("06/02/2025", 0.51, "more than 50 bp from 2025-05-30"),
        ("06/02/2025", -0.51, "more than 50 bp from 2025-05-30"),
        ("12/31/2097", 0, "is after today"),
        ("01/02/2023", 0, "is before 2025-05-30"),
    ],
)
async def test_a_fetched_jump_a_day_to_come_or_a_day_long_past_is_refused(desk, day, change, said):
    before = await desk.bank.pool.fetchval(BID, FRIDAY)
    rate = before / 1000 + change
    assert await desk.fetch(a=f"{HEADER}{day},{rate:.3f},{rate + 0.2:.3f}\n") == 0
    assert said in await desk.refusal()
    assert desk.bank.market.last_day == FRIDAY


async def test_purchases_wait_and_payouts_cost_more_when_quotes_stop(desk, new_holder):
    bank = desk.bank
    await quoted(desk)
    holder = await new_holder()
    now = await bank.now()
    bid = bank.market.t1_bid(bank.market.on_the_run(4, TODAY), now)
    await holder.deposit(10_000_00)
    bought = "SELECT count(*) FROM trade WHERE pocket_id = $1 AND activity = 'BUY'"
    assert await bank.pool.fetchval(bought, holder.pocket_id) == 0
    assert await desk.quotes(bid) == 1
    await holder.deposit(10_000_00)
    assert await bank.pool.fetchval(bought, holder.pocket_id) > 0
    current = bank.market.is_current
    assert current(now + timedelta(minutes=9))
    assert not current(now + timedelta(minutes=11))


async def test_yesterdays_quotes_jumping_ones_and_those_of_a_bank_without_quotes_are_refused(desk):
    bank = desk.bank
    await quoted(desk)
    now = await bank.now()
    bid = bank.market.t1_bid(bank.market.on_the_run(4, TODAY), now)
    assert await desk.quotes(bid, at=et_instant(FRIDAY, 11)) == 0
    assert "too old" in await desk.refusal(QUOTES)
    assert await desk.quotes(bid - 500_000) == 0
    assert "more than 50 bp from the published one" in await desk.refusal(QUOTES)
    assert await desk.quotes(bid, bid + 100, bid - 500_000) == 1
    assert await desk.quotes(bid, bid + 100, bid - 500_000) == 0, "the same again"
    bank.settings = replace(bank.settings, max_price_age=None)
    assert await desk.quotes(bid + 200) == 0
    assert "BILLFOLD_MAX_PRICE_AGE is not set" in await desk.refusal(QUOTES)
    async with bank.pool.acquire() as conn:
        await check_market(conn, found := Findings())
    assert found.found == []
