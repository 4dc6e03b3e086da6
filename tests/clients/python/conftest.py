"""The typed calls of a partner and of administrators of its customers."""

from uuid import UUID

import pytest
from tests.identity.partners.test_jwt_login_routes import KEYS, pem_of, private_pem
from tests.support.world import join, token_for

from billfold.identity.partners import credentials
from billfold.platform.clock import wall_now
from billfold_client.customer import CustomerApi
from billfold_client.partner import PartnerApi
from billfold_client.signing import PartnerAuth


@pytest.fixture
async def partner_calls(bank, customer_world, make_client):
    """A client of the Partner API for the partner of `customer_world`."""
    key, partner = KEYS["ES256"], customer_world.partner
    kid = await credentials.register_partner_key(
        bank.pool, partner.user_id, algorithm="ES256", public_pem=pem_of(key), now=wall_now()
    )
    url = f"https://{partner.slug}.localhost"
    auth = PartnerAuth(
        url=url,
        username=partner.username,
        shared_secret=partner.secret,
        private_key=private_pem(key).decode(),
        kid=str(kid),
    )
    return PartnerApi(make_client(url, auth))


@pytest.fixture
async def customer_id(customer_world):
    """A new customer of the partner."""
    return UUID(await customer_world.customer())


@pytest.fixture
def administrator(bank, make_client):
    """Create an administrator of a customer and return a client for them."""

    async def join_team(customer):
        token = await token_for(bank, await join(bank, customer), key=None)
        http = make_client(bank.settings.customer_origin)
        http.headers["authorization"] = f"Bearer {token.text}"
        return CustomerApi(http)

    return join_team
