"""Programs of a company: who may register them, what is refused, and for whom they work."""

import json
from typing import Any

import pytest
from tests.support.browser import applications, client_of, register
from tests.support.oauth import KEYS, REDIRECT, company, program

from billfold.identity.members import store as user_members
from billfold.oauth import clients
from billfold.oauth.types import AUTHORIZATION_CODE, REFRESH_TOKEN
from billfold.web.team import oauth_clients as page


@pytest.fixture
async def inside(anna, browser):
    """The browser of the administrator, who has just proved who she is."""
    await anna.sign_in(browser)
    return browser


async def count(bank):
    return await bank.pool.fetchval("SELECT count(*) FROM oauth_client")


async def test_an_administrator_registers_a_client_and_gets_an_email(anna, inside, bank, emails):
    await inside.go("/account")
    assert f'href="{applications(anna)}"' in inside.page.text
    path = await register(anna, inside)
    made = await clients.find_client(bank.pool, client_of(path))
    assert made is not None
    assert (made.name, made.profile, made.owner_id) == ("Books", "fapi2", anna.customer_id)
    assert made.redirect_uris == (REDIRECT, "http://127.0.0.1:8123/back")
    assert made.post_logout_redirect_uris == ("https://books.example/bye",)
    assert made.scopes == ("openid", "pockets.read")
    assert made.grant_types == (AUTHORIZATION_CODE, REFRESH_TOKEN)
    assert (made.dpop_bound, made.requires_nonce, made.requires_signature) == (True, True, False)
    [key] = await clients.list_client_keys(bank.pool, made.client_id, anna.pages_clock.now)
    assert key.key_id == KEYS["ES256"].thumbprint
    await inside.follow()
    for told in (made.client_id, key.key_id, "https://auth.localhost:8443", REDIRECT):
        assert told in inside.text
    [(subject, text)] = await emails()
    assert subject == "An application of Northwind was changed"
    assert "the application Books was registered" in text


async def test_everything_that_can_be_chosen_is_kept(anna, inside, bank):
    path = await register(
        anna,
        inside,
        profile="documented",
        refreshes=None,
        requires_signature="yes",
        description=None,
        post_logout_redirect_uris="",
        public_key=json.dumps(KEYS["EdDSA"].jwk),
    )
    made = await clients.find_client(bank.pool, client_of(path))
    assert made is not None
    assert (made.profile, made.grant_types) == ("documented", (AUTHORIZATION_CODE,))
    assert (made.dpop_bound, made.requires_signature, made.description) == (False, True, "")
    assert made.post_logout_redirect_uris == ()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": " "}, "The name must be 1 to 200"),
    ({"description": "a\r\nb"}, "500 printable characters"),
    ({"profile": "easy"}, "The profile must be one of fapi2"),
    ({"redirect_uris": ""}, "The redirect addresses belong to authorization_code"),
    ({"redirect_uris": "\n".join(f"{REDIRECT}/{n}" for n in range(21))}, "The redirect addresses may be 20 at most"),
    ({"post_logout_redirect_uris": "javascript:alert(1)"}, "must begin with https://"),
    ({"scope.pockets.read": None, "scope.openid": None}, "Choose at least one"),
    ({"public_key": ""}, "The public key cannot be used: it is not a public key"),
    ({"public_key": "{"}, "The public key must be a public key as PEM or JWK"),
    ({"public_key": '{"a":' * 5_000}, "The public key must be a public key as PEM or JWK"),
    ({"public_key": '{"kty":"EC","crv":"P-256","x":"","y":"","d":""}'}, "a private one"),
]


async def test_nothing_is_registered_when_a_field_is_wrong(anna, inside, bank):
    for changed, said in WRONG:
        assert await register(anna, inside, **changed) is None
        assert inside.page.status_code == 422
        (mistake,) = inside.mistakes.values()
        assert said in mistake
        assert 'value="Keeps our books"' in inside.page.text or "description" in changed
    assert await register(anna, inside, name="a\0b") is None
    assert inside.page.status_code == 400
    assert await count(bank) == 0


async def test_there_is_an_end_to_programs(anna, inside, bank, monkeypatch):
    monkeypatch.setattr(page, "CLIENTS_MAX", 1)
    await register(anna, inside)
    assert await register(anna, inside) is None
    assert "applications are in use" in inside.text
    assert await count(bank) == 1


async def test_only_administrators_come_in(anna, inside, bank):
    path = await register(anna, inside)
    await inside.follow()
    csrf = {"csrf": inside.csrf}
    for role in ("MANAGER", "APPROVER", "INITIATOR", "VIEWER"):
        await user_members.add_member(bank.pool, anna.customer_id, anna.user_id, role=role, now=anna.pages_clock.now)
        await inside.go("/account")
        assert applications(anna) not in inside.page.text
        for where in (applications(anna), f"{applications(anna)}/new", path):
            assert (await inside.go(where)).status_code == 403
        for where in (applications(anna), f"{path}/keys", f"{path}/keys/x/revoke", f"{path}/revoke"):
            assert (await inside.post(where, csrf)).status_code == 403
    assert await count(bank) == 1


async def test_another_companys_programs_are_not_there(anna, inside, bank):
    """Whether of a company she is no member of, or under her own company's name."""
    other = await company(bank.pool, "Southwind")
    theirs = await program(bank.pool, "theirs", owner_id=other)
    await program(bank.pool, "of-the-operator")
    await inside.go("/account")
    csrf = {"csrf": inside.csrf}
    at_home = applications(anna)
    abroad = f"/companies/{other}/applications"
    for where in (
        abroad,
        f"{abroad}/new",
        f"{abroad}/theirs",
        f"{at_home}/theirs",
        f"{at_home}/of-the-operator",
        f"{at_home}/nobodys",
        f"{at_home}/a%00b",
        "/companies/x/applications",
    ):
        assert (await inside.go(where)).status_code == 404, where
    for where in (
        abroad,
        f"{at_home}/theirs/keys",
        f"{at_home}/theirs/revoke",
        f"{at_home}/theirs/keys/{KEYS['ES256'].thumbprint}/revoke",
    ):
        answer = await inside.post(where, {**csrf, "public_key": KEYS["PS256"].pem})
        assert answer.status_code == 404, where
    assert await clients.find_client(bank.pool, "theirs") == theirs
    assert len(await clients.list_client_keys(bank.pool, "theirs", anna.pages_clock.now)) == 1


async def test_somebody_who_left_the_company_manages_nothing(anna, inside, bank):
    await user_members.deactivate_member(bank.pool, anna.customer_id, anna.user_id, now=anna.pages_clock.now)
    assert (await inside.go(applications(anna))).status_code == 404


async def test_a_proof_is_asked_for_again_before_anything_is_changed(anna, inside, bank):
    path = await register(anna, inside)
    await inside.go(path)
    csrf = {"csrf": inside.csrf}
    anna.pages_clock.forward(minutes=6)
    assert (await inside.go(path)).status_code == 200
    page = await inside.go(f"{applications(anna)}/new")
    assert page.headers["location"].startswith("/confirm?next=%2Fcompanies")
    for where in (applications(anna), f"{path}/keys", f"{path}/revoke"):
        answer = await inside.post(where, {**csrf, "public_key": KEYS["PS256"].pem})
        assert answer.headers["location"].startswith("/confirm"), where
    made = await clients.find_client(bank.pool, client_of(path))
    assert made is not None
    assert made.revoked_at is None
    assert len(await clients.list_client_keys(bank.pool, made.client_id, anna.pages_clock.now)) == 1
