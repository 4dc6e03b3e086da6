"""Service users: what they are made of, what they can never be given, and how their keys go."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.access.partners.test_jwt_login_routes import private_pem
from tests.support.customer_client import MemberDesk, Team, token_for
from tests.support.oauth_clients import KEYS, new_key

from billfold.access.team import service_users as programs

PATH = "/api/v1/team/service-users/"
NEW = {"name": "Ledger", "scopes": ["pockets.read", "customer.read"]}


async def made(customer_desk, **fields):
    return await customer_desk.post(PATH, NEW | {"public_key": new_key().pem} | fields)


@pytest.fixture
async def acting(customer_desk):
    """Make desks of service users with these scopes."""
    opened = []

    async def act(*scopes):
        told = await made(customer_desk, scopes=list(scopes), profile="documented")
        its = Team(customer_desk.team.customer, told["client_id"], None, scopes=scopes)
        opened.append(
            MemberDesk(customer_desk.bank, customer_desk.app, its, token=await token_for(customer_desk.bank, its))
        )
        return opened[-1], told

    yield act
    for each in opened:
        await each.close()


async def test_a_program_is_a_member_with_its_key_and_its_scopes(customer_desk):
    told = await made(customer_desk, description="Reads balances")
    assert set(told) >= {"member_id", "client_id", "name", "scopes", "key_id", "status", "time_created"}
    assert (told["status"], told["scopes"]) == ("ACTIVE", ["pockets.read", "customer.read"])
    assert await customer_desk.get(f"{PATH}{told['member_id']}/") == told
    as_member = await customer_desk.get(f"/api/v1/team/{told['member_id']}/")
    assert as_member["is_service_user"]
    assert (as_member["role"], as_member["email"]) == ("SERVICE", None)
    assert as_member["permissions"] == ["customer.read", "pockets.read"]
    for algorithm, key in KEYS.items():
        other = await made(customer_desk, public_key=key.pem)
        [kept] = (await customer_desk.get(f"{PATH}{other['member_id']}/keys/"))["items"]
        assert (kept["key_id"], kept["algorithm"]) == (other["key_id"], algorithm)


async def test_a_program_is_refused_with_each_mistake(customer_desk):
    weak, other = rsa.generate_private_key(65537, 1024), ec.generate_private_key(ec.SECP384R1())
    good = new_key()
    for changed, place in (
        ({"name": " "}, "name"),
        ({"description": "x" * 501}, "description"),
        ({"scopes": ["transfers.approve"]}, "scopes"),
        ({"scopes": ["openid"]}, "scopes"),
        ({"scopes": "pockets.read"}, "scopes"),
        ({"public_key": "x"}, "public_key"),
        ({"public_key": private_pem(good.private).decode()}, "public_key"),
        ({"public_key": None}, "public_key"),
        ({"profile": "loose"}, "profile"),
    ):
        body: dict[str, Any] = NEW | {"public_key": good.pem} | changed
        await customer_desk.invalid("POST", PATH, body, loc=f"body.{place}")
    for key in (weak, other):
        pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        body = NEW | {"public_key": pem.decode()}
        await customer_desk.invalid("POST", PATH, body, loc="body.public_key")
    told = await customer_desk.get("/api/v1/team/")
    assert [len(each["members"]) for each in told["groups"]] == [1, 0, 0, 0]


async def test_a_program_gives_nobody_more_than_it_has(customer_desk, acting):
    its, own = await acting("team.read", "team.write", "transfers.write")
    bigger = NEW | {"public_key": new_key().pem, "scopes": ["subscriptions.write"]}
    forbidden = {"status": 403, "code": "forbidden"}
    await its.refused("POST", PATH, bigger, **forbidden)
    user = {"first_name": "Ben", "last_name": "Ode", "email": "ben@northwind.example"}
    await its.refused("POST", "/api/v1/team/invite/", user | {"role": "ADMIN"}, **forbidden)
    invited = await its.post("/api/v1/team/invite/", user | {"role": "INITIATOR"})
    path = f"/api/v1/team/{invited['member_id']}/"
    await its.refused("PUT", path, {"role": "MANAGER"}, **forbidden)
    await its.refused("PUT", path, {"role": "ADMIN"}, **forbidden)
    assert (await its.ask("PUT", path, {"role": "VIEWER"}, status=200)).is_success
    strong = await made(customer_desk, scopes=["subscriptions.write"])
    keys = f"{PATH}{strong['member_id']}/keys/"
    for each in (keys, f"{keys}rotate/"):
        await its.refused("POST", each, {"public_key": new_key().pem}, **forbidden)
    await customer_desk.ask("DELETE", f"/api/v1/team/{strong['member_id']}/", status=200)
    path = f"/api/v1/team/{strong['member_id']}/"
    await its.refused("PUT", path, {"status": "ACTIVE"}, **forbidden)
    local_path = f"/api/v1/team/{own['member_id']}/"
    await its.invalid("PUT", local_path, {"role": "ADMIN"}, loc="body.role")


async def test_keys_are_added_replaced_and_revoked_at_once_with_the_tokens(customer_desk, acting):
    its, told = await acting("customer.read")
    keys = f"{PATH}{told['member_id']}/keys/"
    again = {"public_key": KEYS["ES256"].pem}
    second = await customer_desk.post(keys, again)
    await customer_desk.refused("POST", keys, again, status=409, code="duplicate-id")
    third = await customer_desk.post(f"{keys}rotate/", {"public_key": KEYS["EdDSA"].pem})
    listed = (await customer_desk.get(keys))["items"]
    assert [each["key_id"] for each in listed] == [third["key_id"], second["key_id"], told["key_id"]]
    assert [each["expires_at"] is None for each in listed] == [True, False, False]
    await its.ask("GET", "/api/v1/customer/", status=200)
    await customer_desk.ask("DELETE", f"{keys}{second['key_id']}/", status=204)
    await its.ask("GET", "/api/v1/customer/", status=401)
    await customer_desk.refused("DELETE", f"{keys}{second['key_id']}/", status=404, code="not-found")
    assert len((await customer_desk.get(keys))["items"]) == 2


async def test_a_deactivated_program_is_out_at_once_and_takes_no_key(customer_desk, acting):
    its, told = await acting("customer.read")
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


async def test_a_person_is_no_program(customer_desk):
    own = (await customer_desk.get("/api/v1/user/"))["member_id"]
    for path in (f"{PATH}{own}/", f"{PATH}{own}/keys/"):
        await customer_desk.refused("GET", path, status=404, code="not-found")


async def test_who_gave_a_program_a_key_is_known_through_programs_too(customer_desk, customer_desks, acting):
    its, _ = await acting("team.read", "team.write", "customer.read")
    made_by_it = await its.post(PATH, NEW | {"public_key": new_key().pem, "scopes": ["team.read"]})
    client_id, second = made_by_it["client_id"], await customer_desks(customer_desk.team.customer)
    pool = customer_desk.bank.pool
    assert await programs.list_key_owner_ids(pool, client_id) == {customer_desk.team.user_id}
    keys = f"{PATH}{made_by_it['member_id']}/keys/"
    await second.post(f"{keys}rotate/", {"public_key": new_key().pem})
    assert await programs.list_key_owner_ids(pool, client_id) == {customer_desk.team.user_id, second.team.user_id}
