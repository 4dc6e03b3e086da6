"""Batches that run side by side: who takes what waits."""

import asyncio

import pytest
from tests.engine.test_batch import payment
from tests.whole_bank import Holder

from billfold.engine.batch import Engine
from billfold.kit import ids


async def let_everybody_run():
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("crowd", "under_way", "in_the_end"), [(1, [1, 1], [1, 1, 3]), (3, [1, 3], [1, 3, 1])]
)
async def test_another_lane_than_the_first_waits_for_a_crowd(
    bank, monkeypatch, crowd, under_way, in_the_end
):
    engine = Engine(
        bank.pool, market=bank.market, calendars=bank.calendars, terms=bank.terms,
        seed=bank.seed, test_clock=True, lanes=2, crowd=crowd,
    )  # fmt: skip
    taken, end = [], asyncio.Event()

    async def run(batch):
        taken.append(len(batch))
        await end.wait()

    monkeypatch.setattr(engine, "_run", run)
    await engine.start()
    holders = [Holder(bank, ids.new(), ids.new(), ids.new()) for _ in range(10)]
    waiting = []
    for payer, payee in zip(holders[::2], holders[1::2], strict=True):
        sent = engine.submit(payment(payer, payee, 1_00))
        waiting.append(asyncio.create_task(sent))
        await let_everybody_run()
    assert taken == under_way
    end.set()
    await let_everybody_run()
    assert taken == in_the_end
    for each in waiting:
        each.cancel()
    await engine.stop()
