"""The pages as people use them: stories in Chromium against one sandbox, with every page looked at on the way."""

import asyncio
import re
import sys
from datetime import datetime

import pyotp
import pytest
from tests.architecture.pages import ROOT
from tests.journeys.steps import (
    APPROVAL_RULE,
    POLICY,
    add_supplier,
    approve_change,
    ask_where_the_wire_is,
    find_by_key,
    find_payee,
    receive_money,
    see_value_grow,
)
from tests.support.applications import PERSON, Applicant
from tests.support.browser import first_match
from tests.support.cards import pem, unread_key
from tests.support.events import answer, receiving
from tests.support.visitor import PHONE_WINDOW

from billfold.dual_control.decisions import propose
from billfold.dual_control.store import FreezeSubject
from billfold.identity.operators import Operator
from billfold.ledger.types import Direction, Rail
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform import ids
from billfold.sandbox.running_sandbox import partner_http
from billfold.wiring.cli_context import Wiring
from billfold_client.local import local_client
from billfold_client.oauth import Authorization, ClientRegistration
from billfold_client.sandbox import sandbox_customer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
PASSWORD = "walnut-orbit-canyon"
DOCUMENTATION = {
    "/docs/": "documentation",
    "/docs/domain/yield": "documentation yield",
    "/docs/search?q=wire": "documentation search",
    "/proofs/latest": "daily root",
}
CLOCK_MOVES_MAX = 8
EVENT_ID = re.compile("^[0-9a-f]{8}-[0-9a-f-]{27}$")
EVENT = "transfers.wire.in.success"


@pytest.fixture(autouse=True)
def no_faults(sandbox_site):
    """Check every page of a story for errors."""
    yield
    faults, sandbox_site.gallery.faults = sandbox_site.gallery.faults, []
    assert faults == []


async def request_transfer(visitor, place):
    """Fill in a transfer to the payee of the form, preview it, and request it; return the path of its page."""
    await visitor.page.locator("#origin").select_option(value=str(place.box.pocket_ids[0]))
    await visitor.fill(Amount="60,000", Description="Invoice 1001")
    await visitor.press("Preview transfer", "preview")
    assert "Bills that are sold" in await visitor.text()
    await visitor.press("Request approval", "transfer request")
    return visitor.path


async def approve(visitor, place, title):
    """Approve the transfer that the first page leads to."""
    await visitor.go(place.home, "home on a phone")
    await visitor.follow(title, "approval")
    assert "$60,000.00" in await visitor.text()
    await visitor.fill(Code_from_your_authenticator_app=visitor.app.code())
    await visitor.press("Approve $60,000.00", "approvals")


async def test_the_first_call_of_the_documentation_has_the_answer_that_is_shown(sandbox_site, monkeypatch):
    monkeypatch.chdir(sandbox_site.sandbox.state.parent)
    code, answer = re.findall(r"```(?:python)?\n(.*?)```", (ROOT / "docs/index.md").read_text(), re.DOTALL)
    run = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    printed, _ = await run.communicate()
    assert printed.decode() == answer


async def test_a_wire_is_requested_approved_on_a_phone_and_settles(sandbox_site):
    ada = sandbox_site.ada
    await receive_money(ada, sandbox_site)
    await see_value_grow(ada, sandbox_site)
    await add_supplier(ada, sandbox_site)
    await ada.follow("Pay", "move money")
    await find_payee(ada, "Fabrikam")
    request = await request_transfer(ada, sandbox_site)
    await approve(sandbox_site.bo, sandbox_site, "Fabrikam")
    for _ in range(CLOCK_MOVES_MAX):
        await ada.go("/sandbox", "control room")
        await ada.page.get_by_label("Next event of a kind").select_option(label="Wires")
        await ada.press("Run to it", "control room")
        await ada.go(request, "transfer request")
        if "Completed" in await ada.text():
            break
    assert "Completed" in await ada.text()
    await ada.follow("Transaction", "transaction")
    assert "60,000.00" in await ada.text()


async def test_a_misspelled_supplier_is_found_by_a_key_and_on_a_phone(sandbox_site):
    ada = sandbox_site.ada
    await ada.go(f"{sandbox_site.home}/find?q=fabirkam", "find")
    await ada.follow("Fabrikam", "counterparty")
    await ada.go(sandbox_site.home, "home")
    await find_by_key(ada.page, "Control+k", "fabirkam", "Fabrikam")
    assert "Fabrikam" in await ada.text()
    await ada.go(sandbox_site.home, "home")
    await ada.page.keyboard.press("?")
    assert "Find anything" in await ada.page.get_by_role("dialog", name="Keys").inner_text()
    await ada.page.keyboard.press("Escape")
    await ada.page.set_viewport_size(PHONE_WINDOW)
    await find_by_key(ada.page, "", "statments", "Statements")
    assert ada.path.endswith("/statements")


async def test_a_month_later_the_statement_is_downloaded_and_verified(sandbox_site):
    ada = sandbox_site.ada
    await ada.go("/sandbox", "control room")
    now = datetime.fromisoformat(await ada.page.locator("#now").input_value())
    later = now.replace(month=now.month + 1, day=2)
    await ada.page.locator("#now").fill(later.isoformat(timespec="minutes"))
    await ada.press("Set clock", "control room")
    await ada.read_until("PDF", f"{sandbox_site.home}/statements", "statements")
    async with ada.page.expect_download() as downloading:
        await ada.page.get_by_role("link", name=re.compile(f"Bank statement of {now:%B}")).first.click()
    file, keys = (
        sandbox_site.sandbox.state.parent / "statement.pdf",
        sandbox_site.sandbox.state.parent / "document-keys.json",
    )
    await (await downloading.value).save_as(file)
    command = await ada.page.locator("pre").first.text_content()
    stranger = await sandbox_site.browser.new_page(ignore_https_errors=True)
    published = await stranger.goto(first_match(r"(https://\S+)", command))
    keys.write_bytes(await published.body())
    verified = sandbox_site.sandbox.run("verify", file, "--key", keys)
    said, wrong = await asyncio.to_thread(verified.communicate)
    assert verified.returncode == 0, said + wrong


async def test_an_invited_member_joins_in_the_browser(sandbox_site):
    kim = "kim@dummy-customer.example"
    await sandbox_site.ada.go(f"/team/{sandbox_site.box.customer_id}", "team")
    await sandbox_site.ada.follow("Invite a member", "invite")
    await sandbox_site.ada.fill(First_name="Kim", Last_name="Osei", Email_address=kim)
    await sandbox_site.ada.page.get_by_label("Viewer").check()
    await sandbox_site.ada.press("Send invitation", "team")
    assert "Kim Osei" in await sandbox_site.ada.text()
    guest = await sandbox_site.arrive(window=PHONE_WINDOW)
    await guest.go(await sandbox_site.link(kim, "/invitation"), "invitation")
    await guest.page.locator("#password").fill(PASSWORD)
    await guest.page.locator("#again").fill(PASSWORD)
    await guest.press("Join the team", "set up")
    await guest.page.get_by_text("Enter the key by hand").click()
    secret = await guest.page.locator(".key").inner_text()
    await guest.page.locator("#code").fill(pyotp.TOTP(secret.replace(" ", "")).now())
    await guest.press("Use this app", "home of a viewer")
    assert "Dummy Customer Inc." in await guest.page.title()


async def test_a_failed_webhook_delivery_is_resent_in_the_browser(sandbox_site):
    ada = sandbox_site.ada
    mended, delivered = asyncio.Event(), asyncio.Event()

    async def script(_):
        if mended.is_set():
            delivered.set()
        return answer(200 if mended.is_set() else 500)

    async with receiving(script) as receiver:
        await ada.go(f"{sandbox_site.home}/developer", "developer")
        await ada.follow("Add a webhook", "new subscription")
        await ada.fill(Address=receiver.url, Search_events=EVENT)
        await ada.page.locator(f"[name='event.{EVENT}']").check()
        await ada.press("Add webhook", "subscription")
        subscription = ada.path
        await receive_money(ada, sandbox_site)
        await ada.read_until("Failed 500", subscription, "failed delivery")
        await ada.follow(EVENT_ID, "event")
        mended.set()
        await ada.press(f"Resend to {receiver.url}", "subscription")
        await asyncio.wait_for(delivered.wait(), 10)
        await ada.read_until("Succeeded 200", subscription, "subscription")
        assert {each.event["event_type"] for each in receiver.requests} == {EVENT}


async def test_guests_fill_in_an_application_and_review_it(sandbox_site):
    carol, dan = "carol@helpers.example", "dan@northwind.example"
    with sandbox_customer(sandbox_site.sandbox.state / "sandbox.json").http as http:
        path = "/api/v2/business-applications/"
        made = http.post(path, json={"name": "Fabrikam"}).raise_for_status().json()
        for invited in (
            {"invitation_type": "COLLABORATOR", "collaborators": [{"email": carol}]},
            {"invitation_type": "AUTHORIZED_PERSON", "email": dan, "first_name": "Dan", "last_name": "Poe"},
        ):
            http.post(f"{path}{made['id']}/invite/", json=invited).raise_for_status()
    guest = await sandbox_site.arrive(window=PHONE_WINDOW)
    await guest.go(await sandbox_site.link(carol, "/onboarding"), "onboarding welcome")
    await guest.press("Begin", "onboarding")
    await guest.follow("Add a person", "onboarding new person")
    await guest.fill(First_name="Bo", Last_name="Reyes", Date_of_birth="1980-02-29")
    await guest.press("Save and continue", "onboarding person")
    await guest.go(guest.path.partition("/people/")[0], "onboarding")
    guest.links.add(f"{guest.path}/documents")
    await guest.walk()
    reviewer = await sandbox_site.arrive(window=PHONE_WINDOW)
    await reviewer.go(await sandbox_site.link(dan, "/onboarding"), "onboarding welcome")
    await reviewer.press("Begin", "onboarding review")


class HttpDesk:
    def __init__(self, http):
        self.http = http

    async def ask(self, method, path, body=None, *, headers=None, **_):
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = await asyncio.to_thread(self.http.request, method, path, headers=headers, **sent)
        assert answer.is_success, answer.text
        return answer

    async def post(self, path, body, **_):
        return (await self.ask("POST", path, body)).json()

    async def get(self, path):
        return (await self.ask("GET", path)).json()


async def test_an_operator_reviews_an_application(sandbox_site):
    with partner_http(sandbox_site.box) as http:
        applicant = Applicant(HttpDesk(http))
        await HttpDesk(http).post("/api/v1/applications/", PERSON)
        await applicant.apply(await applicant.filled(name="Review Co"))
    olga = await sandbox_site.arrive(sandbox_site.box.operators[0], window=PHONE_WINDOW)
    await olga.sign_in()
    await olga.read_until("Review Co", "/bank/reviews", "reviews")
    await olga.follow(re.compile("Review Co"), "review")
    await olga.fill(Reason="All there.")
    await olga.press("Approve", "reviews after one")
    olga.links |= {ledger := f"/bank/ledger/{sandbox_site.box.customer_id}", f"{ledger}/1"}
    await olga.walk()


async def test_an_operator_finds_a_break(sandbox_site):
    with partner_http(sandbox_site.box) as http:
        for path, body in (("statements/", {"behavior": "UNKNOWN_LINE"}), ("clock/advance/", {"business_days": 1})):
            await HttpDesk(http).ask("POST", f"/api/v1/sandbox/{path}", body)
    olga = await sandbox_site.arrive(sandbox_site.box.operators[0])
    await olga.sign_in()
    await olga.read_until("$123.45", "/bank/reconciliation", "breaks")
    await olga.follow(re.compile("Unknown line"), "break")
    await olga.walk()


async def hold_a_payment(place):
    """Hold a wire for a closed account, as a file of the rail would, and propose a freeze; return their pages."""
    wiring = Wiring({"BILLFOLD_STATE_DIR": str(place.sandbox.state)})
    settings = wiring.settings()
    payment = UnclaimedPayment(ids.new(), Direction.CREDIT, 700_00, reason="NO_ACCOUNT", details={"description": "x"})
    async with wiring.bank(settings, wiring.running_database(settings)) as bank:
        await hold_unclaimed_payments(bank, [payment], rail=Rail.WIRE)
        by = Operator.of_command_line("olga")
        pocket = place.box.pocket_ids[1]
        made = await propose(bank, FreezeSubject.POCKET, pocket, freezes=True, reason="Theft", by=by)
        item = await bank.pool.fetchval("SELECT item_id FROM suspense_item")
        return {f"/bank/suspense/{item}", f"/bank/freezes/{made.proposal_id}"}


async def dispute(place):
    """Let the customer pay by card and dispute it; return the path of the operators' page of the dispute."""
    account = f"/api/v1/service-accounts/{place.box.pocket_ids[0]}"
    with partner_http(place.box) as http:
        desk = HttpDesk(http)
        card = await desk.post(f"{account}/virtual-cards/", {"public_key": pem(unread_key())})
        cleared = {"card_id": card["card_id"], "amount_usdc": 60_00}
        made = (await desk.ask("POST", "/api/v1/sandbox/card-clearing/", cleared)).json()
        body = {"pocket_id": str(place.box.pocket_ids[0]), "transaction_id": made["transaction_id"], "reason": "FRAUD"}
        return f"/bank/disputes/{(await desk.post('/api/v1/card-disputes/', body))['id']}"


async def originate(place):
    """Let the partner pay a supplier of the customer by ACH; return the path of the operators' page of the entry."""
    payee = {
        "type": "ach",
        "counterparty_name": {"type": "business", "business_name": "Contoso"},
        "routing_number": "021000021",
        "verification": {"type": "incoming_wire"},
        "account_number": "000987654301",
        "account_type": "CHECKING",
    }
    entry = {"direction": "CREDIT", "amount_usdc": 100_00, "sec_code": "PPD", "company_entry_description": "PAYROLL"}
    customer = f"customers/{place.box.customer_id}"
    with partner_http(place.box) as http:
        entry["counterparty_id"] = (await HttpDesk(http).post(f"/api/v2/{customer}/counterparties/", payee))["id"]
        decided = {"counterparty_id": entry["counterparty_id"], "status": "APPROVED"}
        await HttpDesk(http).ask("POST", "/api/v1/sandbox/counterparty-verification/", decided)
        path = f"/api/v1/service-accounts/{place.box.pocket_ids[0]}/ach-originating/"
        return f"/bank/{customer}/ach-entry/{(await HttpDesk(http).post(path, entry))['id']}"


async def test_an_operator_answers_where_a_wire_is_at_a_desk_and_on_a_phone(sandbox_site):
    otto = await sandbox_site.arrive(sandbox_site.box.operators[1])
    await otto.sign_in()
    await ask_where_the_wire_is(otto)
    otto.links |= {*await hold_a_payment(sandbox_site), await originate(sandbox_site), await dispute(sandbox_site)}
    otto.links |= {f"/bank/customers/{sandbox_site.box.customer_id}/{name}" for name in ("ach", "transactions")}
    otto.links.add("/bank/search")
    await otto.walk()
    await ask_where_the_wire_is(otto)


async def test_a_sandbox_is_restored_from_its_fork_after_money_is_spent(sandbox_site):
    ada = sandbox_site.ada
    await ada.go(sandbox_site.home, "home")
    before = await ada.text()
    await ada.go("/sandbox", "control room")
    await ada.fill(Name_of_a_new_fork="before-the-loss")
    await ada.main.get_by_role("button", name="Create fork", exact=True).click()
    await ada.page.get_by_text("The copy is made.").wait_for()
    await ada.look("task")
    await ada.go(f"{sandbox_site.home}/move-money?to=pocket:{sandbox_site.box.pocket_ids[1]}", "move money")
    await request_transfer(ada, sandbox_site)
    await approve(sandbox_site.bo, sandbox_site, "Operating reserve to ")
    await ada.go(sandbox_site.home, "home")
    assert await ada.text() != before
    await ada.go("/sandbox", "control room")
    await ada.page.get_by_text("Rewind to before-the-loss").click()
    await ada.page.locator("form[action='/sandbox/forks/before-the-loss/rewind'] button").click()
    await ada.page.get_by_text("The bank is as it was in before-the-loss").wait_for()
    await ada.look("task")
    ada.links.clear()  # some lead to deleted objects
    await ada.go(sandbox_site.home, "home")
    assert await ada.text() == before
    await ada.go("/sandbox", "control room")


async def test_an_operation_is_tried_in_the_browser_reference(sandbox_site):
    await sandbox_site.ada.go("/docs/api/customer/create_pocket", "documentation operation")
    await sandbox_site.ada.page.get_by_role("link", name="Try it").click()
    await sandbox_site.ada.look("try it")
    await sandbox_site.ada.fill(Body='{"pocket_name": "Tried", "deposit_strategy_id": "UST-4W"}')
    await sandbox_site.ada.press("Send request", "tried")
    assert "201 Created" in await sandbox_site.ada.text()
    await sandbox_site.ada.go(f"{sandbox_site.home}/pockets", "pockets")
    assert "Tried" in await sandbox_site.ada.text()


async def test_every_remaining_page_renders_without_errors(sandbox_site):
    with sandbox_customer(sandbox_site.sandbox.state / "sandbox.json").http as http:
        http.post("/api/v1/approval-rules/", json=APPROVAL_RULE).raise_for_status()
        proposed = http.put("/api/v1/policy/", json=POLICY).raise_for_status().json()
    stranger = await sandbox_site.arrive(window=PHONE_WINDOW)
    await stranger.go("/forgot", "forgot")
    await stranger.fill(Email_address=sandbox_site.box.colleague.email)
    await stranger.press("Send the link", "forgot sent")
    await stranger.go(await sandbox_site.link(sandbox_site.box.colleague.email, "/password"), "password")
    await stranger.walk()
    pia = await sandbox_site.arrive(sandbox_site.box.partner_person, window=PHONE_WINDOW)
    await pia.sign_in()
    await pia.walk()
    ada = sandbox_site.ada
    await approve_change(sandbox_site.bo, f"{sandbox_site.home}/approvals/changes/{proposed['id']}")
    ada.links |= {
        f"{sandbox_site.home}/policy/versions/1",
        f"{sandbox_site.home}/counterparties/verify",
        "/confirm",
        "/sign-out",
        "/sandbox/try/partner/list_pockets",
    }
    await ada.go(f"{sandbox_site.home}/approvals?view=all", "approvals of all")
    await ada.walk()
    with local_client(sandbox_site.box.auth_url, sandbox_site.box.ca_file) as http:
        client = next(each for each in sandbox_site.box.clients if each.client_id == "sandbox-fapi2")
        registration = ClientRegistration(
            issuer=sandbox_site.box.auth_url,
            client_id=client.client_id,
            private_key=client.private_key,
            kid=client.kid,
            redirect_uri=client.redirect_uris[0],
        )
        address = Authorization(registration).begin(http, ["pockets.read"]).url
    for path, name in {address.removeprefix(sandbox_site.box.auth_url): "consent", **DOCUMENTATION}.items():
        await ada.go(path, name)
    assert [*sandbox_site.gallery.left] == []


@pytest.mark.parametrize("api", ["customer", "partner"])
async def test_an_upload_is_tried_in_the_browser_reference(sandbox_site, api):
    await sandbox_site.ada.go(f"/docs/api/{api}/upload_document", "documentation upload")
    await sandbox_site.ada.page.get_by_role("link", name="Try it").click()
    await sandbox_site.ada.look("try an upload")
    await sandbox_site.ada.press("Send request", "tried upload")
    assert "201 Created" in await sandbox_site.ada.text()
