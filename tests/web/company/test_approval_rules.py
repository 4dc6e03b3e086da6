"""Approval rules and policies in the console: proposed by an administrator, approved by another."""

import json
from types import SimpleNamespace
from typing import cast

from tests.approvals.test_policies import asked, document, require
from tests.support.approvals import RULES, counterparty, on_us
from tests.support.world import UNKNOWN
from tests.web.company.test_move_money import decide, with_passkey

from billfold.approvals.schemas import AuthorizationRequest
from billfold.web.company.approvals.policy_text import TEMPLATES
from billfold.web.company.approvals.requests import facts_of_change

LARGE = {
    "name": "Large",
    "action.TRANSFER": "yes",
    "type.WIRE": "yes",
    "min_amount_usdc": "10,000",
    "required_approvals": "1",
    "role.ADMIN": "yes",
    "role.APPROVER": "yes",
    "enabled": "yes",
}
POLICY = document(
    require("large payments", "payment.amount_cents >= 5000000", 2),
    tests=[{"name": "small", "payment": {"amount_cents": 1}, "expect": {"decision": "ALLOW"}}],
)
SENTENCE = "Wires of $10,000.00 or more need 1 approval from Admins or Approvers."


async def test_a_rule_is_reviewed_in_words_proposed_and_in_force_once_another_member_approves(
    customer_desk, other_customer, console
):
    maker, viewer = await console(customer_desk), await console(customer_desk, role="VIEWER")
    path = f"{maker.home}/approval-rules"
    await viewer.go(path)
    assert "All transfers need 1 approval from any other member" in viewer.text
    assert "Only one member may approve" in viewer.text
    assert "Propose a rule" not in viewer.text
    assert (await viewer.go(f"{path}/new")).status_code == 403
    assert (await viewer.post(f"{path}/new", LARGE | {"csrf": viewer.csrf, "step": "propose"})).status_code == 403
    approver = await console(customer_desk, role="ADMIN")
    device = await with_passkey(approver)
    await _warns_of_what_nobody_could_satisfy(maker, path)
    assert (await customer_desk.get(RULES))["items"] == []
    maker.page = await maker.post(f"{path}/new", LARGE | {"csrf": maker.csrf, "step": "review"})
    assert SENTENCE in maker.text
    assert "Could approve today" in maker.text
    proposed = await maker.send(f"{path}/new", **LARGE, step="propose")
    change = proposed.headers["location"].partition("?")[0]
    await maker.follow()
    assert "It is proposed. Nothing changes until another member approves it." in maker.text
    assert SENTENCE in maker.text
    await maker.go(path)
    assert f"New rule: Large {SENTENCE}" in maker.text
    assert (await decide(approver, device, change)).status_code == 303
    await viewer.go(path)
    assert f"{SENTENCE} Could approve today: AL Anna Lind" in viewer.text
    (rule,) = (await customer_desk.get(RULES))["items"]
    await _changes_and_removes(maker, f"{path}/{rule['id']}")
    stranger = await console(other_customer)
    assert (await stranger.go(f"{stranger.home}/approval-rules/{rule['id']}")).status_code == 404
    assert (await stranger.go(path)).status_code == 404


async def _warns_of_what_nobody_could_satisfy(maker, path):
    await maker.go(f"{path}/new")
    for wrong, said in (
        ({"min_amount_usdc": "a lot"}, {"min_amount_usdc": "The smallest amount must be dollars like 1,250.50."}),
        ({"required_approvals": "9"}, "required_approvals"),
        ({"order_0": "ADMIN", "order_1": UNKNOWN}, "approver_ids"),
        ({"action.TRANSFER": "", "name": " "}, "name"),
    ):
        page = await maker.post(f"{path}/new", LARGE | wrong | {"csrf": maker.csrf, "step": "review"})
        maker.page = page
        assert page.status_code == 422, wrong
        assert said in (maker.mistakes, *maker.mistakes), maker.mistakes
    form = LARGE | {"required_approvals": "3", "csrf": maker.csrf, "step": "review"}
    maker.page = await maker.post(f"{path}/new", form)
    assert "3 more are needed, and only one member may give one. Nobody approves their own request." in maker.text


async def _changes_and_removes(maker, path):
    await maker.go(path)
    ordered = LARGE | {"order_0": "ADMIN", "daily_cap_usdc": "50000", "type.WIRE": "yes", "type.USDC": "yes"}
    maker.page = await maker.post(path, ordered | {"csrf": maker.csrf, "step": "review"})
    assert "Wires and USDC transfers of $10,000.00 or more need 1 approval: first an Admin. Up to $50,000" in maker.text
    assert f"Now: {SENTENCE}" in maker.text
    await maker.send(path, change="remove")
    await maker.follow()
    assert "Approval rule removed: Large" in maker.text


async def test_a_policy_is_written_checked_on_past_payments_proposed_and_put_back(
    customer_desk, console, world, funded, payroll_pocket
):
    payee = await counterparty(world, customer_desk.team.customer, await world.pocket())
    maker, manager = await console(customer_desk), await console(customer_desk, role="MANAGER")
    await asked(customer_desk, on_us(funded, 60_000_00, counterparty=payee))
    await asked(customer_desk, on_us(funded, 10_00, to=payroll_pocket))
    device = await with_passkey(manager)
    path = f"{maker.home}/policy"
    await manager.go(path)
    assert "No policy yet" in manager.text
    assert (await manager.go(f"{path}/edit")).status_code == 403
    assert (await manager.post(f"{path}/edit", {"csrf": manager.csrf, "document": "{}"})).status_code == 403
    for name in TEMPLATES:
        await maker.go(f"{path}/edit?add={name}")
        await maker.send(f"{path}/edit", step="check")
        assert "All pass" in maker.text, name
    text = json.dumps(POLICY, indent=1)
    await _names_the_line_of_each_mistake(maker, path, text)
    sent = {"csrf": maker.csrf, "document": text.replace("\n", "\r\n")}
    maker.page = await maker.post(f"{path}/edit", sent | {"step": "check"})
    for said in (
        "All pass",
        "1 of them would have been decided otherwise",
        "2 approvals by large payments $60,000.00",
        "2 more are needed, and only one member may give one. Its payments will be refused.",
    ):
        assert said in maker.text
    proposed = await maker.send(f"{path}/edit", document=text, step="propose")
    assert (await decide(manager, device, proposed.headers["location"].partition("?")[0])).status_code == 303
    await manager.go(path)
    assert "large payments Needs 2 approvals payment.amount_cents >= 5000000" in manager.text
    await maker.go(f"{path}/edit")
    second = await maker.send(f"{path}/edit", document='{"rules": []}', step="propose")
    await decide(manager, device, second.headers["location"].partition("?")[0])
    await _puts_back(maker, path)


async def _names_the_line_of_each_mistake(maker, path, text):
    for before, after, line, said in (
        ("[\n", "[,\n", 2, "Not JSON: Expecting value"),
        ("amount_cents >=", "amout >=", 5, "Rule 'large payments': when"),
        ('"REQUIRE"', '"MAYBE"', 7, "Rule 'large payments': then.decision must be one of REFUSE, REQUIRE"),
        ('"approvals": 2', '"approvals": "two"', 8, "Rule 'large payments': then.approvals"),
        ('"ALLOW"', '"REFUSE"', 14, "Test 'small': 'small' fails: the policy decides ALLOW"),
    ):
        wrong = text.replace(before, after, 1)
        step = "propose" if "REFUSE" in wrong else "check"
        maker.page = await maker.post(f"{path}/edit", {"csrf": maker.csrf, "document": wrong, "step": step})
        assert maker.page.status_code == 422
        assert f"Line {line} {said}" in maker.text, maker.text


async def _puts_back(maker, path):
    await maker.go(f"{path}/versions/1")
    await maker.send(f"{path}/versions/1")
    await maker.follow()
    assert "Rule large payments" in maker.text
    for version in ("9", "x", "2" * 50):
        assert (await maker.go(f"{path}/versions/{version}")).status_code == 404


def test_a_changed_role_is_shown_beside_the_role_of_now():
    change = {"role": "APPROVER", "status": None, "before": {"role": "MANAGER", "status": "ACTIVE"}}
    request = SimpleNamespace(action="member.update", change=change)
    assert facts_of_change(cast("AuthorizationRequest", request), {"role": "MANAGER"}) == [
        ("Role", "Manager", "Approver")
    ]
