"""One program: its keys in turn, its end, and the one company that it works for."""

from datetime import timedelta

import pytest
from tests.support.browser import applications, client_of, register
from tests.support.oauth import AUTHORIZE, ISSUER, KEYS, PAR, Relying, company, refused

from billfold.audit import store as audit_store
from billfold.audit.rules import EntryFilter
from billfold.identity.members import store as user_members
from billfold.oauth import clients, grants
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused


@pytest.fixture
async def registered(anna, browser, bank, auth_app, pages_clock):
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


async def test_it_works_with_what_was_registered(registered):
    assert await registered.is_good((await registered.tokens())["access_token"])


async def test_the_log_of_the_company_tells_of_every_change(anna, browser, bank, registered):
    path, client_id = path_of(anna, registered), registered.client.client_id
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


async def test_keys_follow_each_other_without_a_gap(anna, browser, bank, registered, pages_clock, emails):
    old, new = KEYS["ES256"], KEYS["PS256"]
    await emails()
    path = path_of(anna, registered)
    assert f"{old.thumbprint}/revoke" not in browser.page.text
    await browser.send(f"{path}/keys", public_key=new.pem)
    await browser.follow()
    assert set(await keys_of(bank, registered, pages_clock)) == {new.thumbprint, old.thumbprint}
    assert (await registered.push(proving=None)).status_code == 201
    registered.key = new
    assert (await registered.push()).status_code == 201
    assert f"{path}/keys/{old.thumbprint}/revoke" in browser.questions
    await browser.send(f"{path}/keys/{old.thumbprint}/revoke")
    await browser.follow()
    assert await keys_of(bank, registered, pages_clock) == [new.thumbprint]
    assert (await registered.push()).status_code == 201
    registered.key = old
    refused(await registered.push(), "invalid_client", 401)
    told = [text for _, text in await emails()]
    assert ("was added to Books" in told[0], "was revoked" in told[1]) == (True, True)


async def test_the_only_key_stays(anna, browser, bank, registered, pages_clock):
    [only] = await keys_of(bank, registered, pages_clock)
    form = {"csrf": browser.csrf}
    path = path_of(anna, registered)
    answer = await browser.post(f"{path}/keys/{only}/revoke", form)
    assert (answer.status_code, "This is the only key" in answer.text) == (409, True)
    assert (await browser.post(f"{path}/keys/unknown/revoke", form)).status_code == 404
    assert await keys_of(bank, registered, pages_clock) == [only]


async def test_a_key_is_refused_when_it_is_none_or_there_already(
    anna, browser, bank, registered, pages_clock, monkeypatch
):
    where = f"{path_of(anna, registered)}/keys"
    form = {"csrf": browser.csrf}
    answer = await browser.post(where, {**form, "public_key": "no key"})
    assert (answer.status_code, "The public key cannot be used" in answer.text) == (422, True)
    answer = await browser.post(where, {**form, "public_key": KEYS["ES256"].pem})
    assert (answer.status_code, "is registered already" in answer.text) == (409, True)
    monkeypatch.setattr(clients, "KEYS_MAX", 1)
    answer = await browser.post(where, {**form, "public_key": KEYS["PS256"].pem})
    assert (answer.status_code, "one more than 1 keys" in answer.text) == (422, True)
    assert len(await keys_of(bank, registered, pages_clock)) == 1


async def test_everything_ends_at_once_when_it_is_taken_out_of_use(anna, browser, bank, registered, pages_clock):
    tokens, code = await registered.tokens(), await registered.code()
    path = path_of(anna, registered)
    assert await registered.is_good(tokens["access_token"])
    assert browser.questions == [f"{path}/revoke"]
    page = await browser.send(f"{path}/revoke")
    assert page.headers["location"] == f"{applications(anna)}?done=application-revoked"
    assert not await registered.is_good(tokens["access_token"])
    refused(await registered.refresh(tokens["refresh_token"]), "invalid_client", 401)
    refused(await registered.exchange(code), "invalid_client", 401)
    assert (await registered.browse(**registered.asked())).status_code == 400
    assert await grants.list_grants(bank.pool, anna.user_id) == []
    await browser.follow()
    assert "Revoked" in browser.text
    await browser.go(path)
    assert "Revoked since" in browser.text
    assert "<form" not in browser.page.text.partition("<main>")[2]
    form = {"csrf": browser.csrf, "public_key": KEYS["PS256"].pem}
    for audited in ("keys", "revoke"):
        assert (await browser.post(f"{path}/{audited}", form)).status_code == 404


async def test_it_is_granted_nothing_for_another_company(anna, browser, bank, registered, pages_clock):
    other = await company(bank.pool, "Southwind")
    await user_members.add_member(bank.pool, other, anna.user_id, role="ADMIN", now=pages_clock.now)
    asked = registered.authenticated(registered.asked())
    pushed = await registered.http.post(PAR, data=asked)
    query = {"client_id": registered.client.client_id, **pushed.json(), "expires_in": None}
    answer = await registered.browse(**query)
    assert str(answer.url).startswith(ISSUER + AUTHORIZE)
    await browser.go(answer.headers["location"].removeprefix(ISSUER))
    assert "It asks to do this for Northwind" in browser.text
    page = await browser.send("/consent", decision="grant", customer=str(other))
    assert page.status_code == 422
    registered.person.customer_id = other
    with pytest.raises(Refused, match="another company"):
        await registered.approved()
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_grant") == 0


async def test_a_client_of_another_customer_cannot_be_granted(anna, browser, bank, registered, pages_clock):
    other = await company(bank.pool, "Southwind")
    await user_members.add_member(bank.pool, other, anna.user_id, role="ADMIN", now=pages_clock.now)
    await user_members.deactivate_member(bank.pool, anna.customer_id, anna.user_id, now=pages_clock.now)
    request = await registered.waiting()
    await browser.go(f"/consent?request={request}")
    assert "a member of no company that this application works for" in browser.text
