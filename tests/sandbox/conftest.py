"""A partner's client of the sandbox's operations, and a Pocket made by them."""

from uuid import UUID

import pytest
from tests.support.world import PartnerClient, close_app, new_partner

from billfold.accounts.pockets.commands import OpenPocket
from billfold.apis.partner_api import PartnerApi
from billfold.platform import ids
from billfold.sandbox.routes.operations import open_sandbox, sandbox_operations


@pytest.fixture
async def client(bank):
    """A partner's client of an application that has the sandbox's operations only."""
    app = PartnerApi(sandbox_operations())
    open_sandbox(app, bank)
    caller = PartnerClient(app, await new_partner(bank))
    yield caller
    await caller.close()
    await close_app(app)


@pytest.fixture
async def pocket(bank, client):
    """A Pocket of a customer made by the sandbox, and its portal."""
    answer = await client.post("/api/v1/sandbox/customers/", {"name": "Northwind"})
    assert answer.status_code == 201, answer.text
    customer_id = UUID(answer.json()["id"])
    outcome = (
        await bank.engine.submit(
            OpenPocket(
                caller="test",
                key=ids.new(),
                customers=(customer_id,),
                partner_id=client.partner.partner_id,
                name="Reserve",
                deposit_weeks=4,
                reinvestment_weeks=4,
            )
        )
    ).outcome
    return {"customer_id": str(customer_id), **outcome}
