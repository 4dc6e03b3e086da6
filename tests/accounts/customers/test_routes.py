"""Customers over HTTP: listed, read, changed and closed."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import pytest
from tests.support.cases import in_one_bank

from billfold.accounts.customers.schemas import Name, render_customer
from billfold.ledger.customers import CustomerRow, CustomerStatus

PATH = "/api/v1/customers/"
ADDRESS = {
    "street_address": "1 Main Street",
    "city": "Springfield",
    "postal_code": "12345",
    "state": "NY",
    "country": "US",
}
CLOSING = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}


@pytest.fixture
async def closing_desk(partner_desks):
    """The desk of a partner who may close customers."""
    return await partner_desks("initech", features=("customer_closure",))


async def test_the_customer_list_includes_the_partner_account_and_not_the_bank(world, other_partner):
    made = [await world.customer(f"No. {n}") for n in range(4)]
    person = await world.customer("Ada Stone", "INDIVIDUAL")
    await world.facilitation()
    await other_partner.customer()
    listed = await world.pages(PATH)
    own = str(world.partner.own_customer_id)
    assert {each["id"]: each["role"] for each in listed} == {own: "partner"} | dict.fromkeys(
        [*made, person], "customer"
    )
    assert all(each["object_type"] == "Customer" for each in listed)
    people = await world.get(PATH, {"type": "INDIVIDUAL"})
    assert [each["id"] for each in people["items"]] == [person]
    await world.pocket(made[0])
    for status, expected in (("OPEN", {made[0], own}), ("PENDING", {*made[1:], person})):
        items = await world.pages(PATH, {"account_status": status})
        assert {each["id"] for each in items} == expected
    named = {"customer_id[]": [person, made[0], made[0], own]}
    for filters, expected in (({}, {person, made[0], own}), ({"account_status": "OPEN"}, {made[0], own})):
        items = await world.pages(PATH, named | filters)
        assert {each["id"] for each in items} == expected
    assert not await world.pages(PATH, named | {"name": "nobody"})
    foreign = {"customer_id[]": [person, await other_partner.customer()]}
    await world.refused("GET", PATH, filters=foreign, status=404, code="not-found")
    for filters in ({"account_status": "NEW"}, {"customer_id[]": "x"}, {"type": "CAT"}, {"limit": "0"}, {"nick": "x"}):
        await world.ask("GET", PATH, status=422, filters=filters)


async def test_a_person_name_has_parts_and_a_business_name_is_one_text(world):
    parts = {"first_name": "Ada", "middle_name": "K. von", "last_name": "Stone"}
    for given in (parts, "Ada K. von Stone"):
        person = await world.customer(given, "INDIVIDUAL")
        shown = await world.patch(f"{PATH}{person}/", {"email": "ada@example.org"})
        assert shown["name"] == parts
        assert shown["date_of_birth"] is None
    business = await world.get(f"{PATH}{await world.customer('Northwind')}/")
    assert (business["name"], business["date_of_birth"]) == ("Northwind", None)


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("Ada K. von Stone", ("Ada", "K. von", "Stone")),
        ("Ada Stone", ("Ada", None, "Stone")),
        ("Stone", ("", None, "Stone")),
        (" ", ("", None, "")),
    ],
    ids=["four words", "two", "one", "none"],
)
def test_a_single_line_person_name_is_shown_in_parts(written, parts):
    row = CustomerRow(
        customer_id=UUID(int=1),
        partner_id=None,
        role="customer",
        type="INDIVIDUAL",
        name=written,
        account_status=CustomerStatus.OPEN,
        profile="{}",
        closed_at=None,
        closure_reason=None,
        opened_at=datetime(2025, 6, 2, tzinfo=UTC),
    )
    name = render_customer(row).name
    assert isinstance(name, Name)
    assert (name.first_name, name.middle_name, name.last_name) == parts


@in_one_bank(
    ("name", "kind"),
    [
        ("Ada", "INDIVIDUAL"),
        (f"Ada {'x' * 51}", "INDIVIDUAL"),
        ({"first_name": "Ada"}, "INDIVIDUAL"),
        ({"first_name": "Ada", "last_name": ""}, "INDIVIDUAL"),
        ({"first_name": "Ada", "last_name": "Stone"}, "BUSINESS"),
    ],
    ids=["one word", "too long", "no last", "empty last", "of a business"],
)
async def test_a_name_of_the_wrong_customer_type_is_refused(world, name, kind):
    body = {"name": name, "type": kind}
    answer = await world.ask("POST", "/api/v1/sandbox/customers/", body, status=422)
    assert answer.json()["detail"][0]["loc"][:2] == ["body", "name"]


async def test_contact_details_are_replaced_field_by_field(world):
    customer = await world.customer("Northwind")
    path = f"{PATH}{customer}/"
    shown = await world.get(path)
    assert (shown["name"], shown["type"], shown["account_status"]) == ("Northwind", "BUSINESS", "PENDING")
    contact = {"first_name": "Ada", "phone_number": "+12125550100"}
    first = await world.patch(path, {"email": "a@example.org", "address": ADDRESS})
    second = await world.patch(path, {"phone_number": "+12125550123", "trusted_contact": contact})
    assert first["email"] == second["email"] == "a@example.org"
    assert second["phone_number"] == "+12125550123"
    for name, value in ADDRESS.items():
        assert second["address"][name] == value
    assert second["trusted_contact"]["first_name"] == "Ada"
    third = await world.patch(path, {"trusted_contact": None})
    assert third["trusted_contact"] is None
    assert third["phone_number"] == "+12125550123"
    assert await world.get(path) == third
    at_once = ({"email": "b@example.org"}, {"phone_number": "+12125550199"}, {"trusted_contact": contact})
    await asyncio.gather(*(world.patch(path, change) for change in at_once))
    latest = await world.get(path)
    assert (latest["email"], latest["phone_number"]) == ("b@example.org", "+12125550199")
    assert latest["trusted_contact"]["first_name"] == "Ada"


async def test_a_phone_number_without_a_country_code_is_stored_as_a_us_number(world):
    path = f"{PATH}{await world.customer()}/"
    contact = {"first_name": "Ada", "phone_number": "12125550100"}
    shown = await world.patch(path, {"phone_number": "2125550123", "trusted_contact": contact})
    assert shown["phone_number"] == "+12125550123"
    assert shown["trusted_contact"]["phone_number"] == "+12125550100"


async def test_a_foreign_address_accepts_only_the_states_of_its_country(world):
    path = f"{PATH}{await world.customer()}/"
    abroad = ADDRESS | {"country": "AU", "state": "VIC"}
    assert (await world.patch(path, {"address": abroad}))["address"]["state"] == "VIC"


async def test_a_malformed_customer_change_changes_nothing(closing_desk):
    customer = await closing_desk.customer()
    path = f"{PATH}{customer}/"
    before = await closing_desk.get(path)
    for body, loc in [
        ({"email": "nobody"}, "body.email"),
        ({"phone_number": "555"}, "body.phone_number"),
        ({"address": {"city": "Springfield"}}, "body.address.street_address"),
        ({"address": ADDRESS | {"country": "Narnia"}}, "body.address.country"),
        ({"address": ADDRESS | {"country": "XX"}}, "body.address.country"),
        ({"address": ADDRESS | {"state": "ZZ"}}, "body.address.state"),
        ({"trusted_contact": {"address": ADDRESS | {"country": "UK"}}}, "body.trusted_contact.address.country"),
        ({"phone_number": "+1 212 555 0100"}, "body.phone_number"),
        ({"phone_number": "1125550100"}, "body.phone_number"),
        ({"address": ADDRESS | {"planet": "Mars"}}, "body.address.planet"),
        ({"trusted_contact": {"email": "nobody"}}, "body.trusted_contact.email"),
        ({"name": "Other"}, "body.name"),
        ({"trusted_contact": {"first_name": "two\nlines"}}, "body.trusted_contact.first_name"),
        ({"email": "a@example.org", "closure_reason": "INACTIVITY"}, "body.closure_reason"),
        ({"closure_description": "moved away"}, "body.closure_description"),
        ({"status": "CLOSED"}, "body.closure_reason"),
        (CLOSING | {"email": "a@example.org"}, "body.status"),
    ]:
        await closing_desk.invalid("PATCH", path, body, loc=loc)
        assert await closing_desk.get(path) == before


async def test_closing_a_customer_closes_its_empty_pockets_and_portals(closing_desk):
    pocket = await closing_desk.funded(1_000_00)
    second = await closing_desk.pocket(pocket.customer)
    path = f"{PATH}{pocket.customer}/"
    await closing_desk.refused("PATCH", path, CLOSING, status=422, code="customer-has-balance")
    own = await closing_desk.facilitation()
    await closing_desk.transfer(pocket, own, None, type="PARTNER_CUSTOMER_DEFUNDING", target="the last of it")
    await closing_desk.refused("PATCH", path, CLOSING, status=422, code="customer-has-balance")
    await closing_desk.days(1)
    closed = await closing_desk.patch(path, CLOSING | {"closure_description": "moved away"})
    assert closed["account_status"] == "CLOSED"
    for each in (pocket, second):
        assert (await closing_desk.get(each.path))["status"] == "CLOSED"
        assert (await closing_desk.get(f"{each.path}portals/{each.portal}/"))["status"] == "CLOSED"
    for body in (CLOSING, {"email": "late@example.org"}):
        await closing_desk.refused("PATCH", path, body, status=409, code="customer-not-open")
    body = {"pocket_name": "Again", "deposit_strategy_id": "UST-4W"}
    await closing_desk.refused(
        "POST", f"/api/v2/customers/{pocket.customer}/pockets/", body, status=409, code="customer-not-open"
    )
    listed = await closing_desk.get(PATH, {"account_status": "CLOSED"})
    assert [each["id"] for each in listed["items"]] == [pocket.customer]


async def test_closing_a_customer_without_the_closure_feature_is_refused(world):
    customer = await world.customer()
    path = f"{PATH}{customer}/"
    await world.refused("PATCH", path, CLOSING, status=403, code="feature-not-enabled")
    assert (await world.get(path))["account_status"] == "PENDING"


async def test_a_partner_closing_its_own_account_is_refused(closing_desk):
    path = f"{PATH}{closing_desk.partner.own_customer_id}/"
    await closing_desk.refused("PATCH", path, CLOSING, status=403, code="forbidden")
    assert (await closing_desk.get(path))["account_status"] != "CLOSED"


async def test_the_customer_api_shows_the_same_customer_as_the_partner_api(customer_desk, world):
    shown = await customer_desk.get("/api/v1/customer/")
    assert shown == await world.get(f"/api/v1/customers/{customer_desk.team.customer}/")
    assert (shown["id"], shown["type"]) == (customer_desk.team.customer, "BUSINESS")
