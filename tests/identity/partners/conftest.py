"""An API that offers the logins of partners, and a partner of it."""

import msgspec
import pytest
from tests.support.world import PartnerClient, close_app, new_partner

from billfold.apis.partner_api import create_partner_app
from billfold.audit import store
from billfold.audit.rules import EntryFilter
from billfold.identity.partners import login_routes
from billfold.oauth import jwt_login_routes


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


@pytest.fixture
def audit_log(bank, client):
    """The audit log of the partner, oldest first."""

    async def read():
        await bank.background.close()
        wanted = EntryFilter(customer_id=client.partner.own_customer_id)
        rows = await store.list_entries(bank.pool, wanted, descending=False, limit=100)
        assert {(row.actor, row.actor_name, row.resource_id) for row in rows} == {
            ("PARTNER", "acme", str(client.partner.user_id))
        }
        return [(row.action, row.outcome, msgspec.json.decode(row.details)) for row in rows]

    return read
