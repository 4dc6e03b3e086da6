"""Transfers are approved together: with one factor over the list, each as strictly as alone and with its own proof."""

import json
import re

import pytest
from tests.support.approvals import REQUESTS, on_us, path_of, status_of
from tests.support.browser import first_match, forms_of
from tests.web.company.test_move_money import FORGED, NO_REVIEW, expect_damage_named, new_code, with_passkey

REVERSED = """
INSERT INTO audit_entry
SELECT (jsonb_populate_record(a, jsonb_build_object('entry_no', a.entry_no + 1000, 'entry_id', gen_random_uuid(),
          'details', jsonb_set(a.details::jsonb, '{confirmation,decisions}', (
            SELECT jsonb_agg(value ORDER BY nth DESC)
              FROM jsonb_array_elements(a.details::jsonb #> '{confirmation,decisions}')
                   WITH ORDINALITY AS e(value, nth)))))).*
  FROM audit_entry a WHERE a.details::text LIKE '%confirmation%'
"""
LIST = "'{confirmation,decisions}'"
SIGNED = NO_REVIEW | {
    "its signature does not match this decision": REVERSED,
    "it is not among the decisions that were confirmed together": FORGED.format(LIST + """, '["x"]'"""),
}
BY_CODE = NO_REVIEW | {
    "its code was not in force then": FORGED.format("'{confirmation,step}', to_jsonb(1)"),
    "its code has confirmed another decision": FORGED.format(
        LIST + """, details::jsonb #> '{confirmation,decisions}' || '["x"]'"""
    ),
}


@pytest.fixture
async def requested(customer_desk, customer_desks, funded, payroll_pocket):
    """Three requests by three members."""
    made = []
    for cents in (1_000_00, 2_000_00, 3_000_00):
        asker = await customer_desks(customer_desk.team.customer)
        made.append(await asker.post(REQUESTS, on_us(funded, cents, to=payroll_pocket)))
    return made


async def review(browser, requests):
    """Open the review of requests; return the path of its form, and its fields as a browser sends them."""
    path = f"{browser.home}/approvals/together"
    await browser.go(f"{browser.home}/approvals")
    picks = {f"pick.{each['id']}": "yes" for each in requests}
    browser.page = await browser.post(path, {"csrf": browser.csrf, **picks})
    return path, forms_of(browser.page.text)[path]


async def signed(browser, device, form):
    """Return a form that a passkey has signed."""
    listed = [(name.removeprefix("request."), text) for name, text in form.items() if name.startswith("request.")]
    options = first_match(r'data-signs="([^"]+)"', browser.page.text)
    answer = (await browser.ask(options, {"decision": "APPROVED", "requests": listed})).json()
    return {**form, "nonce": answer["nonce"], "credential": json.dumps(device.sign(answer["options"]))}


async def test_one_passkey_approves_many_and_leaves_a_proof_of_each(customer_desk, manager, console, requested):
    approver = await console(manager)
    device = await with_passkey(approver)
    path, form = await review(approver, requested)
    assert "Approve 3 transfers $6,000.00 to 1 payee, from 1 Pocket" in approver.text
    assert "Approve 3 transfers, $6,000.00 with a passkey" in approver.text
    assert re.search(r"3 transfers, \d+ bills sold \$6,000\.00", approver.text), approver.text
    approver.page = await approver.post(path, await signed(approver, device, form))
    assert (approver.page.status_code, "3 of 3 approved" in approver.text) == (200, True), approver.text
    assert {await status_of(customer_desk, each) for each in requested} == {("APPROVED", "COMPLETED")}
    await expect_damage_named(customer_desk.bank.pool, SIGNED)


async def test_a_request_that_has_changed_is_refused_and_the_others_are_approved(
    customer_desk, customer_desks, manager, console, funded, payroll_pocket, requested
):
    approver, own = await console(manager), await manager.post(REQUESTS, on_us(funded, 7_00, to=payroll_pocket))
    await approver.go(approver.home)
    assert "Approvals 3" in approver.text
    assert "$7.00" not in approver.text, "nobody approves what they requested"
    asker = await customer_desks(customer_desk.team.customer)
    changed = await asker.post(REQUESTS, on_us(funded, 5_00, to=payroll_pocket))
    code = await new_code(customer_desk.bank, manager.team.user_id)
    path, form = await review(approver, [*requested, changed, own])
    assert f"request.{own['id']}" not in form
    body = on_us(funded, 500_00, to=payroll_pocket, request_id=changed["id"])
    await asker.patch(path_of(changed), {"transfer": body["transfer"]})
    sent = {**form, "code": code, f"request.{own['id']}": own["content_hash"]}
    approver.page = await approver.post(path, sent)
    assert "3 of 5 approved" in approver.text
    assert "The request has changed." in approver.text
    assert "Self-approval is not allowed." in approver.text
    assert await status_of(customer_desk, changed) == ("PENDING", "NOT_STARTED")
    assert await status_of(customer_desk, own) == ("PENDING", "NOT_STARTED")
    assert {await status_of(customer_desk, each) for each in requested} == {("APPROVED", "COMPLETED")}
    path, form = await review(approver, [changed])
    approver.page = await approver.post(path, form | {"code": code})
    assert approver.page.status_code == 422
    assert re.search("This code has been used already. Your app shows (the next one in|another)", approver.text)
    assert "Correct the marked field" not in approver.text
    await expect_damage_named(customer_desk.bank.pool, BY_CODE)


async def test_a_signature_over_a_list_approves_no_other_list(customer_desk, manager, console, requested):
    approver = await console(manager)
    device = await with_passkey(approver)
    path, form = await review(approver, requested)
    names = [name for name in form if name.startswith("request.")]
    shown = approver.page
    for bent in (
        {names[0]: "0" * 64},
        {names[0]: None},
        {"nonce": "x"},
        {"credential": ""},
    ):
        approver.page = shown
        fields = {**await signed(approver, device, form), **bent}
        page = await approver.post(path, {name: text for name, text in fields.items() if text is not None})
        assert page.status_code == 422, bent
    backwards = {name: form[name] for name in names[::-1]}
    others = {name: text for name, text in (await signed(approver, device, form)).items() if name not in names}
    assert (await approver.post(path, {**others, **backwards})).status_code == 422
    assert {await status_of(customer_desk, each) for each in requested} == {("PENDING", "NOT_STARTED")}


async def test_a_review_of_nothing_returns_to_the_queue(customer_desk, manager, console, requested):
    viewer = await console(customer_desk, role="VIEWER")
    for browser, chosen in ((viewer, requested), (await console(manager), [])):
        await browser.go(f"{browser.home}/approvals")
        picks = {f"pick.{each['id']}": "yes" for each in chosen}
        page = await browser.post(f"{browser.home}/approvals/together", {"csrf": browser.csrf, **picks})
        assert page.headers["location"] == f"{browser.home}/approvals"
