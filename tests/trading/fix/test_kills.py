"""A worker is killed at every point between decision and fill: no order is sent twice, and none is lost."""

import asyncio
import random
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.support.whole_bank import expect_clean
from tests.trading.fix.simulated_desk import simulated_desk, until
from tests.trading.oracle import Oracle

from billfold.sandbox.dealers.books import DEALERS, DealerBooks
from billfold.sandbox.dealers.launch import DEALER_FOLDER
from billfold.trading.fix.worker import OrderRouter
from billfold.trading.overview import read_overview
from billfold.trading.store import list_live_orders
from billfold.trading.types import OrderStatus

KILLS = 120
TRADES = "SELECT activity, cusip, units AS quantity, book_date::text FROM trade"


class Killed(BaseException):
    """The worker is dead: nothing that it still wants to do happens."""


class DeadLine:
    """Counts the calls of a worker to the database and to the engine; before or after the last one it is dead."""

    def __init__(self, calls, *, is_after):
        self.calls, self.is_after = calls, is_after
        self.died = asyncio.Event()

    def wrap(self, target, names):
        return Mortal(target, names, self)

    async def call(self, function, *values, **options):
        if self.died.is_set():
            raise Killed
        self.calls -= 1
        if self.calls > 0:
            return await function(*values, **options)
        if self.is_after:
            with suppress(Exception):
                await function(*values, **options)
        self.died.set()
        raise Killed


class Mortal:
    """A part of the bank as the worker has it."""

    def __init__(self, target, names, line):
        self._target, self._names, self._line = target, names, line

    def __getattr__(self, name):
        found = getattr(self._target, name)
        if name not in self._names:
            return found
        return lambda *values, **options: self._line.call(found, *values, **options)


async def run_until_killed(bank, line, done):
    """Run a worker's router until it is dead, or has nothing to do; return whether it was killed."""
    pool = line.wrap(bank.pool, {"fetch", "fetchrow", "fetchval", "execute"})
    mortal = replace(bank, pool=pool, engine=line.wrap(bank.engine, {"submit"}))
    router = OrderRouter(mortal, answer_seconds=2.0, tick_seconds=0.01)
    running = asyncio.create_task(_outlive(router.run()))
    death, finished = asyncio.create_task(line.died.wait()), asyncio.create_task(until(done, 20))
    try:
        await asyncio.wait({death, finished}, return_when=asyncio.FIRST_COMPLETED)
        if finished.done():
            await finished
        return line.died.is_set()
    finally:
        line.died.set()
        for each in (running, death, finished):
            each.cancel()
        await asyncio.gather(running, death, finished, return_exceptions=True)


async def _outlive(work):
    with suppress(Killed):
        await work


@pytest.fixture
async def desk(bank_dsn, tmp_path):
    async with simulated_desk(bank_dsn, tmp_path / DEALER_FOLDER) as opened:
        yield opened


@pytest.fixture
def bank(desk):
    return desk.bank


@pytest.mark.parametrize("seed", range(2))
async def test_the_dealers_log_and_ours_agree_after_kills_at_any_point(desk, new_holder, seed):
    rng, holder, kills = random.Random(seed), await new_holder(), 0

    async def quiet():
        return not await list_live_orders(desk.bank.pool, desk.bank_id)

    while kills < KILLS // 2:
        await holder.deposit(rng.randrange(120_000_00, 400_000_00))
        await desk.place()
        while not await quiet():
            line = DeadLine(rng.randrange(1, 60), is_after=rng.random() < 0.5)
            kills += await run_until_killed(desk.bank, line, quiet)
    while await desk.place():
        async with desk.routing():
            await until(quiet, 20)
    await expect_agreement(desk)


async def expect_agreement(desk):
    """Compare what the dealers' books say with ours."""
    ours = {each.reference: (str(each.order_id), each.units * 100, each.money) for each in await desk.executions()}
    assert ours == {each.reference: (each.order_id, each.face, each.money) for each in desk.dealers_executions()}
    books = [DealerBooks(desk.folder / name) for name in DEALERS]
    received = {order_id: order for each in books for order_id, order in each.orders.items()}
    assert sum(len(each.orders) for each in books) == len(received)
    assert not any("duplicate order" in (desk.folder / name / "books.jsonl").read_text() for name in DEALERS)
    rows = await desk.bank.pool.fetch("SELECT order_id::text, status FROM dealer_order")
    assert {each["order_id"] for each in rows if each["status"] == OrderStatus.FILLED} == received.keys()
    assert {each["status"] for each in rows} <= {"FILLED", "REJECTED"}, "what never arrived says so"
    assert not await desk.open_messages()
    trades = [dict(each) | {"notional": {"value": 0}} for each in await desk.bank.pool.fetch(TRADES)]
    lines = [each.exposure for each in (await read_overview(desk.bank)).lines]
    assert {each.cusip: each.units for each in lines if each.units} == Oracle(desk.folder.parent, trades).exposure()
    await expect_clean(desk.bank)
    for each in books:
        each.close()
