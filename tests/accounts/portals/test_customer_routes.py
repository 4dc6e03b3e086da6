"""Portals through the Customer API."""

import pytest
from tests.support.partner_desk import UNKNOWN


@pytest.fixture
async def pocket(customer_desk):
    return await customer_desk.pocket()


async def test_a_portal_is_opened_listed_and_paid_into(customer_desk, customer_world, pocket):
    path = f"{pocket.path}portals/"
    made = await customer_desk.post(path, {"name": "Payroll", "payment_rails": ["WIRE"]})
    assert (made["status"], made["payment_rails"]) == ("OPEN", ["WIRE"])
    assert made == await customer_world.get(f"{path}{made['id']}/")
    listed = (await customer_desk.get(path))["items"]
    assert {each["id"] for each in listed} == {made["id"], pocket.portal}
    assert listed == (await customer_desk.get("/api/v2/portals/"))["items"]
    assert await customer_desk.pages(path, limit=1) == listed
    body = {"portal_id": made["id"], "amount_usdc": 5_000_00, "sender_name": "Contoso"}
    await customer_world.ask("POST", "/api/v1/sandbox/wire/", body, status=202)
    assert (await customer_desk.get("/api/v2/transactions/"))["items"][0]["portal_id"] == made["id"]


async def test_portals_are_filtered_by_type(customer_desk, pocket):
    for path in ("/api/v2/portals/", f"{pocket.path}portals/"):
        kinds = {"BANK_VIRTUAL_ACCOUNT_PORTAL": 1, "CRYPTO_DEPOSIT_ADDRESS_PORTAL": 0}
        for kind, count in kinds.items():
            assert len((await customer_desk.get(path, {"type[]": kind}))["items"]) == count
        await customer_desk.invalid("GET", path, filters={"type[]": "X"}, loc="query.type[]")


async def test_a_portal_is_renamed_and_closed_for_ever_without_an_answer(customer_desk, pocket):
    path = f"{pocket.path}portals/{pocket.portal}/"
    answer = await customer_desk.ask("PATCH", path, {"name": "Wages"}, status=204)
    assert answer.content == b""
    await customer_desk.ask("PATCH", path, {"name": "Old wages", "status": "CLOSED"}, status=204)
    (shown,) = (await customer_desk.get(f"{pocket.path}portals/"))["items"]
    assert (shown["name"], shown["status"]) == ("Old wages", "CLOSED")
    for body in ({"status": "CLOSED"}, {"name": "x"}):
        await customer_desk.refused("PATCH", path, body, status=412, code="already-closed")


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, "body"),
        ({"status": "OPEN"}, "body.status"),
        ({"name": ""}, "body.name"),
        ({"name": "x" * 51}, "body.name"),
        ({"colour": "red"}, "body.colour"),
    ],
)
async def test_a_change_of_another_shape_is_refused(customer_desk, pocket, body, loc):
    await customer_desk.invalid("PATCH", f"{pocket.path}portals/{pocket.portal}/", body, loc=loc)


async def test_portals_that_cannot_be_opened_are_refused(customer_desk, pocket):
    path = f"{pocket.path}portals/"
    crypto = {"name": "x", "type": "CRYPTO_DEPOSIT_ADDRESS_PORTAL", "chain": "SOLANA"}
    await customer_desk.refused("POST", path, crypto, status=422, code="rail-not-available")
    await customer_desk.invalid("POST", path, {"name": "x", "chain": "SOLANA"}, loc="body.chain")
    await customer_desk.invalid("POST", path, {"name": "x", "payment_rails": []}, loc="body.payment_rails")
    await customer_desk.invalid("POST", path, {"name": "x" * 129}, loc="body.name")
    assert len((await customer_desk.get(path))["items"]) == 1


async def test_instructions_say_how_to_pay_by_each_rail(customer_desk, customer_world, pocket):
    path = f"{pocket.path}portals/{pocket.portal}/funding-instructions/"
    told = await customer_desk.get(path)
    assert told == await customer_world.get(path)
    rails = [each["payment_rail"] for each in told["instructions"]]
    assert rails == ["ACH", "WIRE", "INTERNATIONAL_WIRE", "ON_US"]
    assert {each["beneficiary_name"] for each in told["instructions"]} == {"Northwind"}


async def test_portals_of_another_customer_are_not_there(customer_desk, other_customer, pocket):
    theirs = await other_customer.pocket()
    portal = f"portals/{theirs.portal}/"
    for method, path, body in (
        ("GET", f"{theirs.path}portals/", b""),
        ("POST", f"{theirs.path}portals/", {"name": "x"}),
        ("PATCH", theirs.path + portal, {"status": "CLOSED"}),
        ("PATCH", pocket.path + portal, {"status": "CLOSED"}),
        ("GET", f"{pocket.path}{portal}funding-instructions/", b""),
        ("GET", f"{pocket.path}portals/{UNKNOWN}/funding-instructions/", b""),
    ):
        await customer_desk.refused(method, path, body, status=404, code="not-found")
    assert [each["status"] for each in (await other_customer.get("/api/v2/portals/"))["items"]] == ["OPEN"]
