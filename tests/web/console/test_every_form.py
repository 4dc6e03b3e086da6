"""Every declared form of the consoles: from its own browser only, by authorized users, once."""

import asyncio
import re
from uuid import UUID

import pytest
from tests.support.applications import Applicant
from tests.support.approvals import REQUESTS, on_us
from tests.support.browser import Browser, first_match, forms_of
from tests.support.cards import Holder
from tests.support.oauth import new_key
from tests.support.world import UNKNOWN
from tests.web.company.test_move_money import signed, with_passkey
from tests.web.console.test_developer import subscribe

from billfold.dual_control.decisions import propose
from billfold.dual_control.store import FreezeSubject
from billfold.identity.operators import Operator
from billfold.identity.partners.store import list_partner_keys
from billfold.ledger.types import Direction, Rail
from billfold.onboarding.review_queue import list_waiting
from billfold.payments.ach.inbound_files import AchFileProcessor
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.retries import postpone_file
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform import ids
from billfold.web.app import PACKAGES, page_routes

CONSOLES = ("/companies/", "/partners/", "/bank")


def forms_below(*packages):
    """Return the paths that forms of packages are sent to."""
    routes = [route for package in packages for route in page_routes(package)]
    return {path for route in routes if "POST" in route.http_methods for path in route.paths}


FORMS = sorted(forms_below(*PACKAGES))
CONSOLE_FORMS = forms_below("billfold.web.company", "billfold.web.console", "billfold.web.operators")
TRIED_ELSEWHERE = {
    "/bank": "test_customers.py",
    "/bank/breaks/{break_id:str}": "test_breaks.py",
    "/bank/reconciliation": "test_reconciliation.py",
    "/bank/disputes/{dispute_id:str}": "test_disputes.py",
    "/bank/desk": "test_desk.py",
    "/bank/desk/blotter": "test_desk.py",
    "/bank/desk/executions/{execution_id:str}": "test_desk.py",
    "/bank/desk/orders/{order_id:str}": "test_desk.py",
    "/bank/liquidity": "test_liquidity.py",
    "/bank/settlement/{instruction_id:str}": "test_settlement.py",
    "/companies/{customer_id:str}/approval-rules/new": "test_approval_rules.py",
    "/companies/{customer_id:str}/approval-rules/{rule_id:str}": "test_approval_rules.py",
    "/companies/{customer_id:str}/policy/edit": "test_approval_rules.py",
    "/companies/{customer_id:str}/policy/versions/{version:str}": "test_approval_rules.py",
    "/companies/{customer_id:str}/approvals/changes/{request_id:str}": "decided as transfers are",
    "/companies/{customer_id:str}/approvals/{request_id:str}/passkey-options": "changes nothing",
    "/companies/{customer_id:str}/approvals/together": "test_approve_together.py",
    "/companies/{customer_id:str}/approvals/together/passkey-options": "changes nothing",
    "/companies/{customer_id:str}/batches/new": "test_batches.py",
    "/companies/{customer_id:str}/batches/{batch_id:str}": "test_batches.py",
    "/companies/{customer_id:str}/batches/{batch_id:str}/cancel": "test_batches.py",
    "/companies/{customer_id:str}/counterparties/documents": "test_moving_money.py",
    "/companies/{customer_id:str}/counterparties/{counterparty_id:str}/documents/{document_id:str}": "the same",
    "/companies/{customer_id:str}/counterparties/import": "test_batches.py",
    "/companies/{customer_id:str}/counterparties/new": "test_moving_money.py",
    "/companies/{customer_id:str}/counterparties/verify": "test_batches.py",
    "/companies/{customer_id:str}/counterparties/{counterparty_id:str}": "test_moving_money.py",
    "/companies/{customer_id:str}/move-money": "test_moving_money.py",
    "/companies/{customer_id:str}/pockets/{pocket_id:str}/holds": "test_pockets.py",
    "/companies/{customer_id:str}/notifications/read": "test_notifications.py",
    "/companies/{customer_id:str}/transactions/{transaction_id:str}/undo": "test_undo.py",
    "/companies/{customer_id:str}/transactions/{transaction_id:str}/dispute": "test_disputes.py",
    "/companies/{customer_id:str}/transactions/{transaction_id:str}/dispute/{dispute_id:str}/withdraw": "the same",
    "/companies/{customer_id:str}/transactions/{transaction_id:str}/dispute/{dispute_id:str}/documents": "the same",
    "/companies/{customer_id:str}/transfer-requests/{request_id:str}/cancel": "test_moving_money.py",
    "/companies/{customer_id:str}/transfer-requests/{request_id:str}/schedule": "test_move_money.py",
    "/companies/{customer_id:str}/reports/new": "test_reports.py",
    "/partners/{slug:str}/credentials/secret": "test_partner_console.py",
}
ATTEMPTS = ("_begun", "files.retry")
"""What an operator tries: the entry of what moves money is another one."""
_WRITTEN = "SELECT (SELECT count(*) FROM command), (SELECT count(*) FROM audit_entry WHERE outcome = 'SUCCESS')"
_DONE = "SELECT action, count(*) FROM audit_entry WHERE outcome = 'SUCCESS' GROUP BY action"
_DELIVERED = "SELECT count(*) FROM delivery"


def filled(path, home):
    """Return where a form is sent, with ids of nothing."""
    of_home = re.sub(r"^/(companies|partners)/\{[^}]+\}", lambda _: home, path)
    return re.sub(r"\{[^}]+\}", UNKNOWN, of_home)


async def test_every_console_form_is_refused_without_token_or_session_and_to_foreign_users(
    bank, console_app, console, operators, partner_people, customer_desk, other_customer, other_partner
):
    """A form without the token of its browser is 403, one of a stranger 404, and who is not signed in is led there."""
    viewers = await console(customer_desk), await partner_people("acme", role="ADMIN"), await operators("ADMIN")
    own = dict(zip(CONSOLES, viewers, strict=True))
    strangers = (
        await console(other_customer),
        await partner_people("globex", role="ADMIN"),
        await console(customer_desk),
    )
    foreign = dict(zip(CONSOLES, strangers, strict=True))
    nobody = Browser(console_app, address="203.0.113.8")  # the forms of one address are counted
    for each in (*own.values(), *foreign.values(), nobody):
        await each.go("/sign-in" if each is nobody else "/account")
    before = await bank.pool.fetchrow(_WRITTEN)
    tried = 0
    for path in FORMS:
        console_of = next((each for each in CONSOLES if path.startswith(each)), "/companies/")
        browser, stranger = own[console_of], foreign[console_of]
        to = filled(path, browser.home).replace("{customer_id:str}", customer_desk.team.customer)
        assert (await browser.post(to, {})).status_code == 403, path
        assert (await browser.post(to, {"csrf": stranger.csrf})).status_code == 403, path
        other = await browser.post(to, {"csrf": browser.csrf}, {"origin": "https://other.example"})
        assert other.status_code == 403, path
        if path.startswith(CONSOLES):
            tried += 1
            away = await nobody.post(to, {"csrf": nobody.csrf})
            assert (away.status_code, away.headers["location"][:9]) == (303, "/sign-in?"), path
            assert (await stranger.post(to, {"csrf": stranger.csrf})).status_code == 404, path
    assert tried >= 30
    await nobody.close()
    assert await bank.pool.fetchrow(_WRITTEN) == before


@pytest.fixture
def send_twice(bank):
    """Send a form twice at once, and see that it is done once."""

    async def send(browser, path, form):
        before, queued = dict(await bank.pool.fetch(_DONE)), await bank.pool.fetchval(_DELIVERED)
        sent = {"csrf": browser.csrf, "form_key": str(ids.new()), **form}
        pages = await asyncio.gather(*(browser.post(path, sent) for _ in range(2)))
        answers = [each.status_code for each in pages]
        assert {*answers} <= {200, 303, 404, 409, 422, 429}, (path, answers)
        assert {*answers} & {200, 303}, (path, answers, re.findall('role="alert">([^<]*)', pages[0].text))
        done = {action: count - before.get(action, 0) for action, count in await bank.pool.fetch(_DONE)}
        twice = {action for action, count in done.items() if count > 1 and not action.endswith(ATTEMPTS)}
        assert not twice, path
        assert await bank.pool.fetchval(_DELIVERED) <= queued + 1, path

    return send


async def test_every_console_form_submitted_twice_concurrently_is_executed_once(
    *,
    bank,
    send_twice,
    console,
    operators,
    partner_people,
    customer_desk,
    manager,
    customer_world,
    funded,
    payroll_pocket,
):
    tried = set()

    async def send(path, browser, at, form=None):
        tried.add(path)
        await send_twice(browser, at, form or {})

    admin = await console(customer_desk)
    await _company(admin, send)
    approver, made = (
        await console(manager),
        await customer_desk.post(REQUESTS, on_us(funded, 1_000_00, to=payroll_pocket)),
    )
    device, path = await with_passkey(approver), f"{approver.home}/approvals/transfers/{made['id']}"
    await approver.go(path)
    fields = {"content_hash": made["content_hash"], **await signed(approver, device, path)}
    await send("/companies/{customer_id:str}/approvals/transfers/{request_id:str}", approver, path, fields)
    await _operator(bank, await operators("ADMIN"), funded, Applicant(customer_world), send)
    await _partner(bank, await partner_people("acme", role="ADMIN"), customer_world, payroll_pocket, send)
    assert tried | TRIED_ELSEWHERE.keys() == CONSOLE_FORMS, "those of teams: tests/web"


async def _company(browser, send):
    base, one = "/companies/{customer_id:str}", "/{notification_id:str}"
    await browser.go(browser.home)
    fields = {"pocket_name": "Taxes", "deposit_strategy_id": "UST-4W"}
    await send(f"{base}/pockets/new", browser, f"{browser.home}/pockets/new", fields)
    await browser.go(f"{browser.home}/pockets")
    pocket = first_match(rf'href="({browser.home}/pockets/[0-9a-f-]{{36}})"', browser.page.text)
    await send(
        f"{base}/pockets/{{pocket_id:str}}/settings",
        browser,
        f"{pocket}/settings",
        {"change": "add-portal", "name": "Rent"},
    )
    subscriptions = "/developer/subscriptions"
    await browser.go(f"{browser.home}{subscriptions}/new")
    new = forms_of(browser.page.text)[f"{browser.home}{subscriptions}"]
    form = new | {"url": "https://93.184.215.14/others", "event.transfers.wire.in.success": "yes"}
    await send(f"{base}{subscriptions}", browser, f"{browser.home}{subscriptions}", form)
    path = await subscribe(browser)
    steps = {action: form for action, form in forms_of(browser.page.text).items() if action.startswith(f"{path}/")}
    assert len(steps) >= 5
    for action in sorted(steps, key=lambda each: each.endswith("/delete")):
        await browser.go(path)
        fields = forms_of(browser.page.text)[action] | {"since": "2025-06-01T09:00", "status": "enabled"}
        if not action.endswith("/resend"):
            await send(f"{base}{subscriptions}/{{subscription_id:str}}/{{step:str}}", browser, action, fields)
    audience = f"{browser.home}/notifications/audiences/FUNDS_RECEIVED"
    await browser.go(audience)
    await send(
        f"{base}/notifications/audiences/{{notification_type:str}}",
        browser,
        audience,
        forms_of(browser.page.text)[audience],
    )
    await browser.go(f"{browser.home}/notifications")
    mark = next(each for each in forms_of(browser.page.text) if "/notifications/" in each)
    await send(f"{base}/notifications{one}", browser, mark, {"status": "READ"})


async def _partner(bank, browser, desk, pocket, send):
    base, subscriptions = "/partners/{slug:str}", "/developer/subscriptions"
    await browser.go(f"{browser.home}{subscriptions}/new")
    form = {"url": "https://93.184.215.14/others", "event.transfers.wire.in.success": "yes"}
    new = forms_of(browser.page.text)[f"{browser.home}{subscriptions}"]
    await send(f"{base}{subscriptions}", browser, f"{browser.home}{subscriptions}", new | form)
    path = await subscribe(browser)
    await send(f"{base}{subscriptions}/{{subscription_id:str}}/{{step:str}}", browser, f"{path}/delete")
    card = (await Holder(desk, pocket).virtual_card())["card_id"]
    await send(
        f"{base}/customers/{{customer_id:str}}/cards/{{card_id:str}}",
        browser,
        f"{browser.home}/customers/{pocket.customer}/cards/{card}",
        {"status": "CLOSED", "pocket_id": pocket.id},
    )
    key, credentials = new_key(), f"{browser.home}/credentials"
    fields = {"username": "acme-app", "algorithm": key.algorithm, "public_pem": key.pem}
    await send(f"{base}/credentials/keys", browser, f"{credentials}/keys", fields)
    (made,) = await list_partner_keys(bank.pool, desk.partner.partner_id)
    await send(f"{base}/credentials/keys/{{key_id:str}}/revoke", browser, f"{credentials}/keys/{made.key_id}/revoke")


async def _operator(bank, browser, pocket, applicant, send):
    await browser.go("/bank/freezes")
    reason = {"reason": "Suspected fraud"}
    await send(
        "/bank/freezes",
        browser,
        "/bank/freezes",
        reason | {"change": "freeze", "subject": "CUSTOMER", "subject_id": pocket.customer},
    )
    olga = Operator.of_command_line("olga")
    made = await propose(bank, FreezeSubject.POCKET, UUID(pocket.id), freezes=True, reason="Theft", by=olga)
    await send("/bank/freezes/{proposal_id:str}", browser, f"/bank/freezes/{made.proposal_id}", {"decision": "confirm"})
    await applicant.decided(await applicant.filled(name="Review Co"))
    (item,) = await list_waiting(bank, 10, "application")
    await send(
        "/bank/reviews/{kind:str}/{object_id:str}",
        browser,
        f"/bank/reviews/application/{item.object_id}",
        {"decision": "reject", "reason": "Incomplete."},
    )
    unclaimed = UnclaimedPayment(ids.new(), Direction.CREDIT, 700_00, reason="NO_ACCOUNT", details={"description": "x"})
    await hold_unclaimed_payments(bank, [unclaimed], rail=Rail.WIRE)
    item_id = await bank.pool.fetchval("SELECT item_id FROM suspense_item WHERE status = 'HELD'")
    await send(
        "/bank/suspense/{item_id:str}",
        browser,
        f"/bank/suspense/{item_id}",
        {"decision": "return", "reason": "NO_ACCOUNT"},
    )
    await browser.go("/bank/rails")
    file = first_match(r'href="(/bank/rails/[^"?]+)"', browser.page.text)
    await send("/bank/rails/{file_id:str}/retry", browser, f"{file}/retry")
    await bank.ports[RailExchanges].ach.network_side().transmit("odd", b"odd")
    odd = await AchFileProcessor().store_file(bank, "odd")
    assert odd is not None
    await postpone_file(bank, odd, error="It is odd.")
    page = f"/bank/rails/{odd.file_id}"
    await browser.go(page)
    await send("/bank/rails/{file_id:str}/close", browser, f"{page}/close", {"reason": "Booked by hand"})
