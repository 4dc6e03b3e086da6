"""Cash that waits for current market data is invested by the worker when the data arrives."""

from tests.treasury.test_market_refresh import forget_todays_rates, import_both

from billfold.treasury.market_log import MarketRefresher
from billfold.treasury.worker import WaitingCash

BOUGHT = "SELECT count(*) FROM trade WHERE activity = 'BUY' AND pocket_id = $1"


async def test_waiting_cash_is_invested_after_an_import(bank, new_holder):
    await forget_todays_rates(bank)
    bank.market.age_max_days = 1
    holder, task = await new_holder(), WaitingCash()
    bank.market._curve_days[-1] = bank.market.first_day  # all newer rates are still to come
    await holder.deposit(10_000_00)
    assert await task.invest(bank) == 0
    assert await bank.pool.fetchval(BOUGHT, holder.pocket_id) == 0
    await import_both(bank)
    await MarketRefresher(bank.pool, bank.market, activation_delay=0).refresh()
    assert await task.invest(bank) == 1
    assert await bank.pool.fetchval(BOUGHT, holder.pocket_id) == 1
    assert await task.invest(bank) == 0
