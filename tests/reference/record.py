"""Records the examples of both APIs. `python -m tests.reference.record` writes them again."""

import asyncio
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from tests.fixtures.chain import lent_chain
from tests.reference.customer_calls import MEMBER, OTHER_MEMBER, OTHER_USER, USER, play_customer_api
from tests.reference.partner_calls import BOX, play_partner_api
from tests.reference.recorder import Recorder, number, text_of
from tests.support.apps import lend_customer_app, lend_partner_app, take_back
from tests.support.oauth import member, program
from tests.support.sandbox_process import performing_tasks
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import EVERYTHING, MemberDesk, PartnerApi, Team, new_partner, token_for

from billfold import apis
from billfold.migrations import runner
from billfold.oauth import clients
from billfold.payments.crypto.deposits.watcher import ChainWatchers
from billfold.platform.database import embedded
from billfold.platform.database.connection import ensure_login
from billfold.platform.database.pool import APP_ROLE, create_pool

FOLDER = Path(str(apis.__file__)).parent
EXAMPLES = {
    "partner": FOLDER / "partner_api_examples.json",
    "customer": FOLDER / "customer_api_examples.json",
}


async def _partner_desk(bank, closing):
    """Return the desk of a partner whose ids repeat."""
    app = lend_partner_app(bank)
    closing.push_async_callback(take_back, app)
    closing.enter_context(lent_chain(bank))
    async with aclosing(ChainWatchers()) as watchers:
        await watchers(bank)
    known_ids = [number(1000 + n) for n in (1, 0, 2)]
    desk = PartnerApi(bank, app, await new_partner(bank, features=("wires",), known_ids=known_ids))
    closing.push_async_callback(desk.close)
    return desk


async def _member_desk(bank, app, customer, *, name, **ids):
    """Return the desk of an administrator whose ids repeat; a bearer's token proves it."""
    async with bank.pool.acquire() as conn:
        email, joined_at = f"{name.lower()}@northwind.example", await bank.now()
        await member(conn, UUID(customer), **ids, email=email, name=name, joined_at=joined_at)
        if await clients.find_client(conn, "books") is None:
            await program(conn, keys=(), scopes=EVERYTHING, profile="documented")
    team = Team(customer, "books", ids["user_id"])
    return MemberDesk(bank, app, team, token=await token_for(bank, team, key=None))


async def record_partner(bank, watch=None):
    """The examples: operationId -> {"request": ..., "response": ...}."""
    async with AsyncExitStack() as closing:
        recorder = Recorder(await _partner_desk(bank, closing), watch)
        await closing.enter_async_context(performing_tasks(bank))
        await play_partner_api(recorder)
        return recorder.examples


async def record_customer(bank, watch=None):
    """The examples of the Customer API."""
    async with AsyncExitStack() as closing:
        world = Recorder(await _partner_desk(bank, closing))
        customer = (await world.post("-", f"{BOX}/customers/", {"name": "Northwind"}))["id"]
        app = lend_customer_app(bank)
        closing.push_async_callback(take_back, app)
        desk = await _member_desk(bank, app, customer, user_id=USER, member_id=MEMBER, name="Anna")
        other = await _member_desk(bank, app, customer, user_id=OTHER_USER, member_id=OTHER_MEMBER, name="Cleo")
        for each in (desk, other):
            closing.push_async_callback(each.close)
        recorder = Recorder(desk, watch)
        await play_customer_api(recorder, world, other)
        return recorder.examples


RECORD = {"partner": record_partner, "customer": record_customer}


async def write(name):
    """Record in a bank of its own and write the package's examples again."""
    with TemporaryDirectory() as folder:
        server = embedded.start(Path(folder), settings={"fsync": "off"})
        try:
            dsn = await server.create_database("reference")
            pool = await create_pool(dsn, max_size=1)
            async with pool.acquire() as conn:
                await runner.up(conn)
            await pool.close()
            await ensure_login(dsn, APP_ROLE)
            bank = await open_bank(dsn)
            notes = await RECORD[name](bank)
            await close_bank(bank)
        finally:
            embedded.stop(server)
    EXAMPLES[name].write_text(text_of(notes))


if __name__ == "__main__":
    for each in RECORD:
        asyncio.run(write(each))
