"""A bank with dealers whose every byte a test chooses."""

import pytest
from tests.trading.fix.scripted_desk import scripted_desk
from tests.trading.fix.simulated_desk import until

from billfold.trading.fix import link


@pytest.fixture(autouse=True)
def _sessions_come_back_soon(monkeypatch):
    monkeypatch.setattr(link, "_RETRY_SECONDS", 0.1)


@pytest.fixture
def names():
    return ("citadel",)


@pytest.fixture
async def scripted(bank_dsn, names):
    async with scripted_desk(bank_dsn, names=names) as opened:
        yield opened


@pytest.fixture
def bank(scripted):
    return scripted[0].bank


@pytest.fixture
async def order(scripted, new_holder):
    """An order that a dealer has received."""
    desk, *dealers = scripted
    await (await new_holder()).deposit(250_000_00)
    [order] = await desk.place()

    async def arrived():
        return any(each.of_type("D") for each in dealers)

    await until(arrived)
    return await desk.order(order.order_id)
