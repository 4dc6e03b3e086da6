"""The control room: usable without sign-in from the local machine, and not at all from elsewhere."""

import asyncio
import re
from typing import Any

import pytest
from pyotp import TOTP
from tests.support.browser import Browser, first_match, forms_of
from tests.support.sandbox_process import performing_tasks
from tests.support.world import close_app

from billfold.accounts.customers.partner_customers import make_partner
from billfold.apis.partner_api import partner_document, partner_operations
from billfold.documentation.operations import call_of
from billfold.documents.ports import FileInspector
from billfold.http.responses import StreamedResponse
from billfold.identity.members.store import create_user
from billfold.identity.users.totp import new_secret
from billfold.oauth.server.app import create_auth_app
from billfold.platform.clock import wall_now
from billfold.platform.file_kinds import FileKind
from billfold.platform.ids import new as ids_new
from billfold.platform.settings.settings import Settings
from billfold.sandbox.control_room import room
from billfold.sandbox.provisioning import PARTNER
from billfold.sandbox.routes.operations import build_sandbox_app, open_sandbox
from billfold.sandbox.running_sandbox import SandboxFile, SandboxPerson, write_sandbox_file
from billfold.web.app import create_pages_app

HERE = "127.0.0.1"
FORMS = [
    *(f"clock/{move}" for move in ("next", "advance", "set", "freeze", "resume")),
    *("forks", "forks/opening/rewind", "forks/opening/drop", "reset"),
    *("scenarios/payday/play", "simulations/sandbox_customer", "try/partner/log_in"),
]


@pytest.fixture
async def app(bank, customer_app):
    await make_partner(bank, PARTNER, "Sandbox Partner", username=PARTNER)
    api = build_sandbox_app()
    open_sandbox(api, bank)
    auth = create_auth_app(bank)
    given = room.given_by(api, customer_app, auth=auth)
    made = create_pages_app(bank, customer_app, api, packages=room.PACKAGES, given=given)
    async with performing_tasks(bank), auth.lifespan():
        yield made
    await close_app(made)
    await close_app(api)


@pytest.fixture
async def browser(app):
    made = Browser(app, address=HERE)
    await made.go("/sandbox")
    yield made
    await made.close()


async def ended(browser):
    """Watch a task from the form that began it to its end."""
    await browser.follow()
    path = browser.page.url.path
    while "data-rereads" in browser.page.text:
        await asyncio.sleep(0.05)
        await browser.go(path)
    return browser.text


def write_credentials(bank):
    """Write what a sandbox publishes, of which only the people are real; return them."""
    names = ("ada", "bo", "pia", "olga", "otto")
    people = [SandboxPerson(f"{name}@northwind.example", f"{name}'s own", new_secret()) for name in names]
    ada, bo, pia, *operators = people
    texts = dict.fromkeys(SandboxFile.__struct_fields__, "") | {"story": "none", "card_network": None}
    ids = {name: ids_new() for name in texts if name.endswith("_id")}
    given: Any = texts | ids | {"person": ada, "colleague": bo, "clients": (), "pocket_ids": ()}
    given |= {"partner_person": pia, "operators": operators, "settings": {}, "changed_settings": {}}
    write_sandbox_file(bank.settings.state_dir, SandboxFile(**given))
    return people


async def test_only_documented_operations_can_be_tried_in_the_control_room(bank, browser):
    path = "/sandbox/try/partner/log_in"
    assert (await browser.go(path)).status_code == 503, "no sandbox has started this bank"
    write_credentials(bank)
    for unknown in ("partner/nothing", "cards/authorize", "partner/show_daily_root"):
        assert (await browser.go(f"/sandbox/try/{unknown}")).status_code == 404
    await browser.go(path)
    await browser.send(path, body="{")
    assert (browser.page.status_code, list(browser.mistakes)) == (422, ["body"])
    page = await browser.send(path, body='{"username": "nobody", "password": "<b>wrong"}')
    assert (page.status_code, "<b>" in page.text, "401 Unauthorized" in browser.text) == (200, False, True)
    assert 'curl "$PARTNER_URL$path"' in browser.text
    path = "/sandbox/try/partner/get_pocket"
    await browser.go(path)
    for other in (".", ".."):
        await browser.send(path, pocket_id=other)
        assert (browser.page.status_code, list(browser.mistakes)) == (422, ["pocket_id"])


async def test_the_page_that_a_tried_upload_sends_is_accepted(bank):
    await bank.ports[FileInspector].inspect(room.EXAMPLE_FILE, FileKind.PDF)


async def test_an_endless_tried_response_is_read_up_to_the_display_limit(tmp_path):
    async def lines():
        while True:
            yield b"a,b\n" * 1000
            await asyncio.sleep(0)

    async def app(scope, receive, send):
        await StreamedResponse("text/csv", lines()).stream(receive, send)

    operation = room.ServedApi(
        app, "https://sandbox.localhost", lambda: partner_document(Settings(), partner_operations())
    )
    calls = room.SignedCalls({"partner": operation}, tmp_path)
    response = await calls.send(call_of(calls.find("partner", "log_in")), key="k", client=HERE)
    assert room.READ_BYTES_MAX <= len(response.content) < room.READ_BYTES_MAX + 4000


async def test_sandbox_users_are_listed_with_their_current_sign_in_codes(bank, browser):
    assert "Code" not in browser.text, "no sandbox has started this bank"
    people = write_credentials(bank)
    before = [TOTP(each.totp_secret).now() for each in people]
    await browser.go("/sandbox")
    after = [TOTP(each.totp_secret).now() for each in people]
    shown = first_match(r'id="people">(.+?)</section>', browser.page.text.replace("\n", " "))
    assert all(each.email in shown for each in people)
    assert re.findall(r">(\d{6})<", shown) in (before, after)


async def test_a_visitor_of_the_same_machine_signs_in_as_a_person_of_the_sandbox(bank, browser, app):
    ada = write_credentials(bank)[0]
    now = wall_now()
    await create_user(bank.pool, bank.vault, email=ada.email, first_name="Ada", last_name="Marsh", now=now)
    await browser.go("/sandbox")
    assert "Sign in as Ada" in browser.text
    form = {"csrf": browser.csrf, "email": ada.email}
    for wrong, status in ((form | {"email": "eve@northwind.example"}, 404), (form | {"csrf": "x"}, 403)):
        assert (await browser.post("/sandbox/sign-in", wrong)).status_code == status
    stranger = Browser(app, address="203.0.113.7")
    assert (await stranger.post("/sandbox/sign-in", form)).status_code == 403
    await stranger.close()
    browser.page = await browser.post("/sandbox/sign-in", form)
    await browser.go("/account")
    assert ada.email in browser.text


async def test_moving_the_clock_in_the_control_room_reports_what_happened(browser):
    before = first_match(r'class="hero">([^<]+)<', browser.page.text)
    await browser.send("/sandbox/clock/advance", business_days="2")
    await browser.follow()
    assert "The clock has moved." in browser.text
    assert first_match(r'class="hero">([^<]+)<', browser.page.text) != before
    await browser.send("/sandbox/clock/set", now="2025-01-01T00:00")
    assert (browser.page.status_code, "forward" in browser.text) == (409, True)
    for move, wrong in (
        ("advance", {"business_days": "٣"}),
        ("advance", {"business_days": "9" * 400}),
        ("set", {"now": "soon"}),
        ("set", {"now": "0001-01-01T00:00+23:59"}),
        ("next", {"kind": "christmas"}),
    ):
        await browser.go("/sandbox")
        await browser.send(f"/sandbox/clock/{move}", **wrong)
        assert (browser.page.status_code, list(browser.mistakes)) == (422, list(wrong)), (move, wrong)


async def test_a_fork_is_created_once_restored_and_removed(browser):
    form = {**forms_of(browser.page.text)["/sandbox/forks"], "name": "before"}
    answers = await asyncio.gather(*(browser.post("/sandbox/forks", form) for _ in range(2)))
    browser.page = next(each for each in answers if each.status_code == 303)
    assert {each.status_code for each in answers} <= {303, 409}
    assert "The copy is made." in await ended(browser)
    await browser.go("/sandbox")
    await browser.send("/sandbox/forks", name="before")
    assert (browser.page.status_code, "There is a fork before already." in browser.text) == (409, True)
    await browser.send("/sandbox/forks", name="../etc")
    assert list(browser.mistakes) == ["name"]
    await browser.send("/sandbox/forks/before/rewind")
    assert "Sessions and tokens from after the copy no longer exist." in await ended(browser)
    await browser.go("/sandbox")
    await browser.send("/sandbox/forks/before/drop")
    await browser.follow()
    assert "The copy is removed." in browser.text
    assert "/sandbox/forks/before/rewind" not in forms_of(browser.page.text)
    await browser.go("/sandbox/scenarios")
    await browser.send("/sandbox/scenarios/payday/play")
    assert "The story is played." in await ended(browser)


async def test_every_simulation_form_succeeds_or_reports_its_errors(browser):
    await browser.go("/sandbox/simulations")
    assert "ends in 01 The receiving bank refuses the wire (AC04)." in browser.text
    paths = re.findall(r'href="(/sandbox/simulations/[^"]+)"', browser.page.text)
    assert len(paths) > 25
    done = set()
    for path in sorted(paths, key=lambda each: each != "/sandbox/simulations/sandbox_customer"):
        await browser.go(path)
        form = forms_of(browser.page.text)[path]
        await browser.send(path)
        assert browser.page.status_code in {200, 404, 409, 422}, (path, browser.text)
        done |= {path} if browser.page.status_code == 200 else set()
        absurd = {name: "{" * 300 if name not in {"csrf", "form_key"} else value for name, value in form.items()}
        wrong = await browser.post(path, absurd | {"form_key": f"absurd {path}"})
        assert wrong.status_code in ({404, 422} if len(form) > 2 else {200, 409}), (path, wrong.text)
    assert {"/sandbox/simulations/sandbox_customer", "/sandbox/simulations/sandbox_webhook"} <= done
    assert (await browser.go("/sandbox/simulations/sandbox_reset")).status_code == 404


async def test_a_simulation_form_submitted_twice_runs_once(browser):
    path = "/sandbox/simulations/sandbox_customer"
    await browser.go(path)
    form = {**forms_of(browser.page.text)[path], "name": "Northwind"}
    for each in [await browser.post(path, form) for _ in range(2)]:
        assert each.status_code == 200
    await browser.go("/sandbox/simulations/sandbox_customer_state")
    assert browser.text.count("Northwind") == 1


async def test_control_room_forms_from_a_foreign_origin_or_session_are_refused(app, browser):
    other, stranger = Browser(app, address=HERE), Browser(app, address="192.0.2.7")
    await other.go("/sandbox")
    stranger.http.cookies.update(browser.http.cookies)
    for path in FORMS:
        action, own = f"/sandbox/{path}", {"csrf": browser.csrf, "form_key": "one", "name": "taken"}
        tried = [
            await browser.post(action, {**own, "csrf": other.csrf}),
            await browser.post(action, {"form_key": "one"}),
            await browser.post(action, own, {"origin": "https://evil.example"}),
            await browser.post(action, own, {"origin": "null", "sec-fetch-site": "same-site"}),
            await browser.post(action, own, {"origin": None}),
            await stranger.post(action, own),
        ]
        assert [each.status_code for each in tried] == [403] * len(tried), path
    for address in ("/sandbox", "/sandbox/components", "/sandbox/simulations/sandbox_wire"):
        assert (await stranger.go(address)).status_code == 403
        assert "open to browsers on the machine" in stranger.text
        assert (await browser.go(address)).status_code == 200
    await browser.go("/sandbox")
    assert "Last tasks" not in browser.text
    await other.close()
    await stranger.close()
