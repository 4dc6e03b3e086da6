"""The simulated dealers in the API: asked to misbehave, and asked to cover, with the dealers' own books."""

import pytest
from tests.support.world import PartnerClient, close_app, new_partner
from tests.trading.fix.simulated_desk import simulated_desk

from billfold.apis.partner_api import PartnerApi
from billfold.sandbox.dealers import launch
from billfold.sandbox.dealers.launch import DEALER_FOLDER
from billfold.sandbox.routes.operations import open_sandbox, sandbox_operations

BOX = "/api/v1/sandbox/dealers"


@pytest.fixture
async def desk(bank_dsn, tmp_path):
    async with simulated_desk(bank_dsn, tmp_path / DEALER_FOLDER, state_dir=tmp_path) as opened:
        yield opened


@pytest.fixture
def bank(desk):
    return desk.bank


@pytest.fixture
async def client(bank):
    app = PartnerApi(sandbox_operations())
    open_sandbox(app, bank)
    caller = PartnerClient(app, await new_partner(bank))
    yield caller
    await caller.close()
    await close_app(app)


async def test_dealers_fill_half_of_a_cover_after_a_partial_fill_was_chosen_for_both(
    desk, client, new_holder, monkeypatch
):
    monkeypatch.setattr(launch, "COVER_SECONDS", 2.0)  # the other half is awaited until then
    await (await new_holder()).deposit(250_000_00)
    for dealer in ("harbor", "northgate"):
        asked = await client.post(f"{BOX}/{dealer}/behavior/", {"behavior": "PARTIAL_FILL"})
        assert asked.status_code == 202, asked.text
    assert [each["behavior"] for each in (await client.get(f"{BOX}/")).json()["items"]] == ["PARTIAL_FILL"] * 2
    async with desk.routing():
        answer = await client.post(f"{BOX}/cover/")
    [half] = answer.json()["executions"]
    [order] = await desk.bank.pool.fetch("SELECT * FROM dealer_order")
    assert (half["face"], half["kind"]) == (order["units"] // 2 * 100, "FILL")
    found = {each["name"]: each for each in (await client.get(f"{BOX}/")).json()["items"]}
    assert found[order["dealer"]]["executions"] == [half]
    assert found[order["dealer"]]["behavior"] is None


async def test_a_dealer_that_is_not_there_is_not_found(client):
    assert (await client.post(f"{BOX}/nobody/behavior/", {"behavior": "BUST"})).status_code == 404
    assert (await client.post(f"{BOX}/harbor/behavior/", {"behavior": "DANCE"})).status_code == 422
