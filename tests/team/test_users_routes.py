"""The user, through the Customer API."""

from uuid import UUID

from tests.support.oauth import member
from tests.support.world import MemberDesk, Team, token_for

PATH, MEMBERSHIPS = "/api/v1/user/", "/api/v1/user/memberships/"


async def test_the_user_endpoint_returns_only_the_fields_of_the_granted_scopes(customer_desk):
    async def told(*scopes):
        token = await token_for(customer_desk.bank, customer_desk.team, scopes=scopes)
        return (await customer_desk.ask("GET", PATH, status=200, token=token)).json()

    least = await told("profile")
    assert least["sub"] == str(customer_desk.team.user_id)
    assert (least["name"], least["customer_id"]) == ("Anna Lind", customer_desk.team.customer)
    assert set(least) == {"sub", "name", "given_name", "family_name", "member_id", "customer_id", "partner_id"}
    mail = await told("profile", "email")
    assert set(mail) - set(least) == {"email", "email_verified"}
    phone = await told("profile", "phone")
    assert set(phone) - set(least) == {"phone_number", "phone_number_verified"}


async def test_memberships_list_every_customer_and_role(customer_desk, world):
    other = await world.customer("Contoso")
    async with customer_desk.bank.pool.acquire() as conn:
        await member(conn, UUID(other), role="VIEWER", user_id=customer_desk.team.user_id)
    items = (await customer_desk.get(MEMBERSHIPS))["items"]
    found = {(each["customer_id"], each["customer_name"], each["role"]) for each in items}
    assert found == {(customer_desk.team.customer, "Northwind", "ADMIN"), (other, "Contoso", "VIEWER")}
    assert {each["status"] for each in items} == {"ACTIVE"}


async def test_a_client_without_a_user_is_forbidden_at_the_user_endpoint(customer_desk):
    alone = Team(customer_desk.team.customer, customer_desk.team.client_id, None)
    service = MemberDesk(customer_desk.bank, customer_desk.app, alone, token=await token_for(customer_desk.bank, alone))
    for path in (PATH, MEMBERSHIPS):
        await service.refused("GET", path, status=403, code="forbidden")
    assert (await service.get("/api/v1/customer/"))["id"] == customer_desk.team.customer
    await service.close()
