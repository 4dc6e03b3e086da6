"""OAuth clients of a company: who may register them, what is refused, and which customers they access."""

import json
from typing import Any

import pytest
from tests.support.browser import applications, client_of, register
from tests.support.oauth import KEYS, REDIRECT, company, program

from billfold.identity.members import store
from billfold.oauth import clients
from billfold.oauth.types import AUTHORIZATION_CODE, REFRESH_TOKEN
from billfold.web.team import oauth_clients


@pytest.fixture
async def signed_in_browser(anna, browser):
    """The browser of the administrator, who has just proved who she is."""
    await anna.sign_in(browser)
    return browser


async def count(bank):
    return await bank.pool.fetchval("SELECT count(*) FROM oauth_client")


async def test_an_administrator_registers_a_client_and_gets_an_email(anna, signed_in_browser, bank, emails):
    await signed_in_browser.go("/account")
    assert f'href="{applications(anna)}"' in signed_in_browser.page.text
    path = await register(anna, signed_in_browser)
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
    await signed_in_browser.follow()
    for told in (made.client_id, key.key_id, "https://auth.localhost:8443", REDIRECT):
        assert told in signed_in_browser.text
    [(subject, text)] = await emails()
    assert subject == "An application of Northwind was changed"
    assert "the application Books was registered" in text


async def test_a_registered_oauth_client_has_the_chosen_options(anna, signed_in_browser, bank):
    path = await register(
        anna,
        signed_in_browser,
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


async def test_an_invalid_oauth_client_form_registers_nothing(anna, signed_in_browser, bank):
    for changed, said in WRONG:
        assert await register(anna, signed_in_browser, **changed) is None
        assert signed_in_browser.page.status_code == 422
        (mistake,) = signed_in_browser.mistakes.values()
        assert said in mistake
        assert 'value="Keeps our books"' in signed_in_browser.page.text or "description" in changed
    assert await register(anna, signed_in_browser, name="a\0b") is None
    assert signed_in_browser.page.status_code == 400
    assert await count(bank) == 0


async def test_registering_oauth_clients_over_the_limit_is_refused(anna, signed_in_browser, bank, monkeypatch):
    monkeypatch.setattr(oauth_clients, "CLIENTS_MAX", 1)
    await register(anna, signed_in_browser)
    assert await register(anna, signed_in_browser) is None
    assert "applications are in use" in signed_in_browser.text
    assert await count(bank) == 1


async def test_oauth_client_pages_are_forbidden_to_non_administrators(anna, signed_in_browser, bank):
    path = await register(anna, signed_in_browser)
    await signed_in_browser.follow()
    csrf = {"csrf": signed_in_browser.csrf}
    for role in ("MANAGER", "APPROVER", "INITIATOR", "VIEWER"):
        await store.add_member(bank.pool, anna.customer_id, anna.user_id, role=role, now=anna.pages_clock.now)
        await signed_in_browser.go("/account")
        assert applications(anna) not in signed_in_browser.page.text
        for where in (applications(anna), f"{applications(anna)}/new", path):
            assert (await signed_in_browser.go(where)).status_code == 403
        for where in (applications(anna), f"{path}/keys", f"{path}/keys/x/revoke", f"{path}/revoke"):
            assert (await signed_in_browser.post(where, csrf)).status_code == 403
    assert await count(bank) == 1


async def test_oauth_clients_of_a_different_customer_return_404(anna, signed_in_browser, bank):
    """True for another company's name, or her own company's."""
    other = await company(bank.pool, "Southwind")
    theirs = await program(bank.pool, "theirs", owner_id=other)
    await program(bank.pool, "of-the-operator")
    await signed_in_browser.go("/account")
    csrf = {"csrf": signed_in_browser.csrf}
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
        assert (await signed_in_browser.go(where)).status_code == 404, where
    for where in (
        abroad,
        f"{at_home}/theirs/keys",
        f"{at_home}/theirs/revoke",
        f"{at_home}/theirs/keys/{KEYS['ES256'].thumbprint}/revoke",
    ):
        answer = await signed_in_browser.post(where, {**csrf, "public_key": KEYS["PS256"].pem})
        assert answer.status_code == 404, where
    assert await clients.find_client(bank.pool, "theirs") == theirs
    assert len(await clients.list_client_keys(bank.pool, "theirs", anna.pages_clock.now)) == 1


async def test_a_deactivated_member_cannot_manage_oauth_clients(anna, signed_in_browser, bank):
    await store.deactivate_member(bank.pool, anna.customer_id, anna.user_id, now=anna.pages_clock.now)
    assert (await signed_in_browser.go(applications(anna))).status_code == 404


async def test_changing_an_oauth_client_requires_a_recent_sign_in(anna, signed_in_browser, bank):
    path = await register(anna, signed_in_browser)
    await signed_in_browser.go(path)
    csrf = {"csrf": signed_in_browser.csrf}
    anna.pages_clock.forward(minutes=6)
    assert (await signed_in_browser.go(path)).status_code == 200
    page = await signed_in_browser.go(f"{applications(anna)}/new")
    assert page.headers["location"].startswith("/confirm?next=%2Fcompanies")
    for where in (applications(anna), f"{path}/keys", f"{path}/revoke"):
        answer = await signed_in_browser.post(where, {**csrf, "public_key": KEYS["PS256"].pem})
        assert answer.headers["location"].startswith("/confirm"), where
    made = await clients.find_client(bank.pool, client_of(path))
    assert made is not None
    assert made.revoked_at is None
    assert len(await clients.list_client_keys(bank.pool, made.client_id, anna.pages_clock.now)) == 1
