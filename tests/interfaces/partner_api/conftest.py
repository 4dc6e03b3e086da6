"""A whole bank behind its whole Partner API, and two partners who do not know of each other."""

import pytest
from tests.interfaces.apps import lend_partner_app, take_back
from tests.interfaces.partner_api.desk import Desk
from tests.interfaces.partner_client import new_partner
from tests.whole_bank import bank

from billfold.engine.house_day import close_house_days
from billfold.engine.verify import verify_bank

__all__ = ["bank"]


@pytest.fixture
async def desks(bank):
    """Make desks of partners; after the test the ledger must prove itself."""
    app = lend_partner_app(bank)
    opened = []

    async def open_desk(slug, **options):
        opened.append(Desk(bank, app, await new_partner(bank, slug, **options)))
        return opened[-1]

    yield open_desk
    for each in opened:
        await each.close()
    await take_back(app)
    await close_house_days(bank, await bank.now())
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert report.is_clean, report.findings[:5]


@pytest.fixture
async def desk(desks):
    """The desk of the partner whom a test is about."""
    return await desks("acme")


@pytest.fixture
async def stranger(desks):
    """The desk of another partner of the same bank."""
    return await desks("globex")
