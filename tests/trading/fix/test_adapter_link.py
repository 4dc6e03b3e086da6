"""A dealer that an adapter of a third party reaches."""

import asyncio
from typing import Any

import pytest
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.trading.fix.scripted_desk import fill_of
from tests.trading.fix.simulated_desk import SimulatedDesk, until

from billfold.platform.settings.trading_desk import SESSION
from billfold.trading.fix.store import list_sessions
from billfold.trading.ports import DealerAdapters

ADDRESS = "citadel=adapter://tests.trading.fix.test_adapter_link:Telephone/price"


class Telephone:
    """Keeps what it is to take, and reports what a test says."""

    def __init__(self):
        self.taken, self.is_broken = [], False
        self.reports = asyncio.Queue[Any]()

    async def send(self, kind, fields):
        self.taken.append((kind, dict(fields)))
        if self.is_broken:
            raise ValueError("no line")

    async def receive(self):
        return await self.reports.get()

    def of_type(self, kind):
        return [fields for each, fields in self.taken if each == kind]


@pytest.fixture
async def bank(bank_dsn):
    opened = await open_bank(bank_dsn, dealers=("citadel",), dealer_sessions=(SESSION.read(ADDRESS),))
    yield opened
    await close_bank(opened)


@pytest.fixture
async def desk(bank):
    desk = SimulatedDesk(bank, None)
    async with desk.routing(answer_seconds=0.5):
        yield desk


@pytest.fixture
def telephone(bank):
    return bank.ports[DealerAdapters]["citadel"]


@pytest.mark.parametrize("address", [ADDRESS.replace("/price", "/par"), "citadel=adapter://none/price"])
def test_an_adapter_is_named_with_its_price_type(address):
    assert str(SESSION.read(ADDRESS)) == ADDRESS
    with pytest.raises(ValueError, match="adapter"):
        SESSION.read(address)


async def test_an_order_is_filled_once_by_what_an_adapter_reports_twice(desk, telephone, new_holder):
    await (await new_holder()).deposit(250_000_00)
    [order] = await desk.place()

    async def taken():
        return telephone.of_type("D")

    [fields] = await until(taken)
    assert (fields[11], fields[38]) == (str(order.order_id), str(order.units * 100))
    for _ in range(2):
        telephone.reports.put_nowait(("8", [(tag, str(value)) for tag, value in fill_of(order)]))
    telephone.reports.put_nowait(("8", [(11, "no order of ours"), (150, "F")]))
    await desk.reaches(order, "FILLED")
    [refused] = await desk.seen(1)

    async def answered():
        return telephone.of_type("j")

    [reject] = await until(answered)
    assert (refused.status, reject[45], len(await desk.executions())) == ("REFUSED", str(refused.seq), 1)
    assert [each.is_on for each in await list_sessions(desk.bank.pool)] == [True]
    await expect_clean(desk.bank)


async def test_an_order_is_unknown_when_an_adapter_fails_with_it(desk, telephone, new_holder):
    await (await new_holder()).deposit(250_000_00)
    telephone.is_broken = True
    [order] = await desk.place()
    await desk.reaches(order, "UNKNOWN")
    assert len(telephone.of_type("D")) == 1
    telephone.is_broken = False
    telephone.reports.put_nowait(("8", [(tag, str(value)) for tag, value in fill_of(order)]))
    await desk.reaches(order, "FILLED")
