"""A bank with both APIs, and customers of its partner."""

import httpx
import pytest
from tests.client.bridge import Bridge
from tests.interfaces.apps import lend_customer_app, lend_partner_app, take_back
from tests.interfaces.customer_api.conftest import world
from tests.interfaces.partner_client import close_app
from tests.whole_bank import bank

from billfold.interfaces.auth.app import create_auth_app
from billfold.wiring.houses import Houses

__all__ = ["bank", "world"]


@pytest.fixture
async def bridge(bank):
    """Everything a server of the bank answers, by host name."""
    partner, auth = lend_partner_app(bank), create_auth_app(bank)
    customer = lend_customer_app(bank)
    yield Bridge(Houses(bank.settings, partner=partner, auth=auth, customer=customer))
    await close_app(auth)
    for app in (partner, customer):
        await take_back(app)


@pytest.fixture
def calling(bridge):
    """Make clients: `calling(base_url, auth)`."""
    opened = []

    def client(base_url, auth=None):
        opened.append(httpx.Client(base_url=base_url, auth=auth, transport=bridge))
        return opened[-1]

    yield client
    for each in opened:
        each.close()
