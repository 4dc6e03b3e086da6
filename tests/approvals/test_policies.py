"""Policies over HTTP: proposed, approved, and decided by wherever a member pays."""

import asyncio
import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.architecture.pages import text_of as text_of_page
from tests.payments.on_us.test_reversals import back, paid
from tests.support.approvals import (
    CHANGES,
    REQUESTS,
    counterparty,
    decide,
    on_us,
    path_of,
    status_of,
    wire,
    wire_counterparty,
)
from tests.support.cases import in_one_bank
from tests.support.whole_bank import with_limits

from billfold.approvals.execute_transfers import execute_request
from billfold.approvals.policies import backtest
from billfold.approvals.rules import text_of
from billfold.approvals.store.policy_facts import local_time
from billfold.data_keys.keys import DataKeys
from billfold.policies.expressions import facts_of
from billfold.policies.rules import compile_policy, run_tests
from billfold.policies.types import PaymentFacts, PolicyDocument, Used
from billfold.verify.runner import verify_bank

DAMAGES = {
    "UPDATE transfer_request SET policy_version = 9 WHERE policy_version = 2": "its policy has no such version",
    "UPDATE authorization_request SET content = jsonb_set(content::jsonb, '{change,document,rules}', '[]')::json": (
        "it is not the document that was approved"
    ),
}
POLICY, BATCHES = "/api/v1/policy/", "/api/v1/batches/"
ALLOW: dict[str, list[Any]] = {"rules": [], "tests": []}


def rule(name, when, **then):
    return {"name": name, "when": when, "then": then}


def refuse(name, when, reason="Not allowed."):
    return rule(name, when, decision="REFUSE", reason=reason)


def require(name, when, approvals=1, *roles):
    return rule(name, when, decision="REQUIRE", approvals=approvals, roles=list(roles))


def document(*rules, tests=()):
    return {"rules": list(rules), "tests": list(tests)}


async def proposed(desk, body):
    return (await desk.ask("PUT", POLICY, body, status=202)).json()


async def in_force(desk, approver, *rules, tests=()):
    """Propose a policy of these rules and approve it; return its version."""
    made = await proposed(desk, {"document": document(*rules, tests=tests)})
    path = f"{CHANGES}{made['id']}/status/"
    assert (await approver.patch(path, {"status": "APPROVED"}))["applied_at"] is not None
    return (await desk.get(POLICY))["version"]


async def asked(desk, body, **options):
    """Return a request that was just made, whatever was requested within the same second."""
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    return await desk.post(REQUESTS, body, **options)


async def not_paid(desk, body, *, by, code="policy-refused", status=422):
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    problem = await desk.refused("POST", REQUESTS, body, status=status, code=code)
    assert problem.get("policy_rule") == by, problem
    return problem


async def batch_of(desk, mode, rows):
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    return await desk.post(BATCHES, {"kind": "TRANSFERS", "mode": mode, "rows": rows})


async def events_of(desk):
    events = [each["event"] for each in (await desk.get("/api/v1/events/"))["items"]]
    return [(e["event_type"], e["payload"]["version"]) for e in events if e["event_type"].startswith("policy.")]


RULES = (
    refuse("no wires", "payment.rail == 'WIRE'", "Pay by on-us transfer."),
    refuse("new payees", "payment.direction == 'OUT' && payment.payee.age_days < 1 && payment.amount_cents > 200000"),
    refuse("per day", "used.today_cents + payment.amount_cents > 300000", "No more than $3,000.00 a day."),
    require("large", "payment.amount_cents >= 100000", 2),
    require("own money", "payment.direction == 'INTERNAL'", 1, "ADMIN"),
)


async def test_a_policy_is_in_force_once_its_tests_pass_and_another_member_approves_it(
    customer_desk, customer_desks, manager, world
):
    await customer_desk.refused("GET", POLICY, status=404, code="not-found")
    failing = {"name": "small", "payment": {"rail": "WIRE"}, "expect": {"decision": "ALLOW"}}
    wrong = {"document": document(*RULES, tests=[failing, failing | {"name": "again"}])}
    answer = (await customer_desk.ask("PUT", POLICY, wrong, status=422)).json()
    assert [each["loc"] for each in answer["detail"]] == [["body", "document", "tests", n] for n in (0, 1)]
    assert "'small' fails: the policy decides REFUSE by the rule 'no wires'" in answer["detail"][0]["msg"]
    tried = await customer_desk.post(f"{POLICY}checks/", wrong, status=200)
    result = tried["items"][0]
    assert (tried["passed"], result["rule"], result["decision"]) == (False, "no wires", "REFUSE")
    passing = failing | {"expect": {"decision": "REFUSE", "rule": "no wires"}}
    made = await proposed(customer_desk, {"document": document(*RULES, tests=[passing])})
    assert (made["status"], made["action"], made["change"]["replaces"]) == ("PENDING", "policy.update", 0)
    path = f"{CHANGES}{made['id']}/status/"
    await world.later(seconds=1)
    await customer_desk.refused("PATCH", path, {"status": "APPROVED"}, status=403, code="self-approval")
    await customer_desk.refused("GET", POLICY, status=404, code="not-found")
    for role in ("INITIATOR", "VIEWER", "APPROVER"):
        least = await customer_desks(customer_desk.team.customer, role=role)
        await least.refused("PUT", POLICY, {"document": ALLOW}, status=403, code="forbidden")
        await least.refused("POST", f"{POLICY}backtests/", {"document": ALLOW}, status=403, code="forbidden")
    await manager.patch(path, {"status": "APPROVED", "content_hash": made["content_hash"]})
    shown = await customer_desk.get(POLICY)
    assert (shown["version"], shown["authorization_request_id"]) == (1, made["id"])
    assert shown["document"] == made["change"]["document"]
    await world.later(seconds=1)
    assert await events_of(customer_desk) == [("policy.updated", 1), ("policy.proposed", 1)]


async def test_a_policy_decides_about_payments_that_are_requested_and_that_wait(
    customer_desk, customer_desks, manager, world, funded, payroll_pocket
):
    payee = await counterparty(world, customer_desk.team.customer, await world.pocket())
    linked = await wire_counterparty(customer_desk)
    waiting = await asked(customer_desk, on_us(funded, 1_00, to=payroll_pocket))
    old = await asked(customer_desk, wire(funded, 1_00, linked))
    await in_force(customer_desk, manager, *RULES)
    problem = await decide(manager, old, answers=422)
    assert (problem["code"], problem["policy_version"], problem["policy_rule"]) == ("policy-refused", 1, "no wires")
    assert (await decide(manager, waiting, answers=422))["policy_rule"] == "own money"
    assert await status_of(customer_desk, waiting) == ("PENDING", "NOT_STARTED")
    refused = await not_paid(customer_desk, wire(funded, 1_00, linked), by="no wires")
    assert refused["detail"] == "Pay by on-us transfer."
    await not_paid(customer_desk, on_us(funded, 2_500_00, counterparty=payee), by="new payees")
    small = await asked(customer_desk, on_us(funded, 1_50, counterparty=payee))
    assert (small["required_approvals"], small["policy_version"], small["policy_rule"]) == (1, 1, None)
    body = on_us(funded, 1_000_00, counterparty=payee)
    await not_paid(customer_desk, body, by=None, code="approval-impossible", status=409)
    cleo = await customer_desks(customer_desk.team.customer, role="ADMIN")
    preview = await customer_desk.post(f"{REQUESTS}preview/", body, status=200)
    assert (preview["approval"]["policy_rule"], preview["approval"]["required_approvals"]) == ("large", 2)
    large = await asked(customer_desk, body)
    assert (large["required_approvals"], large["policy_rule"]) == (2, "large")
    told = (await customer_desk.get(f"{path_of(large)}explain/"))["explanation"]["parts"][0]
    assert "the rule 'large' in version 1 of the policy" in str(told["words"])
    await decide(manager, large)
    assert (await decide(cleo, large))["transfer"]["execution_status"] == "COMPLETED"
    await not_paid(customer_desk, on_us(funded, 1_998_51, counterparty=payee), by="per day")
    own = await asked(customer_desk, on_us(funded, 1_00, to=payroll_pocket))
    assert "own money" in (await decide(manager, own, answers=403))["detail"]
    assert (await decide(cleo, own))["transfer"]["execution_status"] == "COMPLETED"


async def test_approvals_under_an_earlier_policy_are_not_enough_for_a_stricter_one(
    customer_desk, customer_desks, manager, world, funded
):
    bank, customer_id = customer_desk.bank, UUID(customer_desk.team.customer)
    payee = await counterparty(world, customer_desk.team.customer, pocket := await world.pocket())
    await in_force(customer_desk, manager, require("all", "true", 1, "ADMIN"))
    cleo = await customer_desks(customer_desk.team.customer, role="ADMIN")
    daily = {"start_on": "2025-06-03", "rule": "FREQ=DAILY;COUNT=4"}
    series = await asked(customer_desk, on_us(funded, 10_00, counterparty=payee) | {"schedule": daily})
    await decide(cleo, series)
    settings, bank.settings = bank.settings, replace(bank.settings, execute_transfers=False)
    late = await asked(customer_desk, on_us(funded, 20_00, counterparty=payee))
    await decide(cleo, late)
    bank.settings = settings
    await world.until((await bank.now()).replace(hour=16) + timedelta(days=1))
    row = {"type": "PEER_TO_PEER", "from_pocket_id": funded.id, "counterparty_id": payee}
    rows = [row | {"amount_usdc": 30_00}, row | {"amount_usdc": 40_00}]
    batches = [await batch_of(cleo, mode, rows) for mode in ("ATOMIC", "INDEPENDENT")]
    await in_force(customer_desk, manager, refuse("cap", "payment.amount_cents > 3500"), require("more", "true", 2))
    for each in batches:
        body = {"status": "APPROVED", "content_hash": each["approval"]["content_hash"]}
        await customer_desk.ask("PATCH", f"{BATCHES}{each['id']}/status/", body, status=200)
    await world.until((await bank.now()) + timedelta(days=1))
    for each in batches:
        shown = (await customer_desk.get(f"{BATCHES}{each['id']}/rows/"))["items"]
        assert {r["state"] for r in shown} == {"FAILED"}
    runs = (await customer_desk.get(REQUESTS, {"series_id": series["id"]}))["items"][::-1]
    assert [(r["status"], r["transfer"]["execution_status"], r["required_approvals"]) for r in runs] == [
        ("APPROVED", "COMPLETED", 0),
        ("PENDING", "NOT_STARTED", 2),
    ]
    await execute_request(bank, customer_id, UUID(late["id"]))
    failed = await customer_desk.get(path_of(late))
    decided = failed["transfer"]["reason"], failed["policy_version"], failed["policy_rule"]
    assert decided == ("POLICY_REFUSED", 2, "more")
    assert 10_00 <= await world.value(pocket) < 11_00
    await _verify_reports_damage(bank)


async def _verify_reports_damage(bank):
    async with bank.pool.acquire() as conn:
        for damage, message in DAMAGES.items():
            transaction = conn.transaction(isolation="repeatable_read")
            await transaction.start()
            await conn.execute(damage)
            report = await verify_bank(conn, market=bank.market, vault=bank.vault)
            await transaction.rollback()
            assert message in {each.message for each in report.findings}, message


async def check_backtest_limits(desk, colleague, body):
    """Check that four payments, in parts of two, count three times, for the member and for the customer."""
    await desk.bank.pool.execute("DELETE FROM usage_count WHERE kind LIKE 'backtests.%'")
    for member, limit, most in ((desk, "backtests.member", 5), (colleague, "backtests.customer", 8)):
        with_limits(desk.bank, {limit: most})
        await member.post(f"{POLICY}backtests/", body, status=200)
        answer = await member.ask("POST", f"{POLICY}backtests/", body, status=429)
        assert (answer.json()["code"], answer.json()["limit"]) == ("usage-limit-reached", limit)
        assert 0 < int(answer.headers["retry-after"]) <= 86_401


async def test_a_backtest_names_the_payments_that_a_policy_would_have_decided_otherwise(
    customer_desk, customer_desks, manager, world, funded, monkeypatch
):
    monkeypatch.setattr(backtest, "_PART", 2)
    payee = await counterparty(world, customer_desk.team.customer, await world.pocket())
    made = []
    for cents in (100_00, 200_00, 300_00, 50_00):
        made.append((await asked(customer_desk, on_us(funded, cents, counterparty=payee)))["id"])
        if cents == 300_00:
            await world.until((await customer_desk.bank.now()) + timedelta(days=1))
    rules = (
        refuse("per day", "used.today_cents + payment.amount_cents > 55000", "Too much in a day."),
        require("from the second on", "used.payee_month_cents >= 10000 && payment.at.weekday == 'MON'", 2),
    )
    body = {"document": document(*rules)}
    found = await customer_desk.post(f"{POLICY}backtests/", body, status=200)
    assert (found["month"], found["payments"], found["changed"], found["complete"]) == ("2025-06-01", 4, 2, True)
    assert [
        (each["transfer_request_id"], each["tried"]["decision"], each["tried"]["rule"]) for each in found["items"]
    ] == [
        (made[1], "REQUIRE", "from the second on"),
        (made[2], "REFUSE", "per day"),
    ]
    assert found["items"][0]["in_force"]["decision"] == "ALLOW"
    assert found["previous_month"] == "2025-05-01"
    await in_force(customer_desk, manager, *rules)
    same = await customer_desk.post(f"{POLICY}backtests/", body | {"month": "2025-06-20"}, status=200)
    assert (same["payments"], same["changed"]) == (4, 0)
    monkeypatch.setattr(backtest, "_CHARS_MAX", 3 * (1 + 2 * sum(len(each["when"]) for each in rules)))
    long = await customer_desk.post(f"{POLICY}backtests/", body, status=200)
    assert (long["payments"], long["complete"]) == (3, False)
    before = await customer_desk.post(f"{POLICY}backtests/", body | {"month": "2024-06-01"}, status=200)
    assert (before["payments"], before["previous_month"]) == (0, None)
    await customer_desk.invalid("POST", f"{POLICY}backtests/", body | {"month": "2024-05-01"}, loc="body.month")
    await check_backtest_limits(customer_desk, await customer_desks(customer_desk.team.customer, role="ADMIN"), body)


async def test_a_policy_that_refuses_everything_is_replaced_and_earlier_versions_are_put_back(
    customer_desk, customer_desks, manager, other_customer, world, funded, payroll_pocket, monkeypatch
):
    nothing = refuse("nothing", "true"), require("everybody", "true", 5, "ADMIN")
    assert await in_force(customer_desk, manager, require("first", "payment.amount_cents > 1")) == 1
    assert await in_force(customer_desk, manager, *nothing) == 2
    await not_paid(customer_desk, on_us(funded, 1, to=payroll_pocket), by="nothing")
    both = [await proposed(customer_desk, {"restore_version": 1}), await proposed(customer_desk, {"document": ALLOW})]
    first, second = (f"{CHANGES}{each['id']}/status/" for each in both)
    await manager.patch(first, {"status": "APPROVED"})
    await manager.refused("PATCH", second, {"status": "APPROVED"}, status=409, code="content-changed")
    shown = await customer_desk.pages(f"{POLICY}versions/")
    assert [each["version"] for each in shown] == [3, 2, 1]
    assert shown[0]["content_hash"] == shown[2]["content_hash"] != shown[1]["content_hash"]
    assert (await customer_desk.get(f"{POLICY}versions/2/"))["document"]["rules"][0]["name"] == "nothing"
    for version in (4, 0, 2**40):
        await customer_desk.refused("GET", f"{POLICY}versions/{version}/", status=404, code="not-found")
    await customer_desk.refused("PUT", POLICY, {"restore_version": 9}, status=404, code="not-found")
    await other_customer.refused("GET", f"{POLICY}versions/1/", status=404, code="not-found")
    await customer_desk.invalid("PUT", POLICY, {}, loc="body")
    await customer_desk.invalid("PUT", POLICY, {"document": ALLOW, "restore_version": 1}, loc="body")
    assert (await asked(customer_desk, on_us(funded, 2, to=payroll_pocket)))["policy_version"] == 3
    await _decides_at_once_for_more_than_the_pool_has_connections(customer_desk, funded, monkeypatch)


async def _decides_at_once_for_more_than_the_pool_has_connections(desk, funded, monkeypatch):
    named = await desk.pocket(external_id="ops")
    monkeypatch.setattr(desk.bank.ports[DataKeys], "_life_seconds", 0)  # each decision reads the key of the note
    body = on_us(funded, 1, to=named)
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    previews = (desk.post(f"{REQUESTS}preview/", body, status=200) for _ in range(desk.bank.pool.get_max_size() * 2))
    assert len(await asyncio.wait_for(asyncio.gather(*previews), 30)) >= 2


async def test_a_payment_back_to_another_customer_counts_and_is_decided_like_other_payments(world, customer_desks):
    payer, payee = await world.funded(10_000_00), await world.funded(5_000_00)
    made = await paid(world, payer, payee, 1_000_00)
    own = await paid(world, payee, second := await world.pocket(payee.customer), 200_00)
    admin, other = [await customer_desks(payee.customer, role="ADMIN") for _ in range(2)]
    large = await paid(world, payer, payee, 400_00)
    payer_desk = await customer_desks(payer.customer)

    async def ask_back(transfer_id, cents):
        path = f"/api/v1/transfers/on-us/{transfer_id}/reversal-requests/"
        await payer_desk.post(path, {"amount_usdc": cents})

    await ask_back(made, 100_00)
    waiting, executed = [await asked(admin, back(made, payee, 100_00)) for _ in range(2)]
    await decide(other, executed)
    await ask_back(made, 100_00)
    await ask_back(large, 300_01)
    rules = (
        refuse("day", "used.today_cents + payment.amount_cents > 50000"),
        refuse("payer", "used.payee_month_cents > 25000"),
        require("back", "payment.direction == 'OUT' && payment.payee.kind == 'reversal'", 1, "ADMIN"),
        refuse("internal", "payment.direction == 'INTERNAL' && payment.payee.kind == 'pocket' && used.today_count > 3"),
    )
    tried = await admin.post(f"{POLICY}backtests/", {"document": document(*rules)}, status=200)
    assert [each["tried"]["rule"] for each in tried["items"]] == ["back", "back"]
    await in_force(admin, other, *rules)
    await not_paid(admin, back(large, payee, 300_01), by="day")
    within = await asked(admin, back(own, second, 50_00))
    assert within["policy_rule"] is None
    shown = await admin.post(f"{REQUESTS}preview/", back(made, payee, 100_00), status=200)
    assert shown["approval"]["policy_rule"] == "back"
    assert (await decide(other, waiting))["transfer"]["execution_status"] == "COMPLETED"
    await ask_back(made, 60_00)
    assert (await asked(admin, back(made, payee, 60_00)))["policy_rule"] == "back"
    await not_paid(admin, back(made, payee, 60_00), by="payer")


@in_one_bank(
    ("when", "loc"),
    [
        ("payment.amount_cents", "rules.0.when"),
        ("payment.amount > 1", "rules.0.when"),
        ("payment.amount_cents > 'x'", "rules.0.when"),
        ("has(payment.payee.name)", "rules.0.when"),
        ("[1, 2].all(x, x > 0)", "rules.0.when"),
        ("payment.payee.name.matches('(a+)+$')", "rules.0.when"),
        ("timestamp('2025-06-02T13:00:00Z').getHours('America/New_York') > 1", "rules.0.when"),
        ("(" * 200 + "true" + ")" * 200, "rules.0.when"),
        ("dyn(true)", "rules.0.when"),
        ("true" + " " * 500, "rules.0.when"),
        ("", "rules.0.when"),
    ],
)
async def test_a_condition_that_may_not_end_or_is_not_a_condition_is_refused(customer_desk, when, loc):
    await customer_desk.invalid("PUT", POLICY, {"document": document(refuse("a", when))}, loc=f"body.document.{loc}")


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("payment.amount_cents * 9223372036854775807 > 1", "integer overflow"),
        ("payment.amount_cents / used.month_cents > 1", "divide by zero"),
        ("int(payment.payee.name) > 1", "cannot be decided"),
        ("payment.initiator.roles[7] == 'ADMIN'", "cannot be decided"),
    ],
)
def test_a_condition_without_a_result_refuses_the_payment_and_says_why(when, reason):
    policy = msgspec.convert(document(refuse("broken", when)), PolicyDocument)
    found = compile_policy(text_of(policy)).decide(facts_of(PaymentFacts(amount_cents=2), Used()))
    assert (found.decision, found.rule) == ("REFUSE", "broken")
    assert reason in (found.reason or "")


@pytest.mark.parametrize(
    ("at", "local"),
    [
        ("2026-03-08T06:59:00+00:00", ("2026-03-08", "SUN", 1, 59)),
        ("2026-03-08T07:00:00+00:00", ("2026-03-08", "SUN", 3, 0)),
        ("2026-11-01T05:30:00+00:00", ("2026-11-01", "SUN", 1, 30)),
        ("2026-11-01T06:30:00+00:00", ("2026-11-01", "SUN", 1, 30)),
        ("2026-01-01T03:00:00+00:00", ("2025-12-31", "WED", 22, 0)),
    ],
)
def test_the_time_of_a_payment_is_that_of_clocks_in_new_york(at, local):
    found = local_time(datetime.fromisoformat(at))
    assert (found.date, found.weekday, found.hour, found.minute) == local


def test_the_tests_of_the_documented_policy_pass():
    (block,) = re.findall(r"```json\n(.*?)```", text_of_page("docs/guides/policies.md"), re.DOTALL)
    policy = msgspec.json.decode(block, type=PolicyDocument)
    results = run_tests(policy, text_of(policy))
    assert len(results) >= 5
    assert [each.name for each in results if not each.passed] == []
