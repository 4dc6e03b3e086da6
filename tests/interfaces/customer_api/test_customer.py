"""The company's details, through the Customer API."""


async def test_the_customer_is_shown_as_its_partner_sees_it(desk, world):
    shown = await desk.get("/api/v1/customer/")
    assert shown == await world.get(f"/api/v1/customers/{desk.team.customer}/")
    assert (shown["id"], shown["type"]) == (desk.team.customer, "BUSINESS")


async def test_a_person_has_a_name_in_parts(desks, world):
    desk = await desks(await world.customer("Ada Stone", "INDIVIDUAL"))
    shown = await desk.get("/api/v1/customer/")
    assert shown["name"] == {"first_name": "Ada", "middle_name": None, "last_name": "Stone"}
    assert (shown["type"], shown["identification_number"]) == ("INDIVIDUAL", None)


async def test_details_that_change_are_seen_at_once(desk, world):
    path = f"/api/v1/customers/{desk.team.customer}/"
    await world.patch(path, {"email": "treasury@northwind.example"})
    assert (await desk.get("/api/v1/customer/"))["email"] == "treasury@northwind.example"
