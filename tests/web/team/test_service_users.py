"""Service users in a browser: created by an administrator, given keys, deactivated."""

import re

import pytest
from tests.support.oauth import KEYS, new_key

NEW = {"name": "Ledger", "scope.pockets.read": "yes", "scope.transfers.read": "yes"}


@pytest.fixture
async def service_users_path(anna, browser):
    """Anna signed in, and where the programs of her team are."""
    await anna.sign_in(browser, "/team")
    return f"/team/{anna.customer_id}/service-users"


def chosen(**fields):
    """Return the form with only these boxes ticked, as a browser would send it."""
    return {"description": "", "public_key": KEYS["ES256"].pem} | NEW | fields


async def make(browser, base, **fields):
    await browser.go(f"{base}/new")
    form = {"csrf": browser.csrf} | chosen(**fields)
    browser.page = await browser.post(base, form)
    return browser.page


async def test_a_service_user_is_created_with_keys_added_and_revoked_in_the_console(bank, service_users_path, browser):
    assert (await make(browser, service_users_path)).status_code == 303
    page = browser.page.headers["location"].partition("?")[0]
    await browser.follow()
    assert "See Pockets" in browser.text
    assert await bank.pool.fetchval("SELECT client_id FROM oauth_client") in browser.text
    await browser.send(f"{page}/keys", public_key="no key")
    assert (browser.page.status_code, "The public key cannot be used" in browser.mistakes["public_key"]) == (422, True)
    await browser.send(f"{page}/keys", public_key=KEYS["ES256"].pem)
    assert (browser.page.status_code, "is registered already" in browser.text) == (409, True)
    await browser.send(f"{page}/keys", public_key=new_key().pem)
    await browser.follow()
    action = browser.page.text.partition(f'action="{page}/keys/')[2].partition('"')[0]
    await browser.send(f"{page}/keys/{action}")
    await browser.follow()
    assert not any("/keys/" in each for each in browser.questions)
    [only] = re.findall(r'hint key">([^<]+)<', browser.page.text)
    browser.page = await browser.post(f"{page}/keys/{only}/revoke", {"csrf": browser.csrf})
    assert (browser.page.status_code, "This is the only key" in browser.text) == (409, True)


async def test_an_invalid_service_user_form_is_shown_again_with_every_error(bank, service_users_path, browser):
    form = {"name": "", "public_key": "x", "scope.pockets.read": None, "scope.transfers.read": None}
    await browser.go(f"{service_users_path}/new")
    sent = {n: v for n, v in ({"csrf": browser.csrf} | chosen(**form)).items() if v is not None}
    browser.page = await browser.post(service_users_path, sent)
    assert browser.page.status_code == 422
    assert {name: said[:16] for name, said in browser.mistakes.items()} == {
        "name": "The name must be",
        "public_key": "P-256, Ed25519 o",
        "scopes": "Choose at least ",
    }
    assert "The public key cannot be used" in browser.mistakes["public_key"]
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_client") == 0


async def test_a_service_user_is_deactivated_and_activated_on_its_page(bank, anna, service_users_path, browser):
    await make(browser, service_users_path)
    page = browser.page.headers["location"].partition("?")[0]
    action = page.replace("/service-users/", "/members/")
    for change, gone in (("deactivate", True), ("activate", False)):
        await browser.go(page)
        assert (action in browser.questions) is gone
        assert (await browser.send(action, change=change)).status_code == 303
        revoked = await bank.pool.fetchval("SELECT revoked_at IS NOT NULL FROM oauth_client")
        assert revoked is gone


async def test_service_user_pages_require_an_administrator_with_a_recent_sign_in(
    bank, anna, service_users_path, browser, pages_clock
):
    await make(browser, service_users_path)
    page = browser.page.headers["location"].partition("?")[0]
    pages_clock.forward(minutes=6)
    for path in (page, f"{service_users_path}/new"):
        assert (await browser.go(path)).headers["location"].startswith("/confirm?next=")
    pages_clock.forward(minutes=-6)
    await bank.pool.execute("UPDATE membership SET role = 'MANAGER'")
    for path in (page, f"{service_users_path}/new"):
        assert (await browser.go(path)).status_code == 403
    assert (await browser.go(f"{service_users_path}/x")).status_code == 403
