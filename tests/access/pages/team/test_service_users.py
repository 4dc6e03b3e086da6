"""Service users in a browser: made by an administrator, given keys, deactivated."""

import pytest
from tests.support.oauth_clients import KEYS, new_key

NEW = {"name": "Ledger", "scope.pockets.read": "yes", "scope.transfers.read": "yes"}


@pytest.fixture
async def base(anna, browser):
    """Anna signed in, and where the programs of her team are."""
    await anna.sign_in(browser, "/team")
    return f"/team/{anna.customer_id}/programs"


def chosen(**fields):
    """Return the form with only these boxes ticked, as a browser would send it."""
    return {"description": "", "key": KEYS["ES256"].pem} | NEW | fields


async def make(browser, base, **fields):
    await browser.go(f"{base}/new")
    form = {"csrf": browser.csrf} | chosen(**fields)
    browser.page = await browser.post(base, form)
    return browser.page


async def test_a_program_is_made_gets_another_key_and_loses_one(bank, base, browser):
    assert (await make(browser, base)).status_code == 303
    page = browser.page.headers["location"]
    await browser.follow()
    assert "See Pockets" in browser.text
    assert await bank.pool.fetchval("SELECT client_id FROM oauth_client") in browser.text
    await browser.send(f"{page}/keys", key="no key")
    assert (browser.page.status_code, "The key cannot be used" in browser.text) == (422, True)
    await browser.send(f"{page}/keys", key=KEYS["ES256"].pem)
    assert (browser.page.status_code, "is registered already" in browser.text) == (409, True)
    await browser.send(f"{page}/keys", key=new_key().pem)
    await browser.follow()
    action = browser.page.text.partition(f'action="{page}/keys/')[2].partition('"')[0]
    await browser.send(f"{page}/keys/{action}")
    await browser.follow()
    assert browser.page.text.count("Revoke<") == 1
    action = browser.page.text.partition(f'action="{page}/keys/')[2].partition('"')[0]
    await browser.send(f"{page}/keys/{action}")
    assert (browser.page.status_code, "This is the only key" in browser.text) == (409, True)


async def test_a_program_that_cannot_be_is_shown_again_with_each_mistake(bank, base, browser):
    form = {"name": "", "key": "x", "scope.pockets.read": None, "scope.transfers.read": None}
    await browser.go(f"{base}/new")
    sent = {n: v for n, v in ({"csrf": browser.csrf} | chosen(**form)).items() if v is not None}
    browser.page = await browser.post(base, sent)
    assert browser.page.status_code == 422
    for said in ("Must be 1 to 200", "Cannot be used", "Choose at least one of these"):
        assert said in browser.text
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_client") == 0


async def test_a_program_is_deactivated_and_activated_on_its_page(bank, anna, base, browser):
    await make(browser, base)
    page = browser.page.headers["location"]
    action = page.replace("/programs/", "/members/")
    for change, gone in (("deactivate", True), ("activate", False)):
        await browser.go(page)
        assert (await browser.send(action, change=change)).status_code == 303
        revoked = await bank.pool.fetchval("SELECT revoked_at IS NOT NULL FROM oauth_client")
        assert revoked is gone


async def test_programs_are_for_administrators_who_have_just_proved_it(bank, anna, base, browser, pages_clock):
    await make(browser, base)
    page = browser.page.headers["location"]
    pages_clock.forward(minutes=6)
    for path in (page, f"{base}/new"):
        assert (await browser.go(path)).headers["location"].startswith("/confirm?next=")
    pages_clock.forward(minutes=-6)
    await bank.pool.execute("UPDATE membership SET role = 'MANAGER'")
    for path in (page, f"{base}/new"):
        assert (await browser.go(path)).status_code == 403
    assert (await browser.go(f"{base}/x")).status_code == 403
