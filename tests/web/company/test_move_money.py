"""Money is moved through the pages: previewed, requested, decided over the hash of the content, and refused."""

import asyncio
import json
from datetime import timedelta
from uuid import UUID

import pyotp
import pytest
from tests.approvals.test_policies import document, proposed, refuse, require
from tests.support.applications import PAGE
from tests.support.approvals import REQUESTS, hold_roles, on_us, path_of, status_of, wire_counterparty
from tests.support.browser import ORIGIN, first_match, forms_of
from tests.support.passkey_device import Device

from billfold.approvals.checks import check_rows
from billfold.identity.users import totp
from billfold.platform.clock import wall_now
from billfold.platform.database.checks import Findings


async def with_passkey(browser):
    """Let the visitor of a browser make a passkey; return its device."""
    device = Device()
    await browser.go(browser.home)
    options = (await browser.ask("/passkeys/options", {})).json()
    await browser.ask("/passkeys", {"credential": device.make(options), "next": "/account"})
    return device


async def signed(browser, device, path, decision="APPROVED"):
    """Return the fields by which a passkey signs a decision about the content of the page."""
    form = forms_of(browser.page.text)[path]
    sent = {"decision": decision, "content_hash": form["content_hash"]}
    answer = (await browser.ask(first_match(r'data-signs="([^"]+)"', browser.page.text), sent)).json()
    return {**sent, "nonce": answer["nonce"], "credential": json.dumps(device.sign(answer["options"]))}


async def decide(browser, device, path, decision="APPROVED"):
    await browser.go(path)
    return await browser.send(path, **await signed(browser, device, path, decision))


async def test_a_transfer_is_previewed_requested_and_approved_by_a_second_member(
    customer_desk, console, funded, payroll_pocket
):
    maker, approver = await console(customer_desk, role="INITIATOR"), await console(customer_desk)
    device = await with_passkey(approver)
    path = f"{maker.home}/move-money"
    await maker.go(f"{path}?origin={funded.id}")
    sent = {"origin": funded.id, "to": f"pocket:{payroll_pocket.id}"}
    page = await maker.send(path, step="preview", **sent, amount="a lot")
    assert (page.status_code, maker.mistakes) == (422, {"amount": "The amount must be dollars like 1,250.50."})
    await maker.send(path, step="preview", **sent, amount="0")
    assert maker.mistakes == {"amount": "The amount must be from $0.01 to $9,999,999,999.99."}
    page = await maker.send(path, step="preview", **sent, amount="12,000")
    assert page.status_code == 409
    assert "cannot raise the amount" in maker.text
    await maker.send(path, step="preview", **sent, amount="1,000", description="Wages")
    assert "Bills that are sold Bill Units Price Earned Tax gain Proceeds 9127" in maker.text
    assert "1 approval, by the default: one other member." in maker.text
    form = forms_of(maker.page.text)[path]
    answers = await asyncio.gather(*(maker.post(path, form | {"step": "request"}) for _ in range(2)))
    assert 303 in {each.status_code for each in answers}
    (made,) = (await customer_desk.get(REQUESTS))["items"]
    assert (made["transfer"]["description"], made["requested_by"]["role"]) == ("Wages", "INITIATOR")
    await approver.go(f"{approver.home}/approvals")
    assert "Reserve to Payroll $1,000.00 Within this bank, Wages." in approver.text
    decision = f"{approver.home}/approvals/transfers/{made['id']}"
    assert (await decide(approver, device, decision)).headers["location"].endswith("done=request-approved")
    assert await status_of(customer_desk, made) == ("APPROVED", "COMPLETED")
    await maker.go(f"{maker.home}/transfer-requests/{made['id']}")
    assert "Approved by Anna Lind" in maker.text
    assert "Completed" in maker.text


async def test_a_series_is_requested_on_the_form_approved_paused_and_cancelled(
    customer_desk, console, world, funded, payroll_pocket
):
    maker = await console(customer_desk, role="INITIATOR")
    path = f"{maker.home}/move-money"
    sent = {"origin": funded.id, "to": f"pocket:{payroll_pocket.id}", "amount": "1,000", "keep": "5,000"}
    sent |= {"repeat": "FREQ=WEEKLY", "end": "2025-06-30", "on_closed_day": "BEFORE"}
    await maker.go(path)
    await maker.send(path, step="preview", **sent)
    assert maker.mistakes["start_on"].endswith("The first day must be given.")
    await maker.send(path, step="preview", **sent, start_on="2025-06-01")
    assert "must be today or later" in maker.mistakes["start_on"]
    await maker.send(path, step="preview", **sent, start_on="2025-06-12")
    assert "Every week from Jun 12, 2025" in maker.text
    await maker.send(path, step="request")
    (made,) = (await customer_desk.get(REQUESTS, {"scheduled": "true"}))["items"]
    assert made["transfer"]["amount_type"] == "ALL_ABOVE"
    await customer_desk.patch(f"{path_of(made)}status/", {"status": "APPROVED"})
    await world.until("2025-06-13T12:00:00Z")
    shown = f"{maker.home}/transfer-requests/{made['id']}"
    await maker.go(shown)
    assert "All above $5,000.00" in maker.text
    assert "Runs so far" in maker.text
    await maker.send(f"{shown}/schedule", state="PAUSED")
    await maker.go(shown)
    assert "Resume" in maker.text
    await maker.send(f"{shown}/schedule", state="CANCELLED")
    await maker.go(shown)
    assert "the series is over" in maker.text
    await maker.go(f"{maker.home}/transfer-requests?scheduled=true")
    assert "Every week" in maker.text


async def expect_refused(viewer, request, payee):
    """Check that a viewer is refused before a form is read, whatever is in it."""
    for to, field in (
        (f"transfer-requests/{request['id']}/cancel", {}),
        (f"transfer-requests/{request['id']}/schedule", {"state": "PAUSED"}),
        (f"counterparties/{payee}", {"change": "remove"}),
        (f"counterparties/{payee}", {"first": "0.11"}),
    ):
        sent = {"csrf": viewer.csrf, "form_key": "0123456789", **field}
        assert (await viewer.post(f"{viewer.home}/{to}", sent)).status_code == 403, to


async def test_an_approval_counts_only_for_the_shown_content_and_from_permitted_members(
    customer_desk, manager, console, other_customer, funded, payroll_pocket
):
    made = await customer_desk.post(REQUESTS, body := on_us(funded, 1_000_00, to=payroll_pocket))
    own, approver, stranger = [await console(each) for each in (customer_desk, manager, other_customer)]
    viewer = await console(customer_desk, role="VIEWER")
    path = f"{own.home}/approvals/transfers/{made['id']}"
    devices = {each: await with_passkey(each) for each in (own, approver, viewer)}
    await approver.go(path)
    shown = approver.page
    for browser, status in ((own, 409), (viewer, 403)):
        await browser.go(path)
        assert 'name="decision"' not in browser.page.text
        fields = await signed_as(browser, devices[browser], path, made)
        assert (await browser.post(path, fields)).status_code == status
    uncoded = await signed_as(own, devices[own], path, made) | {"credential": ""}
    assert "The code is needed to decide." in (await own.post(path, uncoded)).text
    await expect_refused(viewer, made, await wire_counterparty(customer_desk))
    assert {(await stranger.go(to)).status_code for to in (path, path.replace(own.home, stranger.home))} == {404}
    approver.page = shown
    fields = await signed(approver, devices[approver], path)
    for bent in ({"decision": "DENIED"}, {"content_hash": "0" * 64}, {"credential": ""}, {"nonce": "x"}):
        approver.page = shown
        assert (await approver.send(path, **(fields | bent))).status_code == 422
    body["transfer"]["amount"]["amount_usdc"] = 2_000_00
    await customer_desk.ask("PATCH", path_of(made), {"transfer": body["transfer"]}, status=200)
    approver.page = shown
    assert (await approver.send(path, **await signed(approver, devices[approver], path))).status_code == 409
    assert "The request has changed." in approver.text
    assert "$2,000.00" in approver.text
    assert (await customer_desk.get(path_of(made)))["reviews"] == []
    assert (await decide(approver, devices[approver], path, "DENIED")).status_code == 303
    assert await status_of(customer_desk, made) == ("DENIED", "NOT_STARTED")
    await expect_damage_named(customer_desk.bank.pool, SIGNED)


async def test_an_approval_by_code_is_accepted_once_and_checked_by_verify(
    customer_desk, manager, console, funded, payroll_pocket
):
    approver, made = (
        await console(manager),
        await customer_desk.post(REQUESTS, on_us(funded, 1_000_00, to=payroll_pocket)),
    )
    path = f"{approver.home}/approvals/transfers/{made['id']}"
    form = {"decision": "APPROVED", "code": await new_code(customer_desk.bank, manager.team.user_id)}
    await approver.go(path)
    assert [(await approver.send(path, **form)).status_code, (await approver.go(path)).status_code] == [303, 200]
    fields = {"csrf": approver.csrf, "form_key": "k", "content_hash": made["content_hash"], **form}
    approver.page = await approver.post(path, fields)
    assert (approver.page.status_code, "It is decided already: APPROVED." in approver.text) == (409, True)
    await expect_damage_named(customer_desk.bank.pool, BY_CODE)


async def new_code(bank, user_id):
    """Give a person an authenticator app that is in force; return a code that was not given yet."""
    secret, now = totp.new_secret(), wall_now()
    await totp.store_pending_authenticator(bank.pool, bank.vault, user_id, secret=secret, now=now)
    app, earlier = pyotp.TOTP(secret), now - timedelta(minutes=5)
    await totp.consume_code(bank.pool, bank.vault, user_id, code=app.at(earlier), now=earlier, pending=True)
    return app.at(now)


FORGED = """
INSERT INTO audit_entry
SELECT (jsonb_populate_record(a, jsonb_build_object('entry_no', a.entry_no + 1000, 'entry_id', gen_random_uuid(),
          'details', jsonb_set(a.details::jsonb, {})))).*
  FROM audit_entry a WHERE a.details::text LIKE '%confirmation%'
"""
NO_REVIEW = {"its confirmation belongs to no review": "UPDATE review SET content_hash = sha256('x')"}
SIGNED = NO_REVIEW | {
    "its signature does not match this decision": FORGED.format("'{confirmation,nonce}', to_jsonb('x'::text)"),
}
BY_CODE = NO_REVIEW | {
    "its code was not in force then": FORGED.format("'{confirmation,step}', to_jsonb(1)"),
    "its code has confirmed another decision": FORGED.format("'{other}', to_jsonb(1)"),
}


async def expect_damage_named(pool, damages):
    """Verify the only confirmed decision again; expect these findings."""
    async with pool.acquire() as conn:
        assert await wrong_decisions(conn) == set()
        for message, damage in damages.items():
            transaction = conn.transaction()
            await transaction.start()
            await conn.execute(damage)
            assert await wrong_decisions(conn) == {message}
            await transaction.rollback()


async def wrong_decisions(conn):
    """Return the findings about confirmed decisions, of which there is one at least."""
    findings = Findings()
    async with conn.transaction():
        await check_rows(conn, findings)
    assert findings.checked["confirmed decisions"]
    return {each.message for each in findings.report().findings}


async def signed_as(browser, device, path, request):
    """Return a whole form with a decision that no page of the visitor offers, signed all the same."""
    options = path.replace("/transfers/", "/") + "/passkey-options"
    sent = {"decision": "APPROVED", "content_hash": request["content_hash"]}
    answer = (await browser.ask(options, sent)).json()
    credential = json.dumps(device.sign(answer["options"]))
    return {"csrf": browser.csrf, "form_key": "k", **sent, "nonce": answer["nonce"], "credential": credential}


async def test_a_counterparty_is_added_approved_and_removed(customer_desk, manager, console, funded):
    await hold_roles(customer_desk.bank, UUID(customer_desk.team.customer), "NEW_COUNTERPARTY")
    maker, approver = await console(customer_desk), await console(manager)
    device = await with_passkey(approver)
    new = f"{maker.home}/counterparties/new"
    await maker.go(f"{new}?type=ach")
    page = await maker.send(new, business_name="Contoso", routing_number="021000022", account_number="1234567890")
    assert page.status_code == 422
    assert list(maker.mistakes) == ["routing_number", "account_type"]
    await maker.send(new, routing_number="021000021", account_type="CHECKING")
    assert maker.page.headers["location"].endswith("done=approval-needed")
    await approver.go(f"{approver.home}/approvals")
    path = first_match(r'href="([^"]+/approvals/changes/[^"]+)"', approver.page.text)
    await approver.go(path)
    assert "New counterparty: Contoso" in approver.text
    assert "Account number 1234567890" in approver.text
    assert (await decide(approver, device, path)).status_code == 303
    await maker.go(f"{maker.home}/counterparties")
    one = first_match(r'href="([^"]+/counterparties/[0-9a-f-]{36})"', maker.page.text)
    await maker.go(one)
    assert "Two small deposits : pending" in maker.text
    await maker.send(one, change="remove")
    await maker.follow()
    assert "Removed , it cannot be paid" in maker.text
    await expect_a_policy_shown_by_its_rules(customer_desk, manager, approver)


async def expect_a_policy_shown_by_its_rules(desk, other, browser):
    rules = refuse("big", "payment.amount_cents > 100"), require("small", "payment.amount_cents > 1", 2, "ADMIN")
    first = await proposed(desk, {"document": document(*rules)})
    page = f"{browser.home}/approvals/changes/"
    await browser.go(f"{page}{first['id']}")
    assert "If payment.amount_cents &gt; 100: refuse" in browser.page.text
    assert "If payment.amount_cents > 1: require 2 approvals by ADMIN" in browser.text
    await other.patch(f"/api/v1/authorization-requests/{first['id']}/status/", {"status": "APPROVED"})
    empty = await proposed(desk, {"document": document()})
    await browser.go(f"{page}{empty['id']}")
    for shown in ("Version 1 2", "Rules big, small none", "by ADMIN removed", "Tests none none"):
        assert shown in browser.text


async def test_a_counterparty_account_is_verified_by_uploaded_documents(customer_desk, console, other_customer, funded):
    maker, stranger = await console(customer_desk), await console(other_customer)
    new = f"{maker.home}/counterparties/new"
    path = f"{maker.home}/counterparties/documents?type=ach"
    await stranger.go(stranger.home)
    await maker.go(f"{new}?type=ach")
    form = {"csrf": maker.csrf, "form_key": "0123456789"}
    scan = {"file": ("a letter.pdf", PAGE, "application/pdf")}

    async def upload(browser, fields, files, to=path):
        return await browser.http.post(to, data=fields, files=files, headers={"origin": ORIGIN})

    tried = [
        ({**form, "csrf": stranger.csrf}, scan),
        ({}, scan),
        (form | {"form_key": "wrong"}, {"file": ("x.pdf", b"MZ", "application/pdf")}),
    ]
    assert [(await upload(maker, *each)).status_code for each in tried] == [403, 403, 422]
    assert (await upload(stranger, {"csrf": stranger.csrf}, scan)).status_code == 404
    odd = await upload(maker, form, scan, to=f"{maker.home}/counterparties/documents?type=%E2%98%83&document=%E2%98%83")
    assert odd.headers["location"].startswith(f"{new}?type=wire&document="), odd.text
    answers = await asyncio.gather(*(upload(maker, form, scan) for _ in range(2)))
    maker.page = next(each for each in answers if each.status_code == 303)
    await maker.follow()
    assert "Upload a document of the account: 1 uploaded" in maker.text
    fields = {"business_name": "Contoso", "routing_number": "021000021", "account_number": "1234567890"}
    page = await maker.send(new, **fields, account_type="CHECKING")
    assert page.status_code == 303, maker.text
    await maker.follow()
    assert ("pending review" in maker.text, page.status_code) == (True, 303), maker.text
    await customer_desk.bank.pool.execute("UPDATE document SET status = 'INVALID'")
    await maker.go(page.headers["location"])
    (again,) = [each for each in forms_of(maker.page.text) if "/documents/" in each]
    assert (await upload(maker, form | {"form_key": "another one"}, scan, to=again)).status_code == 303


FORMS = ("move-money", "transfer-requests/{request}/cancel", "counterparties/new", "counterparties/{payee}")


@pytest.mark.parametrize("place", FORMS)
async def test_a_console_form_is_accepted_once_and_only_from_its_own_browser(
    customer_desk, manager, console, other_customer, funded, payroll_pocket, place
):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    ach = {"type": "ach", "routing_number": "021000021", "account_number": "1234567890", "account_type": "CHECKING"}
    name = {"counterparty_name": {"type": "business", "business_name": "Contoso"}}
    body = ach | name | {"verification": {"type": "micro_deposits"}}
    payee = await customer_desk.post("/api/v2/counterparties/", body)
    own, stranger = await console(customer_desk), await console(other_customer)
    path = f"{own.home}/{place.format(request=made['id'], payee=payee['id'])}"
    form = {
        "step": "request",
        "origin": funded.id,
        "to": f"pocket:{payroll_pocket.id}",
        "amount": "5",
        "change": "remove",
    }
    form |= ach | {"business_name": "Fabrikam", "form_key": "0123456789", "transfer_id": payee["id"]}
    await own.go(own.home)
    await stranger.go(stranger.home)
    before = await written(customer_desk)
    assert (await own.post(path, form)).status_code == 403
    assert (await stranger.post(path, form | {"csrf": own.csrf})).status_code == 403
    foreign = stranger.home + path.removeprefix(own.home)
    for wrong in (path, foreign) if place != "counterparties/new" else (path,):
        assert (await stranger.post(wrong, form | {"csrf": stranger.csrf})).status_code == 404
    assert await written(customer_desk) == before
    answers = await asyncio.gather(*(own.post(path, form | {"csrf": own.csrf}) for _ in range(2)))
    assert {each.status_code for each in answers} <= {303, 409, 429}
    assert 303 in {each.status_code for each in answers}
    assert sum(await written(customer_desk)) == sum(before) + 1


async def written(customer_desk):
    """Return how often the actions of the forms have been executed."""
    return tuple(await customer_desk.bank.pool.fetchrow(_WRITTEN, UUID(customer_desk.team.customer)))


_WRITTEN = """
SELECT (SELECT count(*) FROM transfer_request WHERE customer_id = $1),
       (SELECT count(*) FROM transfer_request WHERE customer_id = $1 AND status = 'CANCELLED'),
       (SELECT count(*) FROM counterparty WHERE customer_id = $1),
       (SELECT count(*) FROM counterparty WHERE customer_id = $1 AND status = 'UNLINKED')
"""
