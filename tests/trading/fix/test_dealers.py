"""The sandbox's dealers over FIX: an order is sent once, and everything that they do to it is booked or held."""

import pytest
from tests.support.whole_bank import expect_clean
from tests.trading.fix.simulated_desk import simulated_desk


@pytest.fixture
async def desk(bank_dsn, tmp_path):
    async with simulated_desk(bank_dsn, tmp_path) as opened:
        yield opened


@pytest.fixture
def bank(desk):
    return desk.bank


async def test_an_order_is_filled_by_a_dealer_when_a_round_places_it(bank, desk, new_holder):
    await (await new_holder()).deposit(250_000_00)
    async with desk.routing():
        [order] = await desk.place()
        order = await desk.reaches(order, "FILLED")
    [booked] = await desk.executions()
    [theirs] = desk.dealers_executions()
    assert (booked.reference, booked.units * 100, booked.money) == (theirs.reference, theirs.face, theirs.money)
    assert booked.flags is None
    await expect_clean(bank)
