"""Policies over HTTP: proposed, approved, and decided by wherever a member pays."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from tests.support.approvals import (
    CHANGES,
    REQUESTS,
    counterparty,
    decide,
    member_id_of,
    on_us,
    path_of,
    status_of,
    wire,
    wire_counterparty,
)

from billfold.approvals.execute_transfers import execute_request
from billfold.approvals.policies import backtest
from billfold.policies.rules import run_tests
from billfold.policies.types import PolicyDocument
from billfold.verify.runner import verify_bank

POLICY, BATCHES = "/api/v1/policy/", "/api/v1/batches/"
ALLOW = {"rules": [], "tests": []}


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


async def not_paid(desk, body, *, by):
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    problem = await desk.refused("POST", REQUESTS, body, status=422, code="policy-refused")
    assert problem["policy_rule"] == by, problem
    return problem


async def batch_of(desk, mode, rows):
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    return await desk.post(BATCHES, {"kind": "TRANSFERS", "mode": mode, "rows": rows})


async def events_of(desk):
    events = [each["event"] for each in (await desk.get("/api/v1/events/"))["items"]]
    return [(e["event_type"], e["payload"]["version"]) for e in events if e["event_type"].startswith("policy.")]


async def verified(bank):
    async with bank.pool.acquire() as conn:
        return (await verify_bank(conn, market=bank.market, vault=bank.vault)).findings


async def test_a_policy_is_in_force_once_another_member_approves_it_and_decides_about_payments(
    customer_desk, customer_desks, manager, world, funded, payroll_pocket
):
    bank, customer = customer_desk.bank, customer_desk.team.customer
    payee = await counterparty(world, customer, await world.pocket())
    linked = await wire_counterparty(customer_desk)
    await customer_desk.refused("GET", POLICY, status=404, code="not-found")
    rules = (
        refuse("no wires", "payment.rail == 'WIRE'", "Pay by on-us transfer."),
        refuse("new payees", "payment.direction == 'OUT' && payment.payee.age_days < 1 && payment.amount_cents > 200000"),
        refuse("per day", "used.today_cents + payment.amount_cents > 300000", "No more than $3,000.00 a day."),
        require("large", "payment.amount_cents >= 100000", 2),
        require("own money", "payment.direction == 'INTERNAL'", 1, "ADMIN"),
    )
    failing = {"name": "small", "payment": {"rail": "WIRE"}, "expect": {"decision": "ALLOW"}}
    wrong = {"document": document(*rules, tests=[failing])}
    answer = (await customer_desk.ask("PUT", POLICY, wrong, status=422)).json()
    (mistake,) = answer["detail"]
    assert (mistake["loc"], "REFUSE by the rule 'no wires'" in mistake["msg"]) == (["body", "document", "tests", 0], True)
    tried = await customer_desk.post(f"{POLICY}checks/", wrong, status=200)
    assert (tried["passed"], tried["items"][0]["rule"], tried["items"][0]["decision"]) == (False, "no wires", "REFUSE")

    passing = failing | {"expect": {"decision": "REFUSE", "rule": "no wires"}}
    made = await proposed(customer_desk, {"document": document(*rules, tests=[passing])})
    assert (made["status"], made["action"], made["change"]["replaces"]) == ("PENDING", "policy.update", 0)
    path = f"{CHANGES}{made['id']}/status/"
    await world.later(seconds=1)
    await customer_desk.refused("PATCH", path, {"status": "APPROVED"}, status=403, code="self-approval")
    await customer_desk.refused("GET", POLICY, status=404, code="not-found")
    for role in ("INITIATOR", "VIEWER", "APPROVER"):
        least = await customer_desks(customer, role=role)
        await least.refused("PUT", POLICY, {"document": ALLOW}, status=403, code="forbidden")
        await least.refused("POST", f"{POLICY}backtests/", {"document": ALLOW}, status=403, code="forbidden")
    waiting = await asked(customer_desk, on_us(funded, 1_00, to=payroll_pocket))
    old = await asked(customer_desk, wire(funded, 1_00, linked))
    await manager.patch(path, {"status": "APPROVED", "content_hash": made["content_hash"]})
    shown = await customer_desk.get(POLICY)
    assert (shown["version"], shown["authorization_request_id"]) == (1, made["id"])
    assert shown["document"] == made["change"]["document"]

    # What was requested before is decided by the policy of now.
    problem = await decide(manager, old, answers=422)
    assert (problem["code"], problem["policy_version"], problem["policy_rule"]) == ("policy-refused", 1, "no wires")
    assert (await decide(manager, waiting, answers=422))["policy_rule"] == "own money"
    assert await status_of(customer_desk, waiting) == ("PENDING", "NOT_STARTED")

    assert (await not_paid(customer_desk, wire(funded, 1_00, linked), by="no wires"))["detail"] == "Pay by on-us transfer."
    await not_paid(customer_desk, on_us(funded, 2_500_00, counterparty=payee), by="new payees")
    small = await asked(customer_desk, on_us(funded, 1_50, counterparty=payee))
    assert (small["required_approvals"], small["policy_version"], small["policy_rule"]) == (1, 1, None)
    preview = await customer_desk.post(f"{REQUESTS}preview/", on_us(funded, 1_000_00, counterparty=payee), status=200)
    assert (preview["approval"]["policy_rule"], preview["approval"]["required_approvals"]) == ("large", 2)
    cleo = await customer_desks(customer, role="ADMIN")
    large = await asked(customer_desk, on_us(funded, 1_000_00, counterparty=payee))
    assert (large["required_approvals"], large["policy_rule"]) == (2, "large")
    await decide(manager, large)
    assert (await decide(cleo, large))["transfer"]["execution_status"] == "COMPLETED"
    await not_paid(customer_desk, on_us(funded, 1_998_51, counterparty=payee), by="per day")
    own = await asked(customer_desk, on_us(funded, 1_00, to=payroll_pocket))
    refused = (await decide(manager, own, answers=403))["detail"]
    assert "own money" in refused
    assert (await decide(cleo, own))["transfer"]["execution_status"] == "COMPLETED"
    await world.later(seconds=1)
    assert await events_of(customer_desk) == [("policy.updated", 1), ("policy.proposed", 1)]
    assert not await verified(bank)


async def test_the_policy_of_now_rejects_what_was_approved_before_and_series_and_batches_obey_it(
    customer_desk, customer_desks, manager, world, funded, payroll_pocket
):
    bank, customer_id = customer_desk.bank, UUID(customer_desk.team.customer)
    payee = await counterparty(world, customer_desk.team.customer, await world.pocket())
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
    assert {each["approval"]["required_approvals"] for each in batches} == {1}
    await in_force(customer_desk, manager, refuse("cap", "payment.amount_cents > 3500"), require("more", "true", 2))
    for each in batches:
        body = {"status": "APPROVED", "content_hash": each["approval"]["content_hash"]}
        await customer_desk.ask("PATCH", f"{BATCHES}{each['id']}/status/", body, status=200)
    await world.later(seconds=1)
    for each in batches:
        shown = (await customer_desk.get(f"{BATCHES}{each['id']}/rows/"))["items"]
        assert [(r["state"], r["problem"]["code"]) for r in shown] == [
            ("FAILED", "policy-refused"),
            ("FAILED", "policy-refused"),
        ] or each["mode"] == "INDEPENDENT", shown
        assert {r["state"] for r in shown} == {"FAILED"}
    await world.until((await bank.now()) + timedelta(days=1))
    runs = (await customer_desk.get(REQUESTS, {"series_id": series["id"]}))["items"][::-1]
    assert [(r["status"], r["transfer"]["execution_status"], r["required_approvals"]) for r in runs] == [
        ("APPROVED", "COMPLETED", 0),
        ("PENDING", "NOT_STARTED", 2),
    ]
    await execute_request(bank, customer_id, UUID(late["id"]))
    failed = await customer_desk.get(path_of(late))
    assert (failed["transfer"]["reason"], failed["policy_version"], failed["policy_rule"]) == (
        "POLICY_REFUSED",
        2,
        "more",
    )
    assert not await verified(bank)
    await bank.pool.execute("UPDATE transfer_request SET policy_version = 9 WHERE request_id = $1", UUID(late["id"]))
    assert "its policy has no such version" in {each.message for each in await verified(bank)}
