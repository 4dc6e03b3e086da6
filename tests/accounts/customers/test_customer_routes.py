"""The company's details, through the Customer API."""


async def test_the_customer_is_shown_as_its_partner_sees_it(customer_desk, customer_world):
    shown = await customer_desk.get("/api/v1/customer/")
    assert shown == await customer_world.get(f"/api/v1/customers/{customer_desk.team.customer}/")
    assert (shown["id"], shown["type"]) == (customer_desk.team.customer, "BUSINESS")


async def test_a_person_has_a_name_in_parts(customer_desks, customer_world):
    customer_desk = await customer_desks(await customer_world.customer("Ada Stone", "INDIVIDUAL"))
    shown = await customer_desk.get("/api/v1/customer/")
    assert shown["name"] == {"first_name": "Ada", "middle_name": None, "last_name": "Stone"}
    assert (shown["type"], shown["identification_number"]) == ("INDIVIDUAL", None)


async def test_details_that_change_are_seen_at_once(customer_desk, customer_world):
    path = f"/api/v1/customers/{customer_desk.team.customer}/"
    await customer_world.patch(path, {"email": "treasury@northwind.example"})
    assert (await customer_desk.get("/api/v1/customer/"))["email"] == "treasury@northwind.example"
