"""An API that offers the logins of partners, and a partner of it."""

import pytest
from tests.support.partner_client import PartnerClient, close_app, new_partner

from billfold.access.partners import jwt_login_routes, login_routes
from billfold.http.partner_api.app import create_partner_app


@pytest.fixture
async def app(bank):
    made = create_partner_app(bank, operations=[login_routes.log_in, jwt_login_routes.exchange_assertion])
    yield made
    await close_app(made)


@pytest.fixture
async def client(app, bank):
    made = PartnerClient(app, await new_partner(bank))
    yield made
    await made.close()
