"""Portals over HTTP, v1 and v2: opened, read, renamed, closed, and how to pay into them."""

import pytest

from billfold.payments.on_us.worker import execute_all_pending

RAILS = ["ACH", "WIRE", "INTERNATIONAL_WIRE", "ON_US"]


def v1(pocket, portal=None):
    """Return the v1 path of a Pocket's portals, or of one portal."""
    path = f"/api/v1/service-accounts/{pocket.id}/portals/"
    return path if portal is None else f"{path}{portal}/"


def v2(pocket, portal=None):
    """Return the v2 path of a Pocket's portals, or of one portal."""
    path = f"{pocket.path}portals/"
    return path if portal is None else f"{path}{portal}/"


async def test_a_portal_is_opened_and_read(world):
    pocket = await world.pocket()
    made = await world.post(v2(pocket), {"name": "Payroll"})
    assert (made["name"], made["status"], made["object_type"]) == ("Payroll", "OPEN", "Portal")
    assert made["type"] == "BANK_VIRTUAL_ACCOUNT_PORTAL"
    assert (made["pocket_id"], made["customer_id"]) == (pocket.id, pocket.customer)
    assert made["payment_rails"] == RAILS
    assert len(made["routing_number"]) == 9
    assert len(made["account_number"]) == len(made["network_address"]) == 12
    assert made["time_created"] == made["updated_at"] == "2025-06-02T13:00:00Z"
    assert await world.get(v2(pocket, made["id"])) == made
    numbers = {made["account_number"], made["network_address"]}
    first = await world.get(v2(pocket, pocket.portal))
    assert numbers.isdisjoint({first["account_number"], first["network_address"]})


async def test_a_portal_accepts_only_the_rails_it_was_opened_for(world):
    pocket = await world.pocket()
    made = await world.post(v2(pocket), {"name": "Wires", "payment_rails": ["WIRE", "ACH"]})
    assert made["payment_rails"] == ["ACH", "WIRE"]
    assert "network_address" not in made
    shown = await world.get(f"{v2(pocket, made['id'])}funding-instructions/")
    assert [each["payment_rail"] for each in shown["instructions"]] == ["ACH", "WIRE"]


async def test_funding_instructions_cover_every_rail(world):
    customer = await world.customer("Northwind Traders")
    pocket = await world.pocket(customer)
    portal = await world.get(v2(pocket, pocket.portal))
    shown = await world.get(f"{v2(pocket, pocket.portal)}funding-instructions/")
    assert (shown["portal_id"], shown["object_type"]) == (pocket.portal, "FundingInstructions")
    by_rail = {each["payment_rail"]: each for each in shown["instructions"]}
    assert list(by_rail) == RAILS
    for each in by_rail.values():
        assert each["beneficiary_name"] == "Northwind Traders"
    for rail in ("ACH", "WIRE"):
        assert by_rail[rail]["routing_number"] == portal["routing_number"]
        assert by_rail[rail]["account_number"] == portal["account_number"]
        assert by_rail[rail]["account_type"] == "CHECKING"
        assert by_rail[rail]["bank_name"]
    bank_address = by_rail["WIRE"]["bank_address"]
    assert by_rail["WIRE"]["beneficiary_address"] == bank_address
    assert by_rail["INTERNATIONAL_WIRE"]["account_number"] == portal["account_number"]
    assert len(by_rail["INTERNATIONAL_WIRE"]["swift_bic"]) in {8, 11}
    assert by_rail["ON_US"]["network_address"] == portal["network_address"]


async def test_wire_instructions_show_the_address_of_the_customer(world):
    pocket = await world.pocket()
    home = {
        "street_address": "1 Main Street",
        "street_address2": "Suite 9",
        "city": "New York",
        "postal_code": "10001",
        "state": "NY",
        "country": "US",
    }
    await world.patch(f"/api/v1/customers/{pocket.customer}/", {"address": home})
    shown = await world.get(f"{v2(pocket, pocket.portal)}funding-instructions/")
    for each in shown["instructions"]:
        if "beneficiary_address" in each:
            line = "1 Main Street, Suite 9, New York, NY 10001, US"
            assert each["beneficiary_address"] == line


async def test_portals_are_listed_by_pocket_and_by_customer(world):
    pocket = await world.pocket()
    other = await world.pocket(pocket.customer)
    for n in range(4):
        await world.post(v2(pocket), {"name": f"No. {n}"})
    mine = await world.pages(v2(pocket))
    assert len(mine) == 5
    assert all(each["pocket_id"] == pocket.id for each in mine)
    path = f"/api/v2/customers/{pocket.customer}/portals/"
    everything = await world.pages(path)
    assert len(everything) == 6
    assert {each["pocket_id"] for each in everything} == {pocket.id, other.id}
    banks = {"type[]": "BANK_VIRTUAL_ACCOUNT_PORTAL"}
    crypto = {"type[]": "CRYPTO_DEPOSIT_ADDRESS_PORTAL"}
    assert await world.pages(path, banks) == everything
    assert (await world.get(path, crypto))["items"] == []
    await world.ask("GET", path, status=422, filters={"type[]": "DOOR"})
    cursor = (await world.get(path, {"limit": 1}))["next_page"]
    await world.invalid("GET", v2(pocket), filters={"cursor": cursor}, loc="query.cursor")


async def test_v1_and_v2_show_the_same_portals(world):
    pocket = await world.pocket()
    made = await world.post(v1(pocket), {"name": "Payroll"})
    assert made["service_account_id"] == pocket.id
    assert await world.get(v1(pocket, made["id"])) == made
    listed = await world.get(v1(pocket))
    assert (listed["count"], listed["object_type"]) == (2, "List")
    assert {each["id"] for each in listed["portals"]} == {made["id"], pocket.portal}
    everyone = await world.get(f"/api/v1/customers/{pocket.customer}/portals/")
    assert everyone == listed
    renamed = await world.patch(v1(pocket, made["id"]), {"name": "Wages"})
    assert renamed["name"] == "Wages"
    assert (await world.get(v2(pocket, made["id"])))["name"] == "Wages"


async def test_a_portal_can_be_renamed(world):
    pocket = await world.pocket()
    await world.later(hours=1)
    renamed = await world.patch(v2(pocket, pocket.portal), {"name": "Rent"})
    assert renamed["name"] == "Rent"
    assert renamed["updated_at"] > renamed["time_created"]
    assert await world.get(v2(pocket, pocket.portal)) == renamed


async def test_a_closed_portal_accepts_no_change_and_no_payment(world):
    pocket = await world.pocket()
    close = f"{v1(pocket, pocket.portal)}close/"
    answer = await world.ask("POST", close, b"{}", status=204)
    assert answer.content == b""
    assert (await world.get(v2(pocket, pocket.portal)))["status"] == "CLOSED"
    await world.refused("POST", close, b"{}", status=412, code="already-closed")
    for path in (v1(pocket, pocket.portal), v2(pocket, pocket.portal)):
        await world.refused("PATCH", path, {"name": "x"}, status=412, code="already-closed")
    body = {"portal_id": pocket.portal, "amount_usdc": 100, "sender_name": "Contoso"}
    await world.refused("POST", "/api/v1/sandbox/wire/", body, status=409, code="no-open-portal")


async def test_portal_names_have_a_length_limit_and_crypto_portals_are_unavailable(world):
    pocket = await world.pocket()
    assert (await world.post(v2(pocket), {"name": "x" * 128}))["name"] == "x" * 128
    for path in (v1(pocket, pocket.portal), v2(pocket, pocket.portal)):
        assert (await world.patch(path, {"name": "y" * 50}))["name"] == "y" * 50
        await world.invalid("PATCH", path, {"name": "y" * 51}, loc="body.name")
        await world.invalid("PATCH", path, {"status": "CLOSED", "name": "a"}, loc="body.status")
    body = {"type": "CRYPTO_DEPOSIT_ADDRESS_PORTAL", "name": "Chain", "chain": "BASE"}
    await world.refused("POST", v2(pocket), body, status=422, code="rail-not-available")


async def test_both_parties_of_an_on_us_payment_see_the_network_address_of_the_other(world):
    """Only the payer has linked a counterparty, so only the payer sees a counterparty's id."""
    payer, payee = await world.funded(10_000_00), await world.pocket()
    addresses = [(await world.get(f"{each.path}portals/{each.portal}/"))["network_address"] for each in (payer, payee)]
    linked = await world.post(
        f"/api/v2/customers/{payer.customer}/counterparties/",
        {
            "type": "on_us",
            "account_number": addresses[1],
            "counterparty_name": {"type": "business", "business_name": "Northwind"},
        },
    )
    for later in (False, True):
        body = {
            "type": "PEER_TO_PEER",
            "from_account": {"id": payer.id},
            "counterparty_id": linked["id"],
            "amount_usdc": 100_00,
            "async_mode": later,
        }
        await world.post("/api/v1/transfers/on-us/", body)
        await execute_all_pending(world.bank)
        paid = (await world.get(f"{payer.path}transactions/"))["items"][0]["counterparty"]
        got = (await world.get(f"{payee.path}transactions/"))["items"][0]["counterparty"]
        assert (paid["id"], paid["network_address"]) == (linked["id"], addresses[1])
        assert (got["id"], got["network_address"]) == (None, addresses[0])


@pytest.fixture
async def pocket(customer_desk):
    return await customer_desk.pocket()


async def test_renaming_or_closing_a_portal_in_the_customer_api_returns_no_body(customer_desk, pocket):
    path = f"{pocket.path}portals/{pocket.portal}/"
    answer = await customer_desk.ask("PATCH", path, {"name": "Wages"}, status=204)
    assert answer.content == b""
    await customer_desk.ask("PATCH", path, {"name": "Old wages", "status": "CLOSED"}, status=204)
    (shown,) = (await customer_desk.get(f"{pocket.path}portals/"))["items"]
    assert (shown["name"], shown["status"]) == ("Old wages", "CLOSED")
    for body in ({"status": "CLOSED"}, {"name": "x"}):
        await customer_desk.refused("PATCH", path, body, status=412, code="already-closed")
