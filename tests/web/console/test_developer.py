"""The developer pages of a company, within the permissions of each role."""

import re
from uuid import UUID

import pytest
from tests.events.webhooks.test_attempts import FAILED, attempt_of
from tests.support.browser import first_match, forms_of

from billfold.events.webhooks import attempts
from billfold.platform import ids
from billfold.platform.clock import wall_now

URL = "https://93.184.215.14/hooks"
KIND = "event.transfers.wire.in.success"


@pytest.fixture
async def browser(console, customer_desk):
    return await console(customer_desk)


@pytest.fixture
async def path(browser):
    """The page of a subscription that the browser has created."""
    return await subscribe(browser)


async def subscribe(browser):
    await browser.go(f"{browser.home}/developer/subscriptions/new")
    await browser.send(f"{browser.home}/developer/subscriptions", url=URL, **{KIND: "yes"})
    await browser.follow()
    return browser.page.url.path


async def test_a_subscription_is_created_changed_paused_and_deleted_in_the_console(browser, customer_desk):
    new = f"{browser.home}/developer/subscriptions"
    await browser.go(f"{new}/new")
    secret = forms_of(browser.page.text)[new]["shared_secret"]
    await browser.send(new, url=URL, preset="cards")
    assert 'name="event.card.status.open" value="yes" checked' in browser.page.text
    assert f'value="{URL}"' in browser.page.text
    assert forms_of(browser.page.text)[new]["shared_secret"] == secret
    await browser.send(new, url="https://10.0.0.1/", shared_secret="x" * 23, **{KIND: "yes"})
    assert {"url", "shared_secret"} & browser.mistakes.keys()
    path = await subscribe(browser)
    assert secret not in browser.page.text
    await browser.send(f"{path}/content", description="Books", **{"event.reports.failed": "yes"})
    await browser.follow()
    await browser.send(f"{path}/secret", shared_secret="short")
    assert list(browser.mistakes) == ["shared_secret"]
    await browser.send(f"{path}/status", status="disabled")
    await browser.follow()
    assert f"{path}/send-example" not in forms_of(browser.page.text)
    (listed,) = (await customer_desk.get("/api/v1/subscriptions/"))["items"]
    assert (listed["description"], listed["status"], listed["events"]) == (
        "Books",
        "disabled",
        ["transfers.wire.in.success", "reports.failed"],
    )
    await browser.send(f"{path}/delete")
    await browser.follow()
    assert "The subscription is removed." in browser.text
    assert (await browser.go(path)).status_code == 404


async def test_a_failed_delivery_is_found_and_resent_in_the_console(browser, path, bank, customer_desk, customer_world):
    own = await customer_desk.pocket(name="Reserve")
    await customer_world.wire(own, 250_000_00)
    await browser.go(f"{browser.home}/developer/events")
    event = first_match(rf'href="({browser.home}/developer/events/[^"]+)">transfers.wire.in.success', browser.page.text)
    event_id, subscription_id = event.rpartition("/")[2], path.rpartition("/")[2]
    async with bank.pool.acquire() as conn:
        failed = attempt_of(UUID(subscription_id), UUID(event_id), FAILED, at=wall_now())
        await attempts.record_attempts(conn, [failed], now=wall_now())
    await browser.go(path)
    assert re.search(r"Failed 500", browser.text)
    await browser.go(event)
    await browser.send(f"{path}/resend")
    await browser.follow()
    assert "It is queued for delivery." in browser.text
    await browser.send(f"{path}/resend", event_id=str(ids.new()))
    assert browser.page.status_code == 422
    for since, says in (("2020-01-01T00:00", "It is queued"), ("2999-01-01T00:00", "nothing to deliver")):
        await browser.go(path)
        await browser.send(f"{path}/recover", since=since)
        if browser.page.status_code == 303:
            await browser.follow()
            assert says in browser.text or "nothing to deliver" in browser.text
    for step, wrong in (("recover", {"since": "soon"}), ("send-example", {"event_type": "nothing"})):
        await browser.go(path)
        await browser.send(f"{path}/{step}", **wrong)
        assert (browser.page.status_code, list(browser.mistakes)) == (422, list(wrong))


async def test_a_viewer_cannot_change_subscriptions_in_the_console(
    browser, path, console, customer_desk, other_customer
):
    viewer, stranger = await console(customer_desk, role="VIEWER"), await console(other_customer)
    await viewer.go(path)
    assert viewer.page.status_code == 200
    assert not [each for each in forms_of(viewer.page.text) if "/developer/" in each]
    await browser.go(path)
    forms = {action: form for action, form in forms_of(browser.page.text).items() if "/developer/" in action}
    assert len(forms) == 8
    foreign = path.replace(browser.home, stranger.home)
    for action, form in forms.items():
        own = {**form, "csrf": viewer.csrf, "event_id": str(ids.new()), "since": "2025-06-01T09:00"}
        assert (await viewer.post(action, own)).status_code == 403, action
        assert (await browser.post(action, {**form, "csrf": None} | own)).status_code == 403, action
        await stranger.go(stranger.home)
        away = {**own, "csrf": stranger.csrf}
        assert (await stranger.post(action, away)).status_code == 404, action
        assert (await stranger.post(action.replace(path, foreign), away)).status_code == 404, action
    for page in (path, foreign, f"{stranger.home}/developer/events/{ids.new()}", f"{stranger.home}/developer/x"):
        assert (await stranger.go(page)).status_code == 404
    assert (await stranger.go(f"{stranger.home}/developer")).status_code == 200
    new = f"{browser.home}/developer/subscriptions"
    await browser.go(f"{new}/new")
    form = {**forms_of(browser.page.text)[new], "url": URL, KIND: "yes"}
    answers = [await browser.post(new, form) for _ in range(2)]
    assert answers[0].headers["location"] == answers[1].headers["location"]


async def test_changing_subscriptions_requires_a_recent_sign_in(bank, browser, path, partner_people):
    manager = await partner_people("acme")
    theirs = await subscribe(manager)
    forms = {each: forms_of((await each.go(at)).text) for each, at in ((browser, path), (manager, theirs))}
    await bank.pool.execute("UPDATE session SET authenticated_at = authenticated_at - interval '10 minutes'")
    for each, listed in forms.items():
        new = f"{each.home}/developer/subscriptions"
        sent = {new: {"csrf": each.csrf, "url": URL, KIND: "yes"}} | listed
        for action, form in sent.items():
            if "/developer/" in action:
                answer = await each.post(action, form)
                assert answer.headers["location"].startswith("/confirm?"), action
        assert (await each.go(f"{new}/new")).headers["location"].startswith("/confirm?"), "it shows a secret"


async def test_api_requests_are_found_by_error_in_the_console(browser, customer_desk):
    await customer_desk.refused("GET", f"/api/v2/pockets/{ids.new()}/", status=404, code="not-found")
    await customer_desk.app.request_log.write()
    await browser.go(f"{browser.home}/developer/requests")
    assert "Errors of the last 24 hours" in browser.text
    await browser.go(first_match(r'href="([^"]+)">Example', browser.page.text))
    assert "Client books" in browser.text
    assert (await browser.go(f"{browser.home}/developer/requests?status=5xx")).status_code == 200
    assert "No request matches." in browser.text
    await browser.go(f"{browser.home}/developer/requests?from=yesterday")
    assert list(browser.mistakes) == ["from"]
