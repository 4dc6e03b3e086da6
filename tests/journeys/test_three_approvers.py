"""A company with three approvers: tiers, an order and a daily cap, through HTTP only."""

import asyncio
from uuid import UUID

import pytest
from tests.support import payees
from tests.support.approvals import (
    CHANGES,
    REQUESTS,
    RULES,
    counterparty,
    decide,
    member_id_of,
    on_us,
    path_of,
    refused,
    wire,
)
from tests.support.oauth import new_key
from tests.support.world import token_for

from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.payments.clearing.store import balances
from billfold.payments.clearing.worker import close_bank_days
from billfold.team.approved_changes import apply_authorization_request

APPROVED, NOT_PENDING = {"status": "APPROVED"}, "authorization-request-not-pending"


class Company:
    """An administrator, two requesters, three approvers, money, and a payee."""

    def __init__(self, admin, askers, approvers, pocket, payee, linked):
        self.admin, self.askers, self.approvers = admin, askers, approvers
        self.pocket, self.payee, self.linked = pocket, payee, linked

    async def rule(self, **fields):
        """Create a rule, requested by the administrator and confirmed by an approver."""
        asked = await self.admin.post(RULES, fields, status=202)
        await self.approvers[0].patch(confirm(asked), APPROVED)
        return await self.admin.get(f"{RULES}{asked['resource_id']}/")

    async def ask(self, cents, *, by=0, status="PENDING"):
        """Request a payment; each requester makes one request, so that no rate limit applies."""
        body = on_us(self.pocket, cents, counterparty=self.linked)
        made = await self.askers[by].post(REQUESTS, body)
        assert made["status"] == status
        return made


def confirm(asked):
    """Return the path that confirms a change."""
    return f"{CHANGES}{asked['id']}/status/"


@pytest.fixture
async def company(customer_desks, customer_world):
    admin = await customer_desks()
    customer = admin.team.customer
    askers = [await customer_desks(customer, role="INITIATOR") for _ in range(4)]
    approvers = [await customer_desks(customer, role="APPROVER") for _ in range(3)]
    pocket = await admin.pocket()
    await customer_world.wire(pocket, 900_000_00)
    payee = await customer_world.pocket()
    linked = await counterparty(customer_world, customer, payee)
    return Company(admin, askers, approvers, pocket=pocket, payee=payee, linked=linked)


async def test_a_company_with_three_approvers_pays_by_its_rules(company, customer_world):
    first, second, third = company.approvers
    order = [await member_id_of(each) for each in (third, first, second)]
    small = await company.rule(name="Petty cash", required_approvals=0, daily_cap_usdc=2_000_00)
    assert (small["required_approvals"], small["enabled"], small["version"]) == (0, True, 1)
    await company.rule(name="Usual", required_approvals=1, min_amount_usdc=1_000_00)
    await company.rule(name="Large", required_approvals=3, min_amount_usdc=100_000_00, approver_ids=order, ordered=True)
    listed = (await company.admin.get(RULES))["items"]
    assert {each["name"] for each in listed} == {"Petty cash", "Usual", "Large"}

    petty = await company.ask(999_99, status="APPROVED")
    assert petty["transfer"]["execution_status"] == "COMPLETED"
    body = {**on_us(company.pocket, 999_99, counterparty=company.linked), "must_be_approved": True}
    careful = await company.askers[3].post(REQUESTS, body)
    assert (careful["status"], careful["required_approvals"], careful["approval_rule_id"]) == ("PENDING", 1, None)
    kept = await company.askers[3].patch(f"{REQUESTS}{careful['id']}/", {"reviewers": []})
    assert kept["status"] == "PENDING"
    usual = await company.ask(1_000_00, by=1)
    done = await decide(second, usual)
    assert (done["status"], done["transfer"]["execution_status"]) == ("APPROVED", "COMPLETED")

    large = await company.ask(250_000_00, by=2)
    assert large["required_approvals"] == 3
    await refused(first, large, "approval-out-of-order", answers=409)
    for said, each in enumerate((third, first), start=1):
        shown = await decide(each, large)
        assert (shown["status"], len(shown["reviews"])) == ("PENDING", said)
    await refused(third, large, "already-reviewed", answers=409)
    await refused(company.admin, large, "not-a-reviewer", answers=403)
    assert (await decide(second, large))["transfer"]["execution_status"] == "COMPLETED"
    moved = (await customer_world.get(f"/api/v2/pockets/{company.payee.id}/transactions/"))["items"]
    assert [each["amount"]["value"] for each in moved] == [250_000_00, 1_000_00, 999_99]


async def test_transfers_over_a_daily_cap_fall_under_stricter_rules_until_the_next_day(company, customer_world):
    await company.rule(name="Petty cash", required_approvals=0, daily_cap_usdc=1_500_00)
    await company.ask(1_000_00, status="APPROVED")
    over = await company.ask(600_00, by=1)
    assert (over["required_approvals"], over["approval_rule_id"]) == (1, None)
    await company.ask(500_00, by=2, status="APPROVED")
    await customer_world.days(1)
    await company.ask(1_500_00, by=3, status="APPROVED")


async def test_rules_and_caps_use_the_pocket_value_for_a_full_withdrawal(company):
    await company.rule(name="Petty cash", required_approvals=0, daily_cap_usdc=1_500_00)
    await company.rule(name="Large", required_approvals=3, min_amount_usdc=100_000_00)
    body = on_us(company.pocket, 0, counterparty=company.linked, amount={"type": "FULL_WITHDRAWAL"})
    large = await company.askers[0].post(REQUESTS, body)
    assert (large["status"], large["required_approvals"]) == ("PENDING", 3)
    for each in company.approvers:
        large = await decide(each, large)
    assert large["transfer"]["execution_status"] == "COMPLETED"
    assert large["transfer"]["amount"]["value"] > 800_000_00


async def test_concurrent_requests_under_a_daily_cap_approve_only_one(company):
    await company.rule(name="Petty cash", required_approvals=0, daily_cap_usdc=1_500_00)
    bodies = [on_us(company.pocket, 1_000_00, counterparty=company.linked) for _ in company.askers]
    asked = (each.post(REQUESTS, body) for each, body in zip(company.askers, bodies, strict=True))
    statuses = sorted(each["status"] for each in await asyncio.gather(*asked))
    assert statuses == ["APPROVED", "PENDING", "PENDING", "PENDING"]


async def test_a_large_wire_is_sent_after_three_approvals(company, customer_world):
    await company.rule(name="Wires", transfer_types=["WIRE"], required_approvals=3, approver_roles=["APPROVER"])
    admin = company.admin
    payee = await admin.post("/api/v2/counterparties/", payees.wire())
    account = {"sender_routing_number": payees.wire()["routing_number"], "sender_account_number": "000123456789"}
    body = {"portal_id": company.pocket.portal, "amount_usdc": 1_00, "sender_name": "Contoso", **account}
    await customer_world.ask("POST", "/api/v1/sandbox/wire/", body, status=202)
    assert (await admin.get(f"/api/v2/counterparties/{payee['id']}/"))["status"] == "VERIFIED"
    made = await company.askers[0].post(REQUESTS, wire(company.pocket, 400_000_00, payee["id"]))
    for each in company.approvers:
        assert made["transfer"]["execution_status"] == "NOT_STARTED"
        made = await decide(each, made)
    assert (made["status"], made["transfer"]["execution_status"]) == ("APPROVED", "PROCESSING")
    (transaction,) = made["transfer"]["transaction_ids"]
    sent = await admin.get(f"/api/v2/transactions/{transaction}/")
    assert (sent["wire_id"], sent["amount"]["value"]) == (made["id"], 400_000_00)
    assert sent["counterparty_id"] == payee["id"]
    await customer_world.later(hours=3)
    done = await admin.get(path_of(made))
    assert done["transfer"]["execution_status"] == "COMPLETED"
    await customer_world.days(3)
    await close_bank_days(customer_world.bank, await customer_world.bank.now())
    assert not any((await balances(customer_world.bank.pool)).values())


async def test_the_daily_cap_of_the_strictest_rule_is_a_hard_limit(company):
    await company.rule(name="All", required_approvals=2, daily_cap_usdc=1_000_00)
    made = await company.ask(600_00)
    body = on_us(company.pocket, 600_00, counterparty=company.linked)
    await company.askers[1].refused("POST", REQUESTS, body, status=422, code="amount-not-allowed")
    await decide(company.approvers[0], made, "DENIED")
    await company.ask(600_00, by=2)


async def test_approval_rule_changes_need_confirmation_by_a_second_member(company):
    admin, (first, second, _) = company.admin, company.approvers
    rule = await company.rule(name="All", required_approvals=2)
    waiting = await company.ask(600_00)
    path = f"{RULES}{rule['id']}/"
    asked = await admin.patch(path, {"required_approvals": 0}, status=202)
    assert (asked["action"], asked["resource_id"]) == ("approval_rule.update", rule["id"])
    assert asked["change"]["rule"]["required_approvals"] == 0
    await admin.refused("PATCH", confirm(asked), APPROVED, status=403, code="self-approval")
    assert (await admin.get(path))["required_approvals"] == 2
    other = (await admin.ask("DELETE", path, status=202)).json()
    done = await first.patch(confirm(asked), APPROVED | {"comment": "Agreed"})
    assert (done["status"], done["reviews"][0]["comment"]) == ("APPROVED", "Agreed")
    assert done["applied_at"] is not None
    assert (await admin.get(path))["required_approvals"] == 0
    await second.refused("PATCH", confirm(other), APPROVED, status=409, code="content-changed")
    assert (await second.patch(confirm(other), {"status": "DENIED"}))["status"] == "DENIED"
    await second.refused("PATCH", confirm(other), APPROVED, status=409, code=NOT_PENDING)
    assert (await admin.get(path_of(waiting)))["required_approvals"] == 2
    gone = (await admin.ask("DELETE", path, status=202)).json()
    await first.patch(confirm(gone), APPROVED)
    await admin.refused("GET", path, status=404, code="not-found")
    listed = await admin.get(CHANGES, {"status[]": "APPROVED"})
    made = {each["action"].partition(".")[2] for each in listed["items"]}
    assert made == {"create", "update", "delete"}
    assert len(await admin.pages(CHANGES, limit=2)) == 4


async def test_role_changes_need_confirmation_when_a_rule_requires_it(company):
    admin, (first, second, third) = company.admin, company.approvers
    await company.rule(name="Roles", actions=["MEMBER_ROLE"], required_approvals=1)
    promoted = await member_id_of(third)
    path = f"/api/v1/team/{promoted}/"
    asked = (await admin.ask("PUT", path, {"role": "ADMIN"}, status=202)).json()
    assert asked["change"] == {"role": "ADMIN", "status": None, "before": {"role": "APPROVER", "status": "ACTIVE"}}
    await third.refused("PATCH", confirm(asked), APPROVED, status=403, code="self-approval")
    assert (await admin.get(path))["role"] == "APPROVER"
    assert (await first.patch(confirm(asked), APPROVED))["applied_at"] is not None
    assert (await admin.get(path))["role"] == "ADMIN"

    user = {"first_name": "Ben", "last_name": "Ode", "email": "b@b.example", "role": "MANAGER"}
    invited = await admin.post("/api/v1/team/invite/", user, status=202)
    await second.patch(confirm(invited), APPROVED)
    groups = (await admin.get("/api/v1/team/"))["groups"]
    (pending,) = [each["members"] for each in groups if each["status"] == "PENDING"]
    assert [each["email"] for each in pending] == ["b@b.example"]
    assert (await admin.ask("DELETE", path, status=200)).json()["status"] == "DEACTIVATED"


async def test_service_users_and_renewed_invitations_need_confirmation_when_a_rule_requires_it(
    company, customer_world, service_users
):
    admin, first = company.admin, company.approvers[0]
    program, before = await service_users(admin, *(each for each in SCOPES if each not in PERSONAL_SCOPES))
    ben = {"first_name": "Ben", "last_name": "Ode", "email": "b@b.example", "role": "INITIATOR"}
    invited = f"/api/v1/team/{(await admin.post('/api/v1/team/invite/', ben))['member_id']}/"
    await company.rule(name="Roles", actions=["MEMBER_ROLE"], required_approvals=1)
    await customer_world.later(days=7)
    programs, key = "/api/v1/team/service-users/", {"public_key": new_key().pem}
    new = {"name": "Payroll", "scopes": ["transfers.write"], **key}
    for by in (admin, program):
        for method, path, body in (
            ("POST", programs, new),
            ("POST", f"{programs}{before['member_id']}/keys/", key),
            ("POST", f"{programs}{before['member_id']}/keys/rotate/", key),
            ("POST", f"{invited}invite/", b""),
            ("PUT", invited, {"role": "VIEWER"}),
            ("POST", "/api/v1/team/invite/", ben | {"email": "c@c.example"}),
        ):
            assert (await by.ask(method, path, body, status=202)).json()["status"] == "PENDING", path
    team = (await admin.get("/api/v1/team/"))["groups"]
    assert [len(each["members"]) for each in team] == [9, 0, 0, 1]
    [kept] = (await admin.get(f"{programs}{before['member_id']}/keys/"))["items"]
    assert kept["key_id"] == before["key_id"]

    waiting = {each["action"]: each for each in await admin.pages(CHANGES, {"status[]": "PENDING"}, limit=20)}
    assert waiting["service_user.create"]["change"]["service_user"]["scopes"] == ["transfers.write"]
    done = {}
    for action in ("service_user.create", "service_user.add_key", "member.reinvite"):
        done[action] = await first.patch(confirm(waiting[action]), APPROVED)
        assert (done[action]["refused"], done[action]["applied_at"] is None) == (None, False), action
    created = await admin.get(f"{programs}{done['service_user.create']['resource_id']}/")
    assert (created["name"], created["status"]) == ("Payroll", "ACTIVE")
    assert (await admin.get(invited))["status"] == "PENDING"


async def test_a_confirmed_change_is_applied_only_unchanged_and_with_current_permission(company, customer_desks):
    admin, (first, second, third) = company.admin, company.approvers
    chief = await customer_desks(admin.team.customer)
    await company.rule(name="Roles", actions=["MEMBER_ROLE"], required_approvals=1)
    own, path = [f"/api/v1/team/{await member_id_of(each)}/" for each in (chief, third)]

    async def ask(by, path, role):
        return (await by.ask("PUT", path, {"role": role}, status=202)).json()

    async def settle(asked):
        return (await first.patch(confirm(asked), APPROVED))["refused"]

    rule = await chief.post(RULES, {"name": "None", "required_approvals": 0}, status=202)
    by_chief, demotion = await ask(chief, path, "ADMIN"), await ask(admin, own, "MANAGER")
    earlier, later = await ask(admin, path, "MANAGER"), await ask(admin, path, "INITIATOR")
    await apply_authorization_request(admin.bank, UUID(admin.team.customer), UUID(later["id"]))
    assert (await admin.get(path))["role"] == "APPROVER"
    assert await settle(demotion) is None
    assert await settle(by_chief) == "forbidden"
    await first.refused("PATCH", confirm(rule), APPROVED, status=403, code="forbidden")
    assert await settle(later) is None
    assert await settle(earlier) == "content-changed"
    assert (await admin.get(path))["role"] == "INITIATOR"
    ben = {"first_name": "Ben", "last_name": "Ode", "email": "b@b.example"}
    twice = [await admin.post("/api/v1/team/invite/", ben | {"role": role}, status=202) for role in ("VIEWER", "ADMIN")]
    assert [await settle(each) for each in twice] == [None, "member-already-invited"]
    settled = await admin.get(f"{CHANGES}{twice[0]['id']}/")
    invited = await admin.get(f"/api/v1/team/{settled['resource_id']}/")
    assert (invited["role"], invited["status"]) == ("VIEWER", "PENDING")
    weak = await token_for(admin.bank, admin.team, scopes=("team.write",))
    await admin.refused("PUT", path, {"role": "MANAGER"}, status=403, code="forbidden", token=weak)
    await second.refused("PATCH", confirm(later), APPROVED, status=409, code=NOT_PENDING)


@pytest.mark.parametrize("by", ["a member", "a service user"])
async def test_new_counterparties_need_confirmation_when_a_rule_requires_it(company, service_users, by):
    admin, first = company.admin, company.approvers[0]
    asker = company.askers[0] if by == "a member" else (await service_users(admin, "transfers.write"))[0]
    await company.rule(name="Payees", actions=["NEW_COUNTERPARTY"], required_approvals=1)
    asked = await asker.post("/api/v2/counterparties/", payees.wallet(), status=202)
    assert asked["change"]["counterparty"]["counterparty_name"]["business_name"] == "Contoso"
    done = await first.patch(confirm(asked), APPROVED)
    made = await admin.get(f"/api/v2/counterparties/{done['resource_id']}/")
    assert (made["counterparty_name"], made["status"]) == ("Contoso", "LINKED")


async def test_the_registered_owner_of_a_payee_is_shown_only_for_a_close_name_match(company, customer_world):
    await company.rule(name="Payees", actions=["NEW_COUNTERPARTY"], required_approvals=1)
    asker, paths = company.askers[0], "/api/v2/counterparties/"
    portal = (await customer_world.get(f"/api/v2/pockets/{company.payee.id}/portals/"))["items"][0]

    def named(name, **account):
        return {"counterparty_name": {"type": "business", "business_name": name}, **account}

    to = {"type": "on_us", "account_number": portal["network_address"]}
    asked = await asker.post(paths, named("Northwynd", **to), status=202)
    shown = asked["change"]["counterparty"]
    assert (shown["holder"], shown["name_match"]) == ("Northwind", "CLOSE_MATCH")
    made = await asker.post(paths, named("Contoso", **to))
    assert (made["status"], made["verification"]["name_match"]) == ("UNLINKED", "NO_MATCH")
    assert made["verification"]["registered_name"] == "N***"
    own = {"routing_number": portal["routing_number"], "identifier": portal["account_number"]}
    wired = await asker.post(paths, payees.wire(**named("Contoso", **own)), status=202)
    assert wired["change"]["counterparty"]["holder"] == "N***"
    assert "Northwind" not in str((made, wired))
    body = on_us(company.pocket, 1_00, counterparty=made["id"])
    await asker.refused("POST", REQUESTS, body, status=422, code="counterparty-not-verified")


async def test_an_unconfirmed_rule_change_expires(company, customer_world):
    asked = await company.admin.post(RULES, {"name": "All", "required_approvals": 5}, status=202)
    await customer_world.later(days=7)
    assert (await company.admin.get(f"{CHANGES}{asked['id']}/"))["status"] == "EXPIRED"
    await company.approvers[0].refused("PATCH", confirm(asked), APPROVED, status=409, code=NOT_PENDING)
    assert (await company.admin.get(RULES))["items"] == []


WRONG = (
    ({"required_approvals": 6}, "body.required_approvals"),
    ({"name": " "}, "body.name"),
    ({"approver_roles": ["VIEWER"]}, "body.approver_roles.0"),
    ({"approver_ids": ["00000000-0000-4000-8000-000000000000"]}, "body.approver_ids.0"),
    ({"ordered": True}, "body.ordered"),
    ({"transfer_types": ["ACH"]}, "body.transfer_types.0"),
    ({"id": "x"}, "body.id"),
)


async def test_a_malformed_approval_rule_is_refused_at_its_field(customer_desks):
    api = await customer_desks()
    for change, loc in WRONG:
        body = {"name": "All", "required_approvals": 1, **change}
        await api.invalid("POST", RULES, body, loc=loc)
