"""Transfer requests: asked for by one, decided by another, carried out once."""

import asyncio

import pytest
from tests.support.approvals import (
    REQUESTS,
    ask_for_two,
    counterparty,
    decide,
    member_id_of,
    on_us,
    path_of,
    refused,
    status_of,
    wire,
    wire_counterparty,
)

from billfold.approvals.types import REPORT_TRANSFER_REQUEST
from billfold.platform import ids


async def test_a_new_transfer_request_is_pending_and_moves_no_money(customer_desk, manager, world, funded):
    payee = await world.pocket()
    linked = await counterparty(world, customer_desk.team.customer, payee)
    body = on_us(funded, 1_000_00, counterparty=linked, description="Rent")
    made = await customer_desk.post(REQUESTS, body)
    assert made["id"] == body["transfer"]["id"]
    assert made["status"] == "PENDING"
    assert made["required_approvals"] == 1
    assert made["requested_by"]["member_id"] == await member_id_of(customer_desk)
    shown = made["transfer"]
    assert shown["execution_status"] == "NOT_STARTED"
    assert shown["amount"] == {"value": 1_000_00, "currency": "USD", "formatted": "$1,000.00"}
    assert shown["counterparty_name"] == "Northwind"
    assert shown["details"] == body["transfer"]["details"]
    assert await world.value(payee) == 0


async def test_an_approved_request_shows_its_review_and_transaction(customer_desk, manager, world, funded):
    payee = await world.pocket()
    linked = await counterparty(world, customer_desk.team.customer, payee)
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_000_00, counterparty=linked))
    done = await decide(manager, made, comment="As agreed")
    assert done["status"] == "APPROVED"
    assert done["transfer"]["execution_status"] == "COMPLETED"
    assert done["transfer"]["reason"] is None
    (review,) = done["reviews"]
    assert (review["decision"], review["comment"], review["is_void"]) == ("APPROVED", "As agreed", False)
    assert review["reviewer"]["member_id"] == await member_id_of(manager)
    (transaction,) = done["transfer"]["transaction_ids"]
    booked = await customer_desk.get(f"/api/v2/transactions/{transaction}/")
    assert (booked["on_us_transfer_id"], booked["amount"]["value"]) == (made["id"], 1_000_00)
    moved = await world.get(f"/api/v1/transfers/on-us/{made['id']}/")
    assert (moved["status"], moved["transfer"]["amount"]["value"]) == ("COMPLETED", 1_000_00)
    events = [each["event"] for each in (await customer_desk.get("/api/v1/events/"))["items"]]
    kinds = [e["event_type"] for e in events if e["payload"].get("on_us_id") == made["id"]]
    assert sorted(kinds) == ["transfers.on-us.processing", "transfers.on-us.success"]
    jobs = await customer_desk.bank.pool.fetch("SELECT kind FROM scheduled_job")
    assert [each["kind"] for each in jobs] == [REPORT_TRANSFER_REQUEST]


async def test_an_approved_security_transfer_moves_bills_in_kind_between_own_pockets(
    customer_desk, manager, funded, payroll_pocket
):
    body = on_us(funded, 2_000_00, to=payroll_pocket)
    body["transfer"]["details"]["transfer_type"] = "SECURITY_TRANSFER"
    made = await customer_desk.post(REQUESTS, body)
    assert made["transfer"]["details"]["transfer_type"] == "SECURITY_TRANSFER"
    assert (await decide(manager, made))["transfer"]["execution_status"] == "COMPLETED"
    trades = (await customer_desk.get("/api/v2/trades/", {"pocket_id[]": payroll_pocket.id}))["items"]
    assert trades[0]["activity"] == "SAME_ENTITY_SECURITY_TRANSFER"


async def test_self_approval_is_refused(customer_desk, manager, funded, payroll_pocket):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    for status in ("APPROVED", "DENIED"):
        await refused(customer_desk, made, "self-approval", answers=403, status=status)
    assert await status_of(customer_desk, made) == ("PENDING", "NOT_STARTED")


async def test_only_named_reviewers_with_the_approve_permission_may_decide(
    customer_desk, customer_desks, funded, payroll_pocket
):
    named = await customer_desks(customer_desk.team.customer, role="APPROVER")
    body = on_us(funded, 1_00, to=payroll_pocket, reviewers=[await member_id_of(named)])
    made = await customer_desk.post(REQUESTS, body)
    assert [each["role"] for each in made["reviewers"]] == ["APPROVER"]
    for role, code in (("MANAGER", "not-a-reviewer"), ("INITIATOR", "forbidden")):
        someone = await customer_desks(customer_desk.team.customer, role=role)
        await refused(someone, made, code, answers=403)
    assert (await decide(named, made))["status"] == "APPROVED"


async def test_reviewers_must_be_other_members_of_the_team_with_the_approve_permission(
    customer_desk, customer_desks, manager, other_customer, funded, payroll_pocket
):
    initiator = await customer_desks(customer_desk.team.customer, role="INITIATOR")
    told = await customer_desk.get(f"{REQUESTS}reviewers/")
    assert [each["member_id"] for each in told["items"]] == [await member_id_of(manager)]
    wrong = [await member_id_of(each) for each in (customer_desk, initiator, other_customer)]
    body = on_us(funded, 1_00, to=payroll_pocket, reviewers=[await member_id_of(manager), *wrong])
    answer = await customer_desk.ask("POST", REQUESTS, body, status=422)
    places = [each["loc"] for each in answer.json()["detail"]]
    assert places == [["body", "reviewers", place] for place in (1, 2, 3)]


async def test_a_denied_transfer_request_cannot_be_approved(customer_desk, manager, funded, payroll_pocket):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    assert (await decide(manager, made, "DENIED"))["status"] == "DENIED"
    await refused(manager, made, "transfer-request-not-pending", answers=409)
    await customer_desk.refused("DELETE", path_of(made), status=409, code="transfer-request-not-pending")
    assert await status_of(customer_desk, made) == ("DENIED", "NOT_STARTED")


async def test_only_the_requester_or_an_administrator_may_cancel_a_request(
    customer_desk, customer_desks, manager, funded, payroll_pocket
):
    for who, made_by in ((customer_desk, customer_desk), (customer_desk, manager)):
        made = await made_by.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
        someone = await customer_desks(customer_desk.team.customer, role="INITIATOR")
        await someone.refused("DELETE", path_of(made), status=403, code="forbidden")
        await who.ask("DELETE", path_of(made), status=204)
        assert await status_of(customer_desk, made) == ("CANCELLED", "NOT_STARTED")
        await refused(
            manager if made_by is customer_desk else customer_desk, made, "transfer-request-not-pending", answers=409
        )


async def test_a_transfer_request_expires_after_seven_days(customer_desk, manager, world, funded, payroll_pocket):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    await world.later(days=7, seconds=-1)
    assert (await status_of(customer_desk, made))[0] == "PENDING"
    await world.later(seconds=1)
    assert (await status_of(customer_desk, made))[0] == "EXPIRED"
    await refused(manager, made, "transfer-request-not-pending", answers=409)
    entries = (await customer_desk.get("/api/v1/team/audit-logs/"))["items"]
    assert "transfer_request.expired" in [each["action"] for each in entries]


async def test_approving_a_request_over_the_pocket_balance_is_refused(
    customer_desk, manager, world, funded, payroll_pocket
):
    made = await customer_desk.post(REQUESTS, on_us(funded, 10_000_00, to=payroll_pocket))
    await refused(manager, made, "insufficient-funds", answers=422)
    shown = await customer_desk.get(path_of(made))
    assert (shown["status"], shown["reviews"]) == ("PENDING", [])
    await world.wire(funded, 2_000_00)
    assert (await decide(manager, made))["transfer"]["execution_status"] == "COMPLETED"


async def test_approving_a_payment_to_an_unlinked_counterparty_is_refused(customer_desk, manager, world, funded):
    customer = customer_desk.team.customer
    linked = await counterparty(world, customer, await world.pocket())
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, counterparty=linked))
    path = f"/api/v2/customers/{customer}/counterparties/{linked}/"
    await world.patch(path, {"status": "UNLINKED"})
    await refused(manager, made, "counterparty-not-verified", answers=422)
    body = on_us(funded, 1_00, counterparty=linked)
    await manager.refused("POST", REQUESTS, body, status=422, code="counterparty-not-verified")


async def test_screening_rejects_an_approved_wire(customer_desk, manager, funded):
    to = await wire_counterparty(customer_desk)
    made = await customer_desk.post(REQUESTS, wire(funded, 1_02, to))
    done = await decide(manager, made)
    assert done["status"] == "APPROVED"
    shown = done["transfer"]
    assert (shown["execution_status"], shown["reason"]) == ("REJECTED", "SANCTION_SCREEN_FAILED")
    assert shown["transaction_ids"] == []


async def test_changing_a_request_voids_its_approvals(customer_desk, customer_desks, funded, payroll_pocket):
    reviewers = [await customer_desks(customer_desk.team.customer, role="APPROVER") for _ in range(2)]
    named = [await member_id_of(each) for each in reviewers]
    body = on_us(funded, 1_00, to=payroll_pocket, reviewers=named)
    made = await customer_desk.post(REQUESTS, body)
    await ask_for_two(customer_desk)
    first = await decide(reviewers[0], made, content_hash=made["content_hash"])
    assert (first["status"], len(first["reviews"])) == ("PENDING", 1)
    await refused(reviewers[0], made, "already-reviewed", answers=409, status="DENIED")

    await reviewers[1].refused("PATCH", path_of(made), {"reviewers": []}, status=403, code="forbidden")
    dearer = body["transfer"] | {"amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 5_000_00}}
    changed = await customer_desk.patch(path_of(made), {"transfer": dearer})
    assert changed["transfer"]["amount"]["value"] == 5_000_00
    assert changed["content_hash"] != made["content_hash"]
    await customer_desk.bank.pool.execute("UPDATE review SET voided_at = NULL")
    assert [each["is_void"] for each in (await customer_desk.get(path_of(made)))["reviews"]] == [True]
    await refused(reviewers[1], made, "content-changed", answers=409, content_hash=made["content_hash"])
    assert (await decide(reviewers[0], made, content_hash=changed["content_hash"]))["status"] == "APPROVED"


async def test_a_role_change_voids_the_reviews_of_the_member(customer_desk, customer_desks, funded, payroll_pocket):
    reviewers = [await customer_desks(customer_desk.team.customer, role="APPROVER") for _ in range(3)]
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    await ask_for_two(customer_desk)
    await decide(reviewers[0], made)
    await customer_desk.ask("PUT", f"/api/v1/team/{await member_id_of(reviewers[0])}/", {"role": "MANAGER"}, status=200)
    shown = await customer_desk.get(path_of(made))
    assert [each["is_void"] for each in shown["reviews"]] == [True]
    assert (await decide(reviewers[1], made))["status"] == "PENDING"
    await customer_desk.ask("DELETE", f"/api/v1/team/{await member_id_of(reviewers[1])}/", status=200)
    assert (await decide(reviewers[2], made))["status"] == "PENDING"
    done = await decide(reviewers[0], made)
    assert done["status"] == "APPROVED"
    assert [each["is_void"] for each in done["reviews"]] == [True, True, False, False]


async def test_concurrent_approvals_move_the_money_once(customer_desk, customer_desks, manager, world, funded):
    payee = await world.pocket()
    linked = await counterparty(world, customer_desk.team.customer, payee)
    approvers = [manager, *[await customer_desks(customer_desk.team.customer, role="APPROVER") for _ in range(4)]]
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_000_00, counterparty=linked))
    path, body = f"{path_of(made)}status/", {"status": "APPROVED"}
    answers = await asyncio.gather(*(each.send("PATCH", path, body) for each in approvers for _ in range(4)))
    codes = sorted(each.status_code for each in answers)
    assert codes == [200] + [409] * 19
    said = {each.json()["code"] for each in answers if each.status_code == 409}
    assert said <= {"transfer-request-not-pending", "already-reviewed"}
    assert len((await customer_desk.get(path_of(made)))["reviews"]) == 1
    moved = (await world.get(f"/api/v2/pockets/{payee.id}/transactions/"))["items"]
    assert [each["amount"]["value"] for each in moved] == [1_000_00]


async def test_concurrent_approval_and_cancellation_refuse_one_of_them(customer_desk, manager, funded, payroll_pocket):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    approved, cancelled = await asyncio.gather(
        manager.send("PATCH", f"{path_of(made)}status/", {"status": "APPROVED"}),
        customer_desk.send("DELETE", path_of(made)),
    )
    assert sorted([approved.status_code, cancelled.status_code]) in ([200, 409], [204, 409])
    refusal = approved if approved.status_code == 409 else cancelled
    assert refusal.json()["code"] == "transfer-request-not-pending"
    expected = "APPROVED" if approved.status_code == 200 else "CANCELLED"
    assert (await status_of(customer_desk, made))[0] == expected


async def test_a_repeated_transfer_request_is_created_once(customer_desk, manager, funded, payroll_pocket):
    body = on_us(funded, 1_00, to=payroll_pocket)
    made = await customer_desk.post(REQUESTS, body)
    again = on_us(funded, 2_00, to=payroll_pocket, request_id=made["id"])
    await manager.refused("POST", REQUESTS, again, status=409, code="duplicate-id")
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    assert await customer_desk.post(REQUESTS, body) == made
    listed = await customer_desk.get(REQUESTS)
    assert [each["id"] for each in listed["items"]] == [made["id"]]


@pytest.mark.usefixtures("manager")
async def test_a_request_id_reused_with_different_wire_instructions_is_refused(customer_desk, funded):
    linked = await wire_counterparty(customer_desk)
    body = wire(funded, 1_00, linked, wire_instructions="Attn. Ada")
    made = await customer_desk.post(REQUESTS, body)
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    assert await customer_desk.post(REQUESTS, body) == made
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    other = body | {"transfer": body["transfer"] | {"wire_instructions": "Attn. Bob"}}
    await customer_desk.refused("POST", REQUESTS, other, status=409, code="duplicate-id")
    for change, expected in (({"reviewers": []}, "Attn. Ada"), ({"transfer": other["transfer"]}, "Attn. Bob")):
        changed = await customer_desk.patch(path_of(made), change)
        assert changed["transfer"]["wire_instructions"] == expected


async def test_transfer_requests_are_rate_limited_to_one_per_second(customer_desk, funded, payroll_pocket):
    answers = [await customer_desk.send("POST", REQUESTS, on_us(funded, 1_00, to=payroll_pocket)) for _ in range(3)]
    limited = [each for each in answers if each.status_code == 429]
    assert limited
    assert limited[0].json()["code"] == "rate-limited"
    assert limited[0].headers["retry-after"] == "1"
    assert answers[0].headers["x-ratelimit-limit"] == "60"


async def test_approving_a_request_from_a_frozen_pocket_is_refused(
    customer_desk, manager, world, funded, payroll_pocket
):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    path = f"/api/v1/sandbox/pockets/{funded.id}/"
    await world.ask("POST", path, {"status": "FROZEN"}, status=200)
    await refused(manager, made, "pocket-frozen", answers=409)
    body = on_us(funded, 1_00, to=payroll_pocket)
    await manager.refused("POST", REQUESTS, body, status=409, code="pocket-frozen")
    await world.ask("POST", path, {"status": "OPEN"}, status=200)
    assert (await decide(manager, made))["status"] == "APPROVED"


async def test_a_transfer_request_with_foreign_pockets_or_the_same_pocket_is_refused(
    customer_desk, other_customer, world, funded, payroll_pocket
):
    theirs = await other_customer.pocket()
    linked = await counterparty(world, other_customer.team.customer, funded)
    for body in (
        on_us(theirs, 1_00, to=payroll_pocket),
        on_us(funded, 1_00, to=theirs),
        on_us(funded, 1_00, counterparty=linked),
    ):
        await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
        await customer_desk.refused("POST", REQUESTS, body, status=404, code="not-found")
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    await customer_desk.refused("POST", REQUESTS, on_us(funded, 1_00, to=funded), status=422, code="same-pocket")


async def test_transfer_requests_are_filtered_by_status_type_reviewer_and_requester(
    customer_desk, customer_desks, manager, funded, payroll_pocket
):
    initiator = await customer_desks(customer_desk.team.customer, role="INITIATOR")
    mine = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    theirs = await manager.post(
        REQUESTS, on_us(payroll_pocket, 1_00, to=funded, reviewers=[await member_id_of(customer_desk)])
    )
    third = await initiator.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    await decide(manager, mine, "DENIED")
    for filters, expected in (
        ({"status": "DENIED"}, [mine]),
        ({"status[]": ["PENDING", "EXPIRED"]}, [third, theirs]),
        ({"reviewer": await member_id_of(customer_desk)}, [theirs]),
        ({"reviewer": await member_id_of(manager)}, [mine]),
        ({"requested_by": await member_id_of(initiator)}, [third]),
        ({"type": "WIRE"}, []),
        ({"pocket[]": payroll_pocket.id}, [theirs]),
        ({"time_created_from": "2025-06-03"}, []),
        ({"time_created_to": "2025-06-02"}, [third, theirs, mine]),
    ):
        items = (await customer_desk.get(REQUESTS, filters))["items"]
        assert {each["id"] for each in items} == {each["id"] for each in expected}, filters
    assert len(await customer_desk.pages(REQUESTS, limit=1)) == 3
    await customer_desk.invalid("GET", REQUESTS, filters={"status": "DONE"}, loc="query.status[]")
    await customer_desk.refused("GET", REQUESTS, filters={"reviewer": str(ids.new())}, status=404, code="not-found")
