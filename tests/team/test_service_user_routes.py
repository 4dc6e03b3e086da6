"""Service users: creation, scopes they can never have, and revocation of keys."""

import asyncio

import pytest
from tests.support.approvals import member_id_of
from tests.support.oauth import KEYS, new_key
from tests.support.world import token_for

from billfold.identity.members import store
from billfold.oauth.rules.authorization_params import SCOPES

INVITE = "/api/v1/team/invite/"
PATH = "/api/v1/team/service-users/"
NEW = {"name": "Ledger", "scopes": ["pockets.read", "customer.read"]}


def user(name, *, role):
    """Return whom to invite."""
    return {"first_name": "Ben", "last_name": "Ode", "email": f"{name}@northwind.example", "role": role}


async def create_service_user(customer_desk, **fields):
    return await customer_desk.post(PATH, NEW | {"public_key": new_key().pem} | fields)


async def test_a_service_user_is_a_member_with_its_key_and_scopes(customer_desk):
    told = await create_service_user(customer_desk, description="Reads balances")
    assert set(told) >= {"member_id", "client_id", "name", "scopes", "key_id", "status", "time_created"}
    assert (told["status"], told["scopes"]) == ("ACTIVE", ["pockets.read", "customer.read"])
    assert await customer_desk.get(f"{PATH}{told['member_id']}/") == told
    as_member = await customer_desk.get(f"/api/v1/team/{told['member_id']}/")
    assert as_member["is_service_user"]
    assert (as_member["role"], as_member["email"]) == ("SERVICE", None)
    assert as_member["permissions"] == ["customer.read", "pockets.read"]
    for algorithm, key in KEYS.items():
        other = await create_service_user(customer_desk, public_key=key.pem)
        [kept] = (await customer_desk.get(f"{PATH}{other['member_id']}/keys/"))["items"]
        assert (kept["key_id"], kept["algorithm"]) == (other["key_id"], algorithm)


SCOPES_OF_WEAK = (*(scope for scope in SCOPES if scope.endswith(".read")), "notifications.write", "team.write")
STRONGER = ("APPROVER", "MANAGER", "ADMIN")


@pytest.mark.parametrize("role", ["SERVICE", "ADMIN"])
async def test_a_token_cannot_grant_more_than_its_own_permissions(customer_desk, customer_desks, service_users, role):
    customer, scopes = customer_desk.team.customer, (*SCOPES_OF_WEAK, "transfers.write")
    if role == "SERVICE":
        weak, _ = await service_users(customer_desk, *scopes)
    else:
        weak = await customer_desks(customer, scopes=scopes)
    gone = f"/api/v1/team/{await member_id_of(await customer_desks(customer, role='MANAGER'))}/"
    await customer_desk.ask("DELETE", gone, status=200)
    strong = await create_service_user(customer_desk, scopes=["subscriptions.write"])
    invited = [
        await customer_desk.post(INVITE, user(email, role=as_)) for email, as_ in (("a", "ADMIN"), ("b", "VIEWER"))
    ]
    chief, viewer = (f"/api/v1/team/{each['member_id']}/" for each in invited)
    key = {"public_key": new_key().pem}
    for method, path, body in (
        ("POST", PATH, NEW | key | {"scopes": ["subscriptions.write"]}),
        ("POST", PATH, NEW | key | {"scopes": ["approval_rules.write", "team.write"]}),
        ("POST", f"{PATH}{strong['member_id']}/keys/", key),
        ("POST", f"{PATH}{strong['member_id']}/keys/rotate/", key),
        *(("POST", INVITE, user("c", role=each)) for each in STRONGER),
        *(("PUT", viewer, {"role": each}) for each in STRONGER),
        ("POST", f"{chief}invite/", b""),
        ("PUT", gone, {"status": "ACTIVE"}),
        ("PUT", gone, {"role": "ADMIN"}),
    ):
        await weak.refused(method, path, body, status=403, code="forbidden")
    assert (await weak.post(INVITE, user("c", role="INITIATOR")))["role"] == "INITIATOR"
    for body in ({"role": "VIEWER"}, {"status": "ACTIVE"}):
        assert (await weak.ask("PUT", gone, body, status=200)).is_success
    assert (await weak.ask("PUT", chief, {"role": "VIEWER"}, status=200)).is_success
    await weak.refused("PUT", gone, {"role": "MANAGER"}, status=403, code="forbidden")


async def test_a_token_with_only_team_scopes_cannot_grant_other_scopes(customer_desk):
    alone = await token_for(customer_desk.bank, customer_desk.team, scopes=("team.read", "team.write"))
    key = {"public_key": new_key().pem}
    for path, body in ((INVITE, user("a", role="VIEWER")), (INVITE, user("a", role="ADMIN")), (PATH, NEW | key)):
        await customer_desk.refused("POST", path, body, status=403, code="forbidden", token=alone)
    own = NEW | key | {"scopes": ["team.write"]}
    assert (await customer_desk.ask("POST", PATH, own, status=201, token=alone)).is_success


async def test_deleting_the_last_key_of_a_service_user_is_refused(customer_desk, service_users):
    its, told = await service_users(customer_desk, "customer.read")
    keys = f"{PATH}{told['member_id']}/keys/"
    last = {"status": 409, "code": "last-key"}
    await customer_desk.refused("DELETE", f"{keys}{told['key_id']}/", **last)
    await its.ask("GET", "/api/v1/customer/", status=200)
    second = await customer_desk.post(keys, {"public_key": new_key().pem})
    paths = [f"{keys}{key_id}/" for key_id in (told["key_id"], second["key_id"])]
    answers = await asyncio.gather(*(customer_desk.send("DELETE", path) for path in paths))
    assert sorted(each.status_code for each in answers) == [204, 409]
    [left] = (await customer_desk.get(keys))["items"]
    assert left["registered_by"] == await member_id_of(customer_desk)
    await customer_desk.refused("DELETE", f"{keys}{left['key_id']}/", **last)


async def test_replacing_or_revoking_a_service_user_key_ends_its_tokens_immediately(customer_desk, service_users):
    its, told = await service_users(customer_desk, "customer.read")
    keys = f"{PATH}{told['member_id']}/keys/"
    again = {"public_key": KEYS["ES256"].pem}
    second = await customer_desk.post(keys, again)
    await customer_desk.refused("POST", keys, again, status=409, code="duplicate-id")
    third = await customer_desk.post(f"{keys}rotate/", {"public_key": KEYS["EdDSA"].pem})
    listed = (await customer_desk.get(keys))["items"]
    assert [each["key_id"] for each in listed] == [third["key_id"], second["key_id"], told["key_id"]]
    assert [each["expires_at"] is None for each in listed] == [True, False, False]
    await its.ask("GET", "/api/v1/customer/", status=200)
    await customer_desk.refused("DELETE", f"{keys}{third['key_id']}/", status=409, code="last-key")
    await customer_desk.ask("DELETE", f"{keys}{second['key_id']}/", status=204)
    await its.ask("GET", "/api/v1/customer/", status=401)
    await customer_desk.refused("DELETE", f"{keys}{second['key_id']}/", status=404, code="not-found")
    assert len((await customer_desk.get(keys))["items"]) == 2


async def test_a_deactivated_service_user_loses_access_immediately_and_accepts_no_key(customer_desk, service_users):
    its, told = await service_users(customer_desk, "customer.read")
    await its.ask("GET", "/api/v1/customer/", status=200)
    path, keys = f"/api/v1/team/{told['member_id']}/", f"{PATH}{told['member_id']}/keys/"
    await customer_desk.ask("DELETE", path, status=200)
    await its.ask("GET", "/api/v1/customer/", status=401)
    key = {"public_key": new_key().pem}
    for each in (keys, f"{keys}rotate/"):
        await customer_desk.refused("POST", each, key, status=409, code="member-not-active")
    await customer_desk.refused("DELETE", path, status=409, code="member-not-active")
    assert (await customer_desk.ask("PUT", path, {"status": "ACTIVE"}, status=200)).is_success
    await its.ask("GET", "/api/v1/customer/", status=401)


async def test_a_person_is_not_found_as_a_service_user(customer_desk):
    own = (await customer_desk.get("/api/v1/user/"))["member_id"]
    for path in (f"{PATH}{own}/", f"{PATH}{own}/keys/"):
        await customer_desk.refused("GET", path, status=404, code="not-found")


async def test_key_owners_of_a_service_user_include_creators_through_other_service_users(
    customer_desk, customer_desks, service_users
):
    its, _ = await service_users(customer_desk, "team.read", "team.write")
    made_by_it = await its.post(PATH, NEW | {"public_key": new_key().pem, "scopes": ["team.read"]})
    client_id, second = made_by_it["client_id"], await customer_desks(customer_desk.team.customer)
    pool = customer_desk.bank.pool
    assert await store.list_key_owner_ids(pool, client_id) == {customer_desk.team.user_id}
    keys = f"{PATH}{made_by_it['member_id']}/keys/"
    await second.post(f"{keys}rotate/", {"public_key": new_key().pem})
    assert await store.list_key_owner_ids(pool, client_id) == {customer_desk.team.user_id, second.team.user_id}
