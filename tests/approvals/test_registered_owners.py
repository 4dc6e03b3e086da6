"""The registered owner of the account that a requested transfer pays, when it is an account of this bank."""

from tests.support import payees
from tests.support.approvals import REQUESTS, counterparty, on_us, wire
from tests.support.payees import HOME


async def test_the_approver_sees_the_currently_registered_account_owner(customer_desk, manager, world, funded):
    payee = await world.pocket(await world.customer("Jon Smith & Sons LLC"))
    named = {"type": "business", "business_name": "John Smith and Sons"}
    linked = await counterparty(world, customer_desk.team.customer, payee, named=named)
    await world.patch(f"/api/v1/customers/{payee.customer}/", {"address": HOME})
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_000_00, counterparty=linked))
    owner = made["transfer"]["registered_owner"]
    assert (owner["name"], owner["name_match"]) == ("Jon Smith & Sons LLC", "CLOSE_MATCH")
    assert owner["address"] | HOME == owner["address"]
    portal = (await world.get(f"/api/v2/pockets/{payee.id}/portals/"))["items"][0]
    own = {"routing_number": portal["routing_number"], "identifier": portal["account_number"]}
    wired = await customer_desk.post("/api/v2/counterparties/", payees.wire(**own, counterparty_name=named))
    await world.ask(
        "POST",
        "/api/v1/sandbox/counterparty-verification/",
        {"counterparty_id": wired["id"], "status": "APPROVED"},
        status=202,
    )
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    await customer_desk.post(REQUESTS, wire(funded, 1_00, wired["id"]))
    listed = (await manager.get(REQUESTS))["items"]
    assert [each["transfer"]["registered_owner"] for each in listed] == [owner, owner]
