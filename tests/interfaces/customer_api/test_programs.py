"""Service users: what they are made of, what they can never be given, and how their keys go."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.domain.oauth.programs import KEYS, new_key
from tests.interfaces.customer_api.desk import MemberDesk, Team, token_for
from tests.interfaces.partner_api.test_token import private_pem

from billfold.domain.team import programs

PATH = "/api/v1/team/service-users/"
NEW = {"name": "Ledger", "scopes": ["pockets.read", "customer.read"]}


async def made(desk, **fields):
    return await desk.post(PATH, NEW | {"public_key": new_key().pem} | fields)


@pytest.fixture
async def acting(desk):
    """Make desks of service users with these scopes."""
    opened = []

    async def act(*scopes):
        told = await made(desk, scopes=list(scopes), profile="documented")
        its = Team(desk.team.customer, told["client_id"], None, scopes)
        opened.append(MemberDesk(desk.bank, desk.app, its, await token_for(desk.bank, its)))
        return opened[-1], told

    yield act
    for each in opened:
        await each.close()


async def test_a_program_is_a_member_with_its_key_and_its_scopes(desk):
    told = await made(desk, description="Reads balances")
    assert set(told) >= {
        "member_id", "client_id", "name", "scopes", "key_id", "status", "time_created",
    }  # fmt: skip
    assert (told["status"], told["scopes"]) == ("ACTIVE", ["pockets.read", "customer.read"])
    assert await desk.get(f"{PATH}{told['member_id']}/") == told
    as_member = await desk.get(f"/api/v1/team/{told['member_id']}/")
    assert as_member["is_service_user"]
    assert (as_member["role"], as_member["email"]) == ("SERVICE", None)
    assert as_member["permissions"] == ["customer.read", "pockets.read"]
    for algorithm, key in KEYS.items():
        other = await made(desk, public_key=key.pem)
        [kept] = (await desk.get(f"{PATH}{other['member_id']}/keys/"))["items"]
        assert (kept["key_id"], kept["algorithm"]) == (other["key_id"], algorithm)


async def test_a_program_is_refused_with_each_mistake(desk):
    weak, other = rsa.generate_private_key(65537, 1024), ec.generate_private_key(ec.SECP384R1())
    good = new_key()
    for changed, place in (
        ({"name": " "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"description": "x" * 501}, "description"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["pockets.own"]}, "scopes"),
        ({"scopes": ["transfers.approve"]}, "scopes"),
        ({"scopes": ["openid"]}, "scopes"),
        ({"scopes": "pockets.read"}, "scopes"),
        ({"public_key": "x"}, "public_key"),
        ({"public_key": private_pem(good.private).decode()}, "public_key"),
        ({"public_key": None}, "public_key"),
        ({"profile": "loose"}, "profile"),
    ):
        body: dict[str, Any] = NEW | {"public_key": good.pem} | changed
        await desk.invalid("POST", PATH, body, loc=f"body.{place}")
    for key in (weak, other):
        pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        body = NEW | {"public_key": pem.decode()}
        await desk.invalid("POST", PATH, body, loc="body.public_key")
    told = await desk.get("/api/v1/team/")
    assert [len(each["members"]) for each in told["groups"]] == [1, 0, 0, 0]


async def test_a_program_gives_nobody_more_than_it_has(desk, acting):
    its, own = await acting("team.read", "team.write", "transfers.write")
    bigger = NEW | {"public_key": new_key().pem, "scopes": ["subscriptions.write"]}
    forbidden = {"status": 403, "code": "forbidden"}
    await its.refused("POST", PATH, bigger, **forbidden)
    person = {"first_name": "Ben", "last_name": "Ode", "email": "ben@northwind.example"}
    await its.refused("POST", "/api/v1/team/invite/", person | {"role": "ADMIN"}, **forbidden)
    invited = await its.post("/api/v1/team/invite/", person | {"role": "INITIATOR"})
    path = f"/api/v1/team/{invited['member_id']}/"
    await its.refused("PUT", path, {"role": "MANAGER"}, **forbidden)
    await its.refused("PUT", path, {"role": "ADMIN"}, **forbidden)
    assert (await its.ask("PUT", path, {"role": "VIEWER"}, status=200)).is_success
    strong = await made(desk, scopes=["subscriptions.write"])
    keys = f"{PATH}{strong['member_id']}/keys/"
    for each in (keys, f"{keys}rotate/"):
        await its.refused("POST", each, {"public_key": new_key().pem}, **forbidden)
    await desk.ask("DELETE", f"/api/v1/team/{strong['member_id']}/", status=200)
    path = f"/api/v1/team/{strong['member_id']}/"
    await its.refused("PUT", path, {"status": "ACTIVE"}, **forbidden)
    own_path = f"/api/v1/team/{own['member_id']}/"
    await its.invalid("PUT", own_path, {"role": "ADMIN"}, loc="body.role")


async def test_keys_are_added_replaced_and_revoked_at_once_with_the_tokens(desk, acting):
    its, told = await acting("customer.read")
    keys = f"{PATH}{told['member_id']}/keys/"
    again = {"public_key": KEYS["ES256"].pem}
    second = await desk.post(keys, again)
    await desk.refused("POST", keys, again, status=409, code="duplicate-id")
    third = await desk.post(f"{keys}rotate/", {"public_key": KEYS["EdDSA"].pem})
    listed = (await desk.get(keys))["items"]
    assert [each["key_id"] for each in listed] == [
        third["key_id"], second["key_id"], told["key_id"],
    ]  # fmt: skip
    assert [each["expires_at"] is None for each in listed] == [True, False, False]
    await its.ask("GET", "/api/v1/customer/", status=200)
    await desk.ask("DELETE", f"{keys}{second['key_id']}/", status=204)
    await its.ask("GET", "/api/v1/customer/", status=401)
    await desk.refused("DELETE", f"{keys}{second['key_id']}/", status=404, code="not-found")
    assert len((await desk.get(keys))["items"]) == 2


async def test_a_deactivated_program_is_out_at_once_and_takes_no_key(desk, acting):
    its, told = await acting("customer.read")
    await its.ask("GET", "/api/v1/customer/", status=200)
    path, keys = f"/api/v1/team/{told['member_id']}/", f"{PATH}{told['member_id']}/keys/"
    await desk.ask("DELETE", path, status=200)
    await its.ask("GET", "/api/v1/customer/", status=401)
    key = {"public_key": new_key().pem}
    for each in (keys, f"{keys}rotate/"):
        await desk.refused("POST", each, key, status=409, code="member-not-active")
    await desk.refused("DELETE", path, status=409, code="member-not-active")
    assert (await desk.ask("PUT", path, {"status": "ACTIVE"}, status=200)).is_success
    await its.ask("GET", "/api/v1/customer/", status=401)


async def test_a_person_is_no_program(desk):
    own = (await desk.get("/api/v1/user/"))["member_id"]
    for path in (f"{PATH}{own}/", f"{PATH}{own}/keys/"):
        await desk.refused("GET", path, status=404, code="not-found")


async def test_who_gave_a_program_a_key_is_known_through_programs_too(desk, desks, acting):
    its, _ = await acting("team.read", "team.write", "customer.read")
    made_by_it = await its.post(PATH, NEW | {"public_key": new_key().pem, "scopes": ["team.read"]})
    client_id, second = made_by_it["client_id"], await desks(desk.team.customer)
    pool = desk.bank.pool
    assert await programs.keepers_of(pool, client_id) == {desk.team.user_id}
    keys = f"{PATH}{made_by_it['member_id']}/keys/"
    await second.post(f"{keys}rotate/", {"public_key": new_key().pem})
    assert await programs.keepers_of(pool, client_id) == {desk.team.user_id, second.team.user_id}
