"""One OAuth client: rotation of its keys, revocation, and the one company it is for."""

from datetime import timedelta

import pytest
from tests.support.browser import applications, client_of, register
from tests.support.oauth import AUTHORIZE, ISSUER, KEYS, PAR, Relying, company, refused

from billfold.audit import store as audit_store
from billfold.audit.rules import EntryFilter
from billfold.identity.members import store as member_store
from billfold.oauth import clients, grants
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused


@pytest.fixture
async def registered_client(anna, browser, bank, auth_app, pages_clock):
    """A program that Anna has registered on the pages, and that asks her."""
    pages_clock.now = wall_now() - timedelta(minutes=1)
    await anna.sign_in(browser)
    path = await register(anna, browser, profile="documented")
    await browser.follow()
    client = await clients.find_client(bank.pool, client_of(path))
    made = Relying(bank, auth_app, client, person=anna)
    yield made
    await made.close()


def path_of(anna, registered):
    return f"{applications(anna)}/{registered.client.client_id}"


async def keys_of(bank, registered, pages_clock):
    """Return the keys in use; Anna has registered each of them."""
    keys = await clients.list_client_keys(bank.pool, registered.client.client_id, pages_clock.now)
    anna = await bank.pool.fetchval("SELECT member_id FROM membership WHERE user_id = $1", registered.person.user_id)
    assert {each.registered_by for each in keys} == {anna}
    return [each.key_id for each in keys]


async def test_a_registered_oauth_client_can_obtain_tokens(registered_client):
    assert await registered_client.is_good((await registered_client.tokens())["access_token"])


async def test_every_oauth_client_change_is_in_the_audit_log_of_the_customer(anna, browser, bank, registered_client):
    path, client_id = path_of(anna, registered_client), registered_client.client.client_id
    added, only = KEYS["PS256"], KEYS["ES256"]
    await browser.send(f"{path}/keys", public_key=added.pem)
    await browser.follow()
    await browser.send(f"{path}/keys/{added.thumbprint}/revoke")
    await browser.follow()
    await browser.post(f"{path}/keys/{only.thumbprint}/revoke", {"csrf": browser.csrf})
    await browser.send(f"{path}/revoke")
    wanted = EntryFilter(customer_id=anna.customer_id)
    rows = await audit_store.list_entries(bank.pool, wanted, descending=False, limit=20)
    told = [(row.action, row.outcome) for row in rows if row.resource_id == client_id]
    assert told == [
        ("program.created", "SUCCESS"),
        ("program.key_added", "SUCCESS"),
        ("program.key_retired", "SUCCESS"),
        ("program.key_retired", "FAILURE"),
        ("program.revoked", "SUCCESS"),
    ]


async def test_both_oauth_client_keys_are_accepted_during_rotation(
    anna, browser, bank, registered_client, pages_clock, emails
):
    old, new = KEYS["ES256"], KEYS["PS256"]
    await emails()
    path = path_of(anna, registered_client)
    assert f"{old.thumbprint}/revoke" not in browser.page.text
    await browser.send(f"{path}/keys", public_key=new.pem)
    await browser.follow()
    assert set(await keys_of(bank, registered_client, pages_clock)) == {new.thumbprint, old.thumbprint}
    assert (await registered_client.push(proving=None)).status_code == 201
    registered_client.key = new
    assert (await registered_client.push()).status_code == 201
    assert f"{path}/keys/{old.thumbprint}/revoke" in browser.questions
    await browser.send(f"{path}/keys/{old.thumbprint}/revoke")
    await browser.follow()
    assert await keys_of(bank, registered_client, pages_clock) == [new.thumbprint]
    assert (await registered_client.push()).status_code == 201
    registered_client.key = old
    refused(await registered_client.push(), "invalid_client", 401)
    told = [text for _, text in await emails()]
    assert ("was added to Books" in told[0], "was revoked" in told[1]) == (True, True)


async def test_revoking_the_last_key_of_an_oauth_client_is_refused(anna, browser, bank, registered_client, pages_clock):
    [only] = await keys_of(bank, registered_client, pages_clock)
    form = {"csrf": browser.csrf}
    path = path_of(anna, registered_client)
    answer = await browser.post(f"{path}/keys/{only}/revoke", form)
    assert (answer.status_code, "This is the only key" in answer.text) == (409, True)
    assert (await browser.post(f"{path}/keys/unknown/revoke", form)).status_code == 404
    assert await keys_of(bank, registered_client, pages_clock) == [only]


async def test_adding_an_invalid_or_duplicate_or_surplus_client_key_is_refused(
    anna, browser, bank, registered_client, pages_clock, monkeypatch
):
    where = f"{path_of(anna, registered_client)}/keys"
    form = {"csrf": browser.csrf}
    answer = await browser.post(where, {**form, "public_key": "no key"})
    assert (answer.status_code, "The public key cannot be used" in answer.text) == (422, True)
    answer = await browser.post(where, {**form, "public_key": KEYS["ES256"].pem})
    assert (answer.status_code, "is registered already" in answer.text) == (409, True)
    monkeypatch.setattr(clients, "KEYS_MAX", 1)
    answer = await browser.post(where, {**form, "public_key": KEYS["PS256"].pem})
    assert (answer.status_code, "one more than 1 keys" in answer.text) == (422, True)
    assert len(await keys_of(bank, registered_client, pages_clock)) == 1


async def test_revoking_an_oauth_client_ends_tokens_codes_and_grants_immediately(
    anna, browser, bank, registered_client, pages_clock
):
    tokens, code = await registered_client.tokens(), await registered_client.code()
    path = path_of(anna, registered_client)
    assert await registered_client.is_good(tokens["access_token"])
    assert browser.questions == [f"{path}/revoke"]
    page = await browser.send(f"{path}/revoke")
    assert page.headers["location"] == f"{applications(anna)}?done=application-revoked"
    assert not await registered_client.is_good(tokens["access_token"])
    refused(await registered_client.refresh(tokens["refresh_token"]), "invalid_client", 401)
    refused(await registered_client.exchange(code), "invalid_client", 401)
    assert (await registered_client.browse(**registered_client.asked())).status_code == 400
    assert await grants.list_grants(bank.pool, anna.user_id) == []
    await browser.follow()
    assert "Revoked" in browser.text
    await browser.go(path)
    assert "Revoked since" in browser.text
    assert "<form" not in browser.page.text.partition("<main>")[2]
    form = {"csrf": browser.csrf, "public_key": KEYS["PS256"].pem}
    for audited in ("keys", "revoke"):
        assert (await browser.post(f"{path}/{audited}", form)).status_code == 404


async def test_granting_an_owned_oauth_client_access_to_a_different_customer_is_refused(
    anna, browser, bank, registered_client, pages_clock
):
    other = await company(bank.pool, "Southwind")
    await member_store.add_member(bank.pool, other, anna.user_id, role="ADMIN", now=pages_clock.now)
    asked = registered_client.authenticated(registered_client.asked())
    pushed = await registered_client.http.post(PAR, data=asked)
    query = {"client_id": registered_client.client.client_id, **pushed.json(), "expires_in": None}
    answer = await registered_client.browse(**query)
    assert str(answer.url).startswith(ISSUER + AUTHORIZE)
    await browser.go(answer.headers["location"].removeprefix(ISSUER))
    assert "It asks to do this for Northwind" in browser.text
    page = await browser.send("/consent", decision="grant", customer=str(other))
    assert page.status_code == 422
    registered_client.person.customer_id = other
    with pytest.raises(Refused, match="another company"):
        await registered_client.approved()
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_grant") == 0


async def test_the_consent_page_offers_no_customer_for_a_foreign_oauth_client(
    anna, browser, bank, registered_client, pages_clock
):
    other = await company(bank.pool, "Southwind")
    await member_store.add_member(bank.pool, other, anna.user_id, role="ADMIN", now=pages_clock.now)
    await member_store.deactivate_member(bank.pool, anna.customer_id, anna.user_id, now=pages_clock.now)
    request = await registered_client.waiting()
    await browser.go(f"/consent?request={request}")
    assert "a member of no company that this application works for" in browser.text
