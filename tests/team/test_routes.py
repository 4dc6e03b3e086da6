"""The team through the Customer API: who is in it, who is invited, and who no longer is."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest
from tests.support.approvals import hold_roles
from tests.support.oauth import member
from tests.support.whole_bank import with_limits
from tests.support.world import Team, token_for

from billfold.events.email import outbox
from billfold.identity.members import store as member_store
from billfold.identity.users import sessions
from billfold.identity.users import store as user_store
from billfold.identity.users.rules import ClientInfo
from billfold.oauth.grants import insert_token
from billfold.oauth.types import TokenSubject
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_token

PATH = "/api/v1/team/"
BEN = {"first_name": "Ben", "last_name": "Ode", "email": "ben@northwind.example", "role": "MANAGER"}
STATUSES = ["ACTIVE", "PENDING", "DEACTIVATED", "EXPIRED"]


async def invite_ben(customer_desk, **fields):
    return (await customer_desk.ask("POST", f"{PATH}invite/", BEN | fields, status=201)).json()


async def groups(customer_desk):
    told = await customer_desk.get(PATH)
    assert [each["status"] for each in told["groups"]] == STATUSES
    return {each["status"]: [m["email"] for m in each["members"]] for each in told["groups"]}


async def own_id(customer_desk):
    return (await customer_desk.get("/api/v1/user/"))["member_id"]


async def link_in(bank):
    rows = await outbox.claim_emails(bank.pool, wall_now())
    claimed = [outbox.open_email(row, bank.vault) for row in rows]
    for each in claimed:
        await outbox.mark_email_sent(bank.pool, each.email_id, wall_now())
    return [each.text.partition("link=")[2].split()[0] for each in claimed if "link=" in each.text]


async def keep_refresh_token(bank, team):
    """Give a member a grant with a refresh token."""
    customer_id, grant_id, now = UUID(team.customer), ids.new(), wall_now()
    await bank.pool.execute(
        "INSERT INTO oauth_grant VALUES ($1, 'books', $2, $3, '{profile}', $4, $4)",
        grant_id,
        team.user_id,
        customer_id,
        now,
    )
    subject = TokenSubject(
        client_id="books",
        customer_id=customer_id,
        scopes=("profile",),
        user_id=team.user_id,
        grant_id=grant_id,
        auth_time=now,
        session_id=ids.new(),
    )
    await insert_token(bank.pool, "refresh_token", subject, now=now, expires_at=now + timedelta(days=90))


async def test_an_invited_member_is_pending_and_gets_an_email(customer_desk):
    made = await invite_ben(customer_desk, phone_number="+1 (202) 555-0123")
    assert made | {"member_id": 0, "time_created": 0, "invite_expires_at": 0, "permissions": 0} == {
        "member_id": 0,
        "first_name": "Ben",
        "last_name": "Ode",
        "email": BEN["email"],
        "phone_number": "+12025550123",
        "role": "MANAGER",
        "status": "PENDING",
        "permissions": 0,
        "is_service_user": False,
        "time_created": 0,
        "invite_expires_at": 0,
        "object_type": "TeamMember",
    }
    assert {"pockets.write", "transfers.approve"} <= set(made["permissions"])
    assert await customer_desk.get(f"{PATH}{made['member_id']}/") == made
    assert (await groups(customer_desk))["PENDING"] == [BEN["email"]]
    assert len(await link_in(customer_desk.bank)) == 1


async def test_an_invitation_expires_after_seven_days_on_the_bank_clock(customer_desk, world):
    made = await invite_ben(customer_desk)
    await world.later(days=7, seconds=-1)
    assert (await groups(customer_desk))["PENDING"] == [BEN["email"]]
    await world.later(seconds=1)
    assert (await groups(customer_desk))["EXPIRED"] == [BEN["email"]]
    path = f"{PATH}{made['member_id']}/invite/"
    again = (await customer_desk.ask("POST", path, status=200)).json()
    assert (again["status"], again["member_id"]) == ("PENDING", made["member_id"])
    await world.later(days=7)
    renewed = await invite_ben(customer_desk, role="VIEWER")
    assert renewed["member_id"] != made["member_id"]
    assert await groups(customer_desk) | {"ACTIVE": []} == {
        "ACTIVE": [],
        "PENDING": [BEN["email"]],
        "DEACTIVATED": [],
        "EXPIRED": [],
    }


async def test_inviting_an_invited_or_existing_member_is_refused(customer_desk, customer_desks):
    made = await invite_ben(customer_desk)
    taken = {"status": 409, "code": "member-already-invited"}
    await customer_desk.refused("POST", f"{PATH}invite/", BEN | {"email": "BEN@Northwind.example"}, **taken)
    user = await customer_desk.get("/api/v1/user/")
    await customer_desk.refused("POST", f"{PATH}invite/", BEN | {"email": user["email"]}, **taken)
    other = await customer_desks(customer_desk.team.customer, role="VIEWER")
    mail = (await other.get("/api/v1/user/"))["email"]
    await customer_desk.ask("DELETE", f"{PATH}{await own_id(other)}/", status=200)
    await customer_desk.refused("POST", f"{PATH}invite/", BEN | {"email": mail}, **taken)
    await customer_desk.ask("DELETE", f"{PATH}{made['member_id']}/invite/", status=200)
    assert (await invite_ben(customer_desk))["status"] == "PENDING"


async def test_concurrent_invitations_of_one_address_create_one(customer_desk):
    path = f"{PATH}invite/"
    answers = await asyncio.gather(*(customer_desk.send("POST", path, BEN) for _ in range(4)))
    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409]
    assert len((await groups(customer_desk))["PENDING"]) == 1


async def test_inviting_a_user_of_a_different_customer_reveals_nothing(customer_desk, other_customer):
    known = await other_customer.get("/api/v1/user/")
    made = await invite_ben(customer_desk, email=known["email"])
    assert (made["first_name"], made["status"], made["phone_number"]) == ("Ben", "PENDING", None)
    assert "user_id" not in made


async def test_an_invitation_can_be_resent_or_withdrawn_until_accepted(customer_desk, customer_desks):
    made = await invite_ben(customer_desk)
    path = f"{PATH}{made['member_id']}/invite/"
    await customer_desk.ask("POST", path, status=200)
    first, second = await link_in(customer_desk.bank)
    assert first != second
    assert (await customer_desk.ask("DELETE", path, status=200)).json()["email"] == BEN["email"]
    for method in ("POST", "DELETE"):
        await customer_desk.refused(method, path, status=404, code="not-found")
    other = await customer_desks(customer_desk.team.customer, role="VIEWER")
    for method in ("POST", "DELETE"):
        path = f"{PATH}{await own_id(other)}/invite/"
        await customer_desk.refused(method, path, status=409, code="invite-not-pending")


async def test_a_mailbox_is_invited_at_most_three_times_a_day_in_any_spelling(customer_desk, other_customer):
    written = ["ben.ode@contoso.example", "BEN.ODE+a@contoso.example", "benode@Contoso.example"]
    for email in written:
        await invite_ben(customer_desk, email=email)
    for desk, email in ((customer_desk, "b.e.n.ode+b@contoso.example"), (other_customer, "benode+c@contoso.example")):
        body = BEN | {"email": email}
        await desk.refused("POST", f"{PATH}invite/", body, status=429, code="invite-limit-reached")
    assert len(await link_in(customer_desk.bank)) == 3
    await invite_ben(customer_desk, email="dee@contoso.example")


async def test_concurrent_and_resent_invitations_count_toward_the_limit_of_the_customer(customer_desk):
    with_limits(customer_desk.bank, {"invitations.sender": 4})
    bodies = [BEN | {"email": f"user{nth}@contoso.example"} for nth in range(8)]
    answers = await asyncio.gather(*(customer_desk.send("POST", f"{PATH}invite/", each) for each in bodies))
    assert sorted(each.status_code for each in answers) == [201] * 4 + [429] * 4
    made = next(each.json() for each in answers if each.status_code == 201)
    again = f"{PATH}{made['member_id']}/invite/"
    await customer_desk.refused("POST", again, status=429, code="invite-limit-reached")
    assert len(await link_in(customer_desk.bank)) == 4


async def test_an_invitation_with_a_name_containing_a_link_or_number_is_refused(customer_desk):
    for name in ["https://evil.example", "Win at evil.com", "evil\u3002com", "Call 18005551234", "$1000"]:
        for field in ("first_name", "last_name"):
            body = BEN | {field: name}
            told = (await customer_desk.ask("POST", f"{PATH}invite/", body, status=422)).json()["detail"]
            assert [each["loc"] for each in told] == [["body", field]]


async def test_a_role_change_applies_to_the_next_request_of_an_existing_token(customer_desk, customer_desks):
    other = await customer_desks(customer_desk.team.customer, role="VIEWER")
    path, pocket = (f"{PATH}{await own_id(other)}/", {"pocket_name": "x", "deposit_strategy_id": "UST-4W"})
    await other.refused("POST", "/api/v2/pockets/", pocket, status=403, code="forbidden")
    changed = (await customer_desk.ask("PUT", path, {"role": "MANAGER"}, status=200)).json()
    assert changed["role"] == "MANAGER"
    await other.ask("POST", "/api/v2/pockets/", pocket, status=201)
    await customer_desk.ask("PUT", path, {"role": "INITIATOR"}, status=200)
    await other.refused("POST", "/api/v2/pockets/", pocket, status=403, code="forbidden")


async def test_phone_numbers_of_other_members_are_shown_only_with_team_write(customer_desk, customer_desks):
    other = await customer_desks(customer_desk.team.customer, role="MANAGER")
    mine, boss = await own_id(other), await own_id(customer_desk)
    told = (await other.get(PATH))["groups"][0]["members"]
    assert {each["member_id"]: each["phone_number"] for each in told} == {mine: "+12025550123", boss: None}
    assert (await other.get(f"{PATH}{boss}/"))["phone_number"] is None
    assert (await customer_desk.get(f"{PATH}{mine}/"))["phone_number"] == "+12025550123"


async def test_deactivating_a_member_revokes_tokens_and_grants_for_good(customer_desk, customer_desks):
    bank, other = (customer_desk.bank, await customer_desks(customer_desk.team.customer, role="MANAGER"))
    path = f"{PATH}{await own_id(other)}/"
    await keep_refresh_token(bank, other.team)
    session = await sessions.open_session(
        bank.pool,
        other.team.user_id,
        auth_methods=("pwd", "otp"),
        complete=True,
        client_info=ClientInfo(address="203.0.113.7", device="a browser"),
        now=wall_now(),
    )
    elsewhere = await customer_desks(role="VIEWER")
    async with bank.pool.acquire() as conn:
        await member(conn, UUID(elsewhere.team.customer), user_id=other.team.user_id)
    there = await token_for(bank, Team(elsewhere.team.customer, "books", other.team.user_id))
    assert (await customer_desk.ask("DELETE", path, status=200)).json()["status"] == "DEACTIVATED"
    answer = await other.ask("GET", "/api/v1/customer/", status=401)
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert await bank.pool.fetchval("SELECT revoked_at IS NOT NULL FROM oauth_grant")
    assert await bank.pool.fetchval("SELECT count(*) FROM refresh_token") == 0
    assert await user_store.find_session(bank.pool, bank.vault, hash_token(session), now=wall_now()) is None
    await other.ask("GET", "/api/v1/customer/", status=200, token=there)
    await customer_desk.refused("DELETE", path, status=409, code="member-not-active")
    assert (await customer_desk.ask("PUT", path, {"status": "DEACTIVATED"}, status=200)).is_success
    back = (await customer_desk.ask("PUT", path, {"status": "ACTIVE"}, status=200)).json()
    assert (back["status"], back["role"]) == ("ACTIVE", "MANAGER")
    await other.ask("GET", "/api/v1/customer/", status=401)
    fresh_token = await token_for(bank, other.team)
    await other.ask("GET", "/api/v1/customer/", status=200, token=fresh_token)


async def test_removing_the_last_administrator_is_refused(customer_desk, customer_desks):
    path = f"{PATH}{await own_id(customer_desk)}/"
    await customer_desks(customer_desk.team.customer, role="MANAGER")
    await invite_ben(customer_desk, role="ADMIN")
    last = {"status": 409, "code": "last-administrator"}
    await customer_desk.refused("DELETE", path, **last)
    await customer_desk.refused("PUT", path, {"role": "MANAGER"}, **last)
    await customer_desk.refused("PUT", path, {"status": "DEACTIVATED"}, **last)
    assert (await customer_desk.ask("PUT", path, {"role": "ADMIN"}, status=200)).json()["role"] == "ADMIN"
    second = await customer_desks(customer_desk.team.customer)
    await customer_desk.ask("DELETE", path, status=200)
    await second.refused("DELETE", f"{PATH}{await own_id(second)}/", **last)


async def test_two_administrators_removing_each_other_concurrently_leave_one(customer_desk, customer_desks):
    for n, change in enumerate(({"role": "VIEWER"}, {"status": "DEACTIVATED"}) * 3):
        one, two = await customer_desks(), None
        two = await customer_desks(one.team.customer)
        paths = [f"{PATH}{await own_id(each)}/" for each in (two, one)]
        answers = await asyncio.gather(
            *(each.send("PUT", path, change) for each, path in zip((one, two), paths, strict=True))
        )
        left = await one.bank.pool.fetchval(
            "SELECT count(*) FROM membership WHERE customer_id = $1 AND role = 'ADMIN' AND status = 'ACTIVE'",
            UUID(one.team.customer),
        )
        assert left == 1, n
        assert sum(each.status_code == 200 for each in answers) == 1, n


@pytest.mark.parametrize("rule", [False, True])
async def test_the_role_of_an_invitation_can_be_changed_but_not_its_status(customer_desk, rule):
    made = await invite_ben(customer_desk)
    path = f"{PATH}{made['member_id']}/"
    assert (await customer_desk.ask("PUT", path, {"role": "VIEWER"}, status=200)).json()["role"] == "VIEWER"
    if rule:
        await hold_roles(customer_desk.bank, UUID(customer_desk.team.customer))
    for status in ("ACTIVE", "DEACTIVATED"):
        body = {"status": status}
        await customer_desk.refused("PUT", path, body, status=409, code="member-not-active")
    await customer_desk.refused("DELETE", path, status=409, code="member-not-active")


async def test_reactivating_a_member_deactivated_by_the_operator_is_refused(customer_desk, customer_desks):
    other = await customer_desks(customer_desk.team.customer, role="VIEWER")
    path = f"{PATH}{await own_id(other)}/"
    async with customer_desk.bank.pool.acquire() as conn:
        await member_store.deactivate_user(conn, other.team.user_id)
    assert (await customer_desk.get(path))["status"] == "DEACTIVATED"
    await customer_desk.refused("PUT", path, {"status": "ACTIVE"}, status=409, code="member-shut-out")


async def test_an_empty_or_invalid_member_change_is_refused(customer_desk):
    path = f"{PATH}{await own_id(customer_desk)}/"
    for body in ({}, {"role": None}, {"role": "SERVICE"}, {"status": "PENDING"}, {"role": "VIEWER", "email": "x"}):
        await customer_desk.ask("PUT", path, body, status=422)


async def test_every_team_change_is_audited_and_notifies_the_administrators(customer_desk, customer_desks):
    other = await customer_desks(customer_desk.team.customer, role="VIEWER")
    path, own = f"{PATH}{await own_id(other)}/", await own_id(customer_desk)
    made = await invite_ben(customer_desk)
    for method in ("POST", "DELETE"):
        await customer_desk.ask(method, f"{PATH}{made['member_id']}/invite/", status=200)
    await customer_desk.ask("PUT", path, {"role": "VIEWER"}, status=200)
    for body in ({"role": "APPROVER"}, {"status": "DEACTIVATED"}, {"status": "ACTIVE"}):
        await customer_desk.ask("PUT", path, body, status=200)
    await customer_desk.ask("DELETE", f"{PATH}{own}/", status=409)
    rows = await customer_desk.bank.pool.fetch(
        "SELECT action, outcome, member_id FROM audit_entry WHERE customer_id = $1 "
        "AND actor = 'MEMBER' ORDER BY entry_no",
        UUID(customer_desk.team.customer),
    )
    assert [(row["action"], row["outcome"]) for row in rows] == [
        ("member.invited", "SUCCESS"),
        ("invite.resent", "SUCCESS"),
        ("invite.cancelled", "SUCCESS"),
        ("member.updated", "SUCCESS"),
        ("member.deactivated", "SUCCESS"),
        ("member.reactivated", "SUCCESS"),
        ("member.deactivated", "FAILURE"),
    ]
    assert {str(row["member_id"]) for row in rows} == {own}
    told = (await customer_desk.get("/api/v1/notifications/"))["items"]
    assert [each["type"] for each in told] == ["TEAM_MEMBER_CHANGED"] * 5
    assert told[2]["description"] == "Anna Lind changed Anna Lind: Viewer became Approver."
