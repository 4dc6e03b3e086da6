"""Portals through the Customer API."""

import pytest
from tests.interfaces.partner_api.desk import UNKNOWN


@pytest.fixture
async def pocket(desk):
    return await desk.pocket()


async def test_a_portal_is_opened_listed_and_paid_into(desk, world, pocket):
    path = f"{pocket.path}portals/"
    made = await desk.post(path, {"name": "Payroll", "payment_rails": ["WIRE"]})
    assert (made["status"], made["payment_rails"]) == ("OPEN", ["WIRE"])
    assert made == await world.get(f"{path}{made['id']}/")
    listed = (await desk.get(path))["items"]
    assert {each["id"] for each in listed} == {made["id"], pocket.portal}
    assert listed == (await desk.get("/api/v2/portals/"))["items"]
    assert await desk.pages(path, limit=1) == listed
    body = {"portal_id": made["id"], "amount_usdc": 5_000_00, "sender_name": "Contoso"}
    await world.ask("POST", "/api/v1/sandbox/wire/", body, status=202)
    assert (await desk.get("/api/v2/transactions/"))["items"][0]["portal_id"] == made["id"]


async def test_portals_are_filtered_by_type(desk, pocket):
    for path in ("/api/v2/portals/", f"{pocket.path}portals/"):
        kinds = {"BANK_VIRTUAL_ACCOUNT_PORTAL": 1, "CRYPTO_DEPOSIT_ADDRESS_PORTAL": 0}
        for kind, count in kinds.items():
            assert len((await desk.get(path, {"type[]": kind}))["items"]) == count
        await desk.invalid("GET", path, filters={"type[]": "X"}, loc="query.type[]")


async def test_a_portal_is_renamed_and_closed_for_ever_without_an_answer(desk, pocket):
    path = f"{pocket.path}portals/{pocket.portal}/"
    answer = await desk.ask("PATCH", path, {"name": "Wages"}, status=204)
    assert answer.content == b""
    await desk.ask("PATCH", path, {"name": "Old wages", "status": "CLOSED"}, status=204)
    (shown,) = (await desk.get(f"{pocket.path}portals/"))["items"]
    assert (shown["name"], shown["status"]) == ("Old wages", "CLOSED")
    for body in ({"status": "CLOSED"}, {"name": "x"}):
        await desk.refused("PATCH", path, body, status=412, code="already-closed")


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
async def test_a_change_of_another_shape_is_refused(desk, pocket, body, loc):
    await desk.invalid("PATCH", f"{pocket.path}portals/{pocket.portal}/", body, loc=loc)


async def test_portals_that_cannot_be_opened_are_refused(desk, pocket):
    path = f"{pocket.path}portals/"
    crypto = {"name": "x", "type": "CRYPTO_DEPOSIT_ADDRESS_PORTAL", "chain": "SOLANA"}
    await desk.refused("POST", path, crypto, status=422, code="rail-not-available")
    await desk.invalid("POST", path, {"name": "x", "chain": "SOLANA"}, loc="body.chain")
    await desk.invalid("POST", path, {"name": "x", "payment_rails": []}, loc="body.payment_rails")
    await desk.invalid("POST", path, {"name": "x" * 129}, loc="body.name")
    assert len((await desk.get(path))["items"]) == 1


async def test_instructions_say_how_to_pay_by_each_rail(desk, world, pocket):
    path = f"{pocket.path}portals/{pocket.portal}/funding-instructions/"
    told = await desk.get(path)
    assert told == await world.get(path)
    rails = [each["payment_rail"] for each in told["instructions"]]
    assert rails == ["ACH", "WIRE", "INTERNATIONAL_WIRE", "ON_US"]
    assert {each["beneficiary_name"] for each in told["instructions"]} == {"Northwind"}


async def test_portals_of_another_customer_are_not_there(desk, stranger, pocket):
    theirs = await stranger.pocket()
    portal = f"portals/{theirs.portal}/"
    for method, path, body in (
        ("GET", f"{theirs.path}portals/", b""),
        ("POST", f"{theirs.path}portals/", {"name": "x"}),
        ("PATCH", theirs.path + portal, {"status": "CLOSED"}),
        ("PATCH", pocket.path + portal, {"status": "CLOSED"}),
        ("GET", f"{pocket.path}{portal}funding-instructions/", b""),
        ("GET", f"{pocket.path}portals/{UNKNOWN}/funding-instructions/", b""),
    ):
        await desk.refused(method, path, body, status=404, code="not-found")
    assert [each["status"] for each in (await stranger.get("/api/v2/portals/"))["items"]] == [
        "OPEN"
    ]
