"""A whole bank behind both APIs: a partner who moves its world, and members of his customers."""

import pytest
from tests.interfaces.apps import lend_customer_app, lend_partner_app, take_back
from tests.interfaces.customer_api.desk import EVERYTHING, MemberDesk, join, token_for
from tests.interfaces.partner_api.desk import Desk
from tests.interfaces.partner_client import new_partner
from tests.whole_bank import bank

from billfold.engine.house_day import close_house_days
from billfold.engine.verify import verify_bank

__all__ = ["bank"]


@pytest.fixture
async def world(bank):
    """The desk of the partner: he enrols customers and lets money arrive."""
    app = lend_partner_app(bank)
    desk = Desk(bank, app, await new_partner(bank))
    yield desk
    await desk.close()
    await take_back(app)
    await close_house_days(bank, await bank.now())
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert report.is_clean, report.findings[:5]


@pytest.fixture
async def app(bank):
    made = lend_customer_app(bank)
    yield made
    await take_back(made)


@pytest.fixture
async def desks(bank, app, world):
    """Make desks: of a new customer, or of another member of one that is there."""
    opened = []

    async def open_desk(customer=None, *, role="ADMIN", scopes=EVERYTHING, **options):
        customer = customer or await world.customer()
        team = await join(bank, customer, role=role, scopes=scopes, **options)
        opened.append(MemberDesk(bank, app, team, await token_for(bank, team)))
        return opened[-1]

    yield open_desk
    for each in opened:
        await each.close()


@pytest.fixture
async def desk(desks):
    """The desk of an administrator of the customer whom a test is about."""
    return await desks()


@pytest.fixture
async def stranger(desks):
    """The desk of an administrator of another customer of the same partner."""
    return await desks()
