"""A customer whose due work fails: the bank closes its days without it, and its past is booked once it is mended."""

from datetime import date, datetime, timedelta

import pytest
from tests.payments.clearing.test_worker import open_day, set_clock, street
from tests.support.whole_bank import expect_clean

from billfold.ledger.scheduler import SET_APART_TRIES, list_failing, retry_due_work
from billfold.monitoring.health import check_bank
from billfold.monitoring.samples import measure
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_instant
from billfold.wiring.worker import Worker

_TRADES = """
SELECT activity, cusip, units, notional, price_micros, t.settles_on, book_date, e.booked_at, e.business_date
  FROM trade t JOIN journal_entry e USING (customer_id, entry_no) WHERE customer_id = $1 ORDER BY entry_no, trade_no
"""
_SNAPSHOTS = """
SELECT business_date, entry_no, cash, positions::text, inflow, fees, realised FROM snapshot WHERE customer_id = $1
 ORDER BY business_date
"""


class _Unknown(LookupError):
    pass


async def rounds_of(worker, bank, count=1):
    for _ in range(count):
        await bank.pool.execute("UPDATE failed_work SET again_at = now() - interval '1 second'")
        while await worker.work_once():
            pass


async def finding(bank, what):
    async with bank.pool.acquire() as conn:
        return next(each for each in await check_bank(conn, bank.settings, bank.market) if each.what == what)


async def gauges(bank):
    async with bank.pool.acquire() as conn:
        return {each.gauge.name: sum(value for _, value in each.values) for each in await measure(conn, wall_now())}


@pytest.fixture
async def twins(bank, new_holder, monkeypatch):
    """Two customers with the same deposits; the due work of the second fails while `failing` names it."""
    whole, broken = await new_holder(), await new_holder()
    for holder in (whole, broken):
        await holder.deposit(250_000_00)
    failing, catch_up = {broken.place.customer}, bank.engine.catch_up

    def fail(book, ctx):
        if book.customer_id in failing:
            raise _Unknown("no such bill")
        return catch_up(book, ctx)

    monkeypatch.setattr(bank.engine, "catch_up", fail)
    return whole.place.customer, broken.place.customer, failing


async def test_the_bank_closes_its_days_without_a_customer_that_fails_thrice(bank, twins):
    _, broken, _ = twins
    worker, end = Worker(bank), et_instant(date(2025, 6, 24), 9)
    await set_clock(bank, end)
    await rounds_of(worker, bank, SET_APART_TRIES - 1)
    assert await open_day(bank) == date(2025, 6, 2), "a failure may be over soon"
    assert (await gauges(bank))["billfold_customers_set_apart"] == 0
    await rounds_of(worker, bank)
    assert await open_day(bank) == date(2025, 6, 24)
    assert [(each.customer_id, each.tries) for each in await list_failing(bank.pool)] == [(broken, SET_APART_TRIES)]
    assert "1 set apart" in (await finding(bank, "due work")).found
    assert "due-work retry" in (await finding(bank, "due work")).next_step
    found = await gauges(bank)
    assert (found["billfold_customers_set_apart"], found["billfold_due_work_lag_seconds"]) == (1, 0)
    assert (await finding(bank, "daily roots")).next_step == ""
    await expect_clean(bank)


@pytest.mark.parametrize("late_days", [1, 40])
async def test_a_repaired_customer_has_the_books_of_one_that_never_failed(bank, twins, late_days):
    whole, broken, failing = twins
    worker, end = Worker(bank), datetime.combine(date(2025, 6, 24), et_instant(date(2025, 6, 24), 18).timetz())
    await set_clock(bank, end)
    await rounds_of(worker, bank, SET_APART_TRIES)
    at = end + timedelta(days=late_days)
    await set_clock(bank, at)
    await rounds_of(worker, bank)
    await expect_clean(bank)
    assert (await retry_due_work(bank, [broken])).failed.keys() == {broken}
    failing.clear()
    assert (await retry_due_work(bank, [broken])).failed == {}
    assert await list_failing(bank.pool) == []
    for query in (_TRADES, _SNAPSHOTS):
        assert await bank.pool.fetch(query, broken) == await bank.pool.fetch(query, whole)
    await set_clock(bank, at + timedelta(days=4))
    await rounds_of(worker, bank)
    assert (await street(bank, "treasury"), await street(bank)) == ({}, {})
    assert (await finding(bank, "due work")).next_step == (await finding(bank, "workers")).next_step == ""
    await expect_clean(bank)
