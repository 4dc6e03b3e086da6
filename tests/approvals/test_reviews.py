"""Reviews of requests: who may review, which content, and how recent the sign-in must be."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from tests.support.approvals import CHANGES, REQUESTS, RULES, decide, member_id_of, on_us, path_of, refused, require_mfa
from tests.support.whole_bank import EngineCommands
from tests.support.world import EVERYTHING, token_for

from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.oauth import grants
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.payments.on_us.commands import TransferOnUs
from billfold.platform.clock import wall_now

PARTNER_OF = "SELECT partner_id FROM customer WHERE customer_id = $1"


async def test_approving_a_changed_request_requires_its_version_or_content_hash(
    customer_desk, customer_desks, funded, payroll_pocket
):
    reviewers = [await customer_desks(customer_desk.team.customer, role="APPROVER") for _ in range(2)]
    body = on_us(funded, 5_000_00, to=payroll_pocket)
    made = await customer_desk.post(REQUESTS, body)
    smaller = body["transfer"] | {"amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_00}}
    shown = made
    for order, version in ((smaller, 2), (body["transfer"], 3)):
        shown = await customer_desk.patch(path_of(made), {"transfer": order})
        assert (made["version"], shown["version"]) == (1, version)
        for stale in ({}, {"version": version - 1}, {"version": version, "content_hash": "0" * 64}):
            await refused(reviewers[0], made, "content-changed", answers=409, **stale)
    assert shown["content_hash"] == made["content_hash"]
    again = await customer_desk.patch(path_of(made), {"transfer": body["transfer"]})
    assert (again["version"], again["reviews"]) == (3, [])
    assert (await decide(reviewers[0], made, version=3))["status"] == "APPROVED"
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    unread = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    await customer_desk.patch(path_of(unread), {"reviewers": [await member_id_of(reviewers[1])]})
    assert (await decide(reviewers[1], unread, "DENIED"))["status"] == "DENIED"


async def test_only_reviewers_at_creation_time_may_decide_a_transfer_request(
    customer_desk, customer_desks, manager, funded, payroll_pocket
):
    customer = customer_desk.team.customer
    promoted = await customer_desks(customer, role="INITIATOR")
    back = await customer_desks(customer, role="APPROVER")
    paths = {each: f"/api/v1/team/{await member_id_of(each)}/" for each in (promoted, back, manager)}
    await customer_desk.ask("DELETE", paths[back], status=200)
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    rule = await customer_desk.post(RULES, {"name": "All", "required_approvals": 1}, status=202)
    joined = await customer_desks(customer, role="MANAGER")
    await customer_desk.ask("PUT", paths[promoted], {"role": "APPROVER"}, status=200)
    await customer_desk.ask("PUT", paths[back], {"status": "ACTIVE"}, status=200)
    back.token = await token_for(back.bank, back.team)
    for late in (promoted, back, joined):
        for status in ("APPROVED", "DENIED"):
            await refused(late, made, "not-a-reviewer", answers=403, status=status)
            path, body = f"{CHANGES}{rule['id']}/status/", {"status": status}
            await late.refused("PATCH", path, body, status=403, code="not-a-reviewer")
    await customer_desk.ask("PUT", paths[manager], {"role": "INITIATOR"}, status=200)
    await refused(manager, made, "forbidden", answers=403)
    assert "The default rule requires more approvals" in (await customer_desk.get(path_of(made)))["blocked_reason"]
    await customer_desk.ask("PUT", paths[manager], {"role": "APPROVER"}, status=200)
    assert (await decide(manager, made))["blocked_reason"] is None


async def test_a_request_that_no_member_can_approve_is_refused_naming_the_rule(
    customer_desk, customer_desks, funded, payroll_pocket
):
    body, impossible = on_us(funded, 1_00, to=payroll_pocket), {"status": 409, "code": "approval-impossible"}
    problem = await customer_desk.refused("POST", REQUESTS, body, **impossible)
    assert problem["detail"].startswith("The default rule requires")
    await customer_desks(customer_desk.team.customer, role="INITIATOR")
    later = on_us(funded, 2_00, to=payroll_pocket)
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    await customer_desk.refused("POST", REQUESTS, later, **impossible)
    approver = await customer_desks(customer_desk.team.customer, role="APPROVER")
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    assert (await decide(approver, await customer_desk.post(REQUESTS, later)))["status"] == "APPROVED"


async def test_administrators_of_a_service_user_cannot_approve_its_requests(
    customer_desk, manager, service_users, funded, payroll_pocket
):
    program, _ = await service_users(customer_desk, "transfers.read", "transfers.write")
    asked = await program.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    assert asked["requested_by"]["user_id"] is None
    await refused(customer_desk, asked, "self-approval", answers=403)
    assert (await decide(manager, asked))["status"] == "APPROVED"


@pytest.mark.parametrize("profile", ["documented", "fapi2"])
async def test_a_service_user_deciding_any_approval_is_forbidden(
    customer_desk, manager, service_users, funded, payroll_pocket, profile
):
    everything = [scope for scope in SCOPES if scope not in PERSONAL_SCOPES]
    program, _ = await service_users(customer_desk, *everything, profile=profile)
    made = await manager.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    change = await customer_desk.post(RULES, {"name": "All", "required_approvals": 1}, status=202)
    for path in (
        f"{REQUESTS}{made['id']}",
        f"{CHANGES}{change['id']}",
        REQUESTS + payroll_pocket.id,
        CHANGES + payroll_pocket.id,
    ):
        for status in ("APPROVED", "DENIED"):
            body = {"status": status}
            await program.refused("PATCH", f"{path}/status/", body, status=403, code="forbidden")


async def test_an_application_with_strict_approvals_needs_a_fresh_proof_to_approve(
    customer_desk, customer_desks, funded, payroll_pocket
):
    customer = customer_desk.team.customer
    strict = await customer_desks(customer, role="MANAGER", client_id="strict", profile="fapi2")
    await customer_desk.bank.pool.execute("UPDATE oauth_client SET requires_nonce = false")
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))

    async def token(age):
        text = await grants.issue_access(
            customer_desk.bank.pool,
            client_id="strict",
            customer_id=UUID(customer),
            scopes=EVERYTHING,
            now=wall_now(),
            user_id=strict.team.user_id,
            jkt=strict.token.key.thumbprint,
            auth_time=None if age is None else wall_now() - age,
        )
        return type(strict.token)(text, strict.token.key)

    path = f"{path_of(made)}status/"
    for age in (None, timedelta(minutes=5, seconds=1)):
        answer = await strict.ask("PATCH", path, {"status": "APPROVED"}, status=401, token=await token(age))
        assert answer.json()["code"] == "insufficient-user-authentication"
        told = answer.headers["www-authenticate"]
        assert 'error="insufficient_user_authentication"' in told
        assert 'max_age="300"' in told
    fresh = await token(timedelta(minutes=4))
    await strict.ask("PATCH", path, {"status": "APPROVED"}, status=200, token=fresh)


@pytest.mark.parametrize("production", [False, True])
@pytest.mark.parametrize("setting", [None, True, False])
async def test_production_approvals_need_a_fresh_proof_unless_the_customer_opts_out(
    customer_desk, manager, funded, payroll_pocket, production, setting
):
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    change = await customer_desk.post(RULES, {"name": "All", "required_approvals": 1}, status=202)
    if setting is not None:
        await require_mfa(customer_desk, required=setting)
    customer_desk.bank.settings = replace(
        customer_desk.bank.settings, environment="production" if production else "sandbox"
    )
    path = f"{CHANGES}{change['id']}/status/"
    if production if setting is None else setting:
        stale = "insufficient-user-authentication"
        await refused(manager, made, stale, answers=401)
        await manager.refused("PATCH", path, {"status": "APPROVED"}, status=401, code=stale)
        assert (await decide(manager, made, "DENIED"))["status"] == "DENIED"
    else:
        await manager.patch(path, {"status": "APPROVED"})
        assert (await decide(manager, made))["status"] == "APPROVED"


@pytest.mark.parametrize("change", [("PUT", {"role": "VIEWER"}), ("DELETE", b"")], ids=str)
async def test_a_transfer_is_not_approved_after_its_requester_loses_permission(
    customer_desk, customer_desks, manager, service_users, funded, payroll_pocket, change
):
    asker = await customer_desks(customer_desk.team.customer, role="INITIATOR")
    program, member = await service_users(customer_desk, "transfers.read", "transfers.write")
    made = [await each.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket)) for each in (asker, program)]
    method, body = change
    await customer_desk.ask(method, f"/api/v1/team/{await member_id_of(asker)}/", body, status=200)
    await customer_desk.ask("DELETE", f"/api/v1/team/{member['member_id']}/", status=200)
    for each in made:
        assert "Cancel or deny this request" in (await customer_desk.get(path_of(each)))["blocked_reason"]
        await refused(manager, each, "approval-impossible", answers=409)
    path = f"/api/v1/team/{await member_id_of(asker)}/"
    await customer_desk.ask("PUT", path, {"role": "INITIATOR", "status": "ACTIVE"}, status=200)
    assert (await decide(manager, made[0]))["status"] == "APPROVED"
    assert (await decide(manager, made[1], "DENIED"))["status"] == "DENIED"


async def test_a_request_with_the_id_of_an_existing_transfer_is_not_approved(
    customer_desk, manager, funded, payroll_pocket
):
    made = await customer_desk.post(REQUESTS, on_us(funded, 5_00, to=payroll_pocket))
    await EngineCommands(customer_desk.bank).submit(
        TransferOnUs,
        UUID(funded.customer),
        transfer_id=UUID(made["id"]),
        type="INTERNAL_REALLOCATION",
        from_pocket_id=UUID(funded.id),
        to_pocket_id=UUID(payroll_pocket.id),
        amount=1_00,
        partner_id=await customer_desk.bank.pool.fetchval(PARTNER_OF, UUID(funded.customer)),
    )
    await refused(manager, made, "duplicate-id", answers=409)
    assert (await customer_desk.get(path_of(made)))["transfer"]["execution_status"] == "NOT_STARTED"
