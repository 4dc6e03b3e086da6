"""A bank whose dealers are the sandbox's, over sessions of FIX on this machine."""

import asyncio
from contextlib import asynccontextmanager

from tests.support.whole_bank import close_bank, open_bank

from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Origin
from billfold.sandbox.dealers.books import DEALERS, ask_behavior, read_executions
from billfold.sandbox.dealers.launch import dealer_sessions, listen_to_bank
from billfold.sandbox.dealers.server import serve_dealers
from billfold.trading import store
from billfold.trading.fix.store import list_open, list_sessions
from billfold.trading.fix.worker import OrderRouter
from billfold.trading.worker import place_round


async def until(condition, seconds=10.0):
    """Wait until a condition, which may be awaited, is true; return what it says."""
    async with asyncio.timeout(seconds):
        while not (found := await condition()):
            await asyncio.sleep(0.02)
        return found


class SimulatedDesk:
    """The bank, its router, and the dealers' process as a task."""

    def __init__(self, bank, folder):
        self.bank, self.folder = bank, folder
        self.bank_id = bank_customer_id(bank.seed)

    @asynccontextmanager
    async def routing(self, **seconds):
        """Keep the sessions for the duration of the block."""
        task = asyncio.create_task(OrderRouter(self.bank, **seconds).run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def is_on(self, day):
        """Wait until every session of a day is on."""

        async def all_on():
            found = await list_sessions(self.bank.pool)
            return found and all(each.is_on and each.session_day == day for each in found)

        await until(all_on, 15)

    async def place(self):
        """Place a round for everything; return the new orders."""
        placed = await place_round(self.bank, is_due=True, origin=Origin.system())
        return [await self.order(each) for each in placed]

    async def order(self, order_id):
        return await store.get_order(self.bank.pool, self.bank_id, order_id)

    async def reaches(self, order, status, seconds=10.0):
        """Wait until an order has a status; return it."""

        async def has_it():
            found = await self.order(order.order_id)
            return found if found.status == status else None

        return await until(has_it, seconds)

    async def executions(self):
        return [each.row for each in await store.list_executions(self.bank.pool, self.bank_id, 1000)]

    async def open_messages(self):
        return await list_open(self.bank.pool, 100)

    def ask(self, behavior, dealer=None):
        """Ask one dealer, or both, for a behavior."""
        for each in [dealer] if dealer else DEALERS:
            ask_behavior(self.folder / each, behavior)

    def calm(self):
        """Let the dealers forget what they were asked for."""
        for each in DEALERS:
            (self.folder / each / "next").unlink(missing_ok=True)

    async def seen(self, count):
        """Wait for a number of messages that a person has to see; return them."""

        async def enough():
            found = await self.open_messages()
            return found if len(found) >= count else None

        return await until(enough)

    def dealers_executions(self):
        return [each for name in DEALERS for each in read_executions(self.folder / name)]


@asynccontextmanager
async def running_dealers(folder, listener):
    """Serve the dealers on a socket for the duration of the block."""
    stop = asyncio.Event()
    serving = asyncio.create_task(serve_dealers(folder, 5, listener=listener, stop=stop))
    try:
        yield
    finally:
        stop.set()
        await serving


@asynccontextmanager
async def simulated_desk(dsn, folder, **settings):
    listener = listen_to_bank()
    sessions = dealer_sessions(listener.getsockname()[1])
    bank = await open_bank(dsn, dealers=tuple(DEALERS), dealer_sessions=sessions, **settings)
    try:
        async with running_dealers(folder, listener):
            yield SimulatedDesk(bank, folder)
    finally:
        await close_bank(bank)
