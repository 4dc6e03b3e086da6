"""The limits of a customer, with what is used of them."""

from uuid import UUID

from tests.support import payees
from tests.support.approvals import on_us, put_cap


async def test_limits_say_what_is_used_and_what_is_refused_next(world, partner_desks, customer_desks, other_partner):
    customer = (await world.pocket()).customer
    path = f"/api/v1/customers/{customer}/limits/"
    before = named(await world.get(path))
    assert before["counterparties.customer"]["remaining"] == before["counterparties.customer"]["limit"]
    await world.post(f"/api/v2/customers/{customer}/counterparties/", payees.wire())
    shown = await world.get(path)
    limits = named(shown)
    for whose in ("customer", "partner"):
        assert limits[f"counterparties.{whose}"]["used"] == 1
    assert limits["payment"]["used"] is None
    assert limits["ach_originations.customer"]["effect"] == "REVIEWED"
    assert {each["name"]: each["enabled"] for each in shown["features"]}.pop("wires") is False
    wired = await partner_desks("wired", features=("wires",))
    features = (await wired.get(f"/api/v1/customers/{await wired.customer()}/limits/"))["features"]
    found = {each["name"]: each["enabled"] for each in features}
    assert found == {"ccd": False, "customer_closure": False, "unverified_wires": False, "wires": True}
    assert features[-1]["reason"] == "Switched on for all customers of the partner."
    await other_partner.refused("GET", path, status=404, code="not-found")
    member = await customer_desks(customer)
    own = await member.get("/api/v1/limits/")
    assert [each["name"] for each in own["features"]] == ["unverified_wires"]
    assert not [each for each in own["limits"] if each["name"].endswith(".partner")]
    assert own["restrictions"] == []


async def test_the_daily_cap_of_a_rule_is_shown_with_its_use_and_a_frozen_customer_with_the_refusal(
    world, customer_desks
):
    pocket = await world.funded(1_000_00)
    other = await world.pocket(pocket.customer)
    member = await customer_desks(pocket.customer)
    await customer_desks(pocket.customer)
    await put_cap(world.bank, UUID(pocket.customer), 500_00)
    await member.post("/api/v1/transfer-requests/", on_us(pocket, 120_00, to=other))
    cap = next(each for each in (await member.get("/api/v1/limits/"))["limits"] if "Small" in each["detail"])
    assert (cap["limit"], cap["used"], cap["remaining"]) == (500_00, 120_00, 380_00)
    assert cap["resets_at"] == "2025-06-02T21:00:00Z"
    await world.bank.pool.execute(
        "UPDATE customer SET account_status = 'FROZEN' WHERE customer_id = $1", pocket.customer
    )
    (found,) = (await member.get("/api/v1/limits/"))["restrictions"]
    assert found == {"code": "customer-not-open", "detail": "The customer is FROZEN."}
    await world.bank.pool.execute("UPDATE customer SET account_status = 'OPEN' WHERE customer_id = $1", pocket.customer)


def named(shown):
    """Return the limits by their names."""
    return {each["name"]: each for each in shown["limits"]}
