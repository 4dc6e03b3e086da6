"""The team pages: members read, administrators change, all without scripts."""

import pytest
from tests.support.approvals import hold_roles
from tests.support.databases import as_owner
from tests.support.oauth import KEYS, new_key

from billfold.approvals.authorization_requests import confirm_as_operator
from billfold.identity.members import store
from billfold.team.approved_changes import apply_authorization_request

NEW = {"first_name": "Ben", "last_name": "Ode", "email": "ben@northwind.example", "phone_number": "", "role": "MANAGER"}
NEW_PROGRAM = {"name": "Ledger", "description": "", "public_key": KEYS["ES256"].pem, "scope.pockets.read": "yes"}


@pytest.fixture
async def team_path(anna, browser):
    """Anna signed in, on the page of her team; where that is."""
    await anna.sign_in(browser, "/team")
    await browser.follow()
    return f"/team/{anna.customer_id}"


async def colleague(bank, anna, role="VIEWER", email="cora@northwind.example"):
    """Return the id of another member."""
    user_id = await store.create_user(
        bank.pool, bank.vault, email=email, first_name="Cora", last_name="Vale", now=anna.pages_clock.now
    )
    return await store.add_member(bank.pool, anna.customer_id, user_id, role=role, now=anna.pages_clock.now)


async def invite(browser, base, **fields):
    await browser.go(f"{base}/invite")
    return await browser.send(f"{base}/invite", **NEW | fields)


async def members(bank, anna):
    rows = await bank.pool.fetch(
        "SELECT member_id, role, status FROM membership WHERE customer_id = $1", anna.customer_id
    )
    return {row["member_id"]: (row["role"], row["status"]) for row in rows}


async def test_a_member_is_invited_resent_a_link_and_revoked_in_the_console(team_path, browser, emails):
    assert "Anna Lind (you)" in browser.text
    assert (await invite(browser, team_path)).status_code == 303
    await browser.follow()
    assert "The invitation is sent." in browser.text
    assert "Invited until Change BO Ben Ode ben@northwind.example Manager" in browser.text
    action = browser.page.text.partition(f'action="{team_path}/invitations/')[2].partition("/")[0]
    await browser.send(f"{team_path}/invitations/{action}/resend")
    await browser.follow()
    assert browser.questions == [f"{team_path}/invitations/{action}/revoke"]
    await browser.send(browser.questions[0])
    await browser.follow()
    assert "Ben Ode" not in browser.text
    assert "The invitation is revoked." in browser.text
    subjects = [subject for subject, _ in await emails()]
    assert subjects.count("Join Northwind") == 2


async def test_an_invalid_invitation_form_is_shown_again_with_its_input(team_path, browser):
    for fields, said in (
        ({"email": "ben@localhost"}, "The email address must be"),
        ({"phone_number": "12"}, "The phone number must be"),
        ({"role": ""}, "The role must be chosen."),
        ({"role": "SERVICE"}, "The role must be chosen."),
        ({"email": "anna@northwind.example"}, "There is a member, or an open invitation"),
    ):
        page = await invite(browser, team_path, **fields)
        assert page.status_code in {409, 422}
        assert said in " ".join([browser.text, *browser.mistakes.values()])
        assert bool(browser.mistakes) is (page.status_code == 422)
        assert 'value="Ben"' in page.text


async def test_a_member_role_and_status_are_changed_in_the_console(bank, team_path, anna, browser):
    member_id = await colleague(bank, anna)
    path = f"{team_path}/members/{member_id}"
    await browser.go(path)
    assert "Cora may See everything Pockets All of the company Signs in with No second factor yet" in browser.text
    assert "Approver Gains: approve transfers, confirm sensitive changes." in browser.text
    for form, expected in (
        ({"role": "APPROVER", "change": "role"}, ("APPROVER", "ACTIVE")),
        ({"change": "deactivate"}, ("APPROVER", "DEACTIVATED")),
        ({"change": "activate"}, ("APPROVER", "ACTIVE")),
    ):
        await browser.go(path)
        assert browser.questions == [path] * (expected[1] == "DEACTIVATED" or form["change"] == "role")
        page = await browser.post(path, form | {"csrf": browser.csrf})
        assert page.status_code == 303
        assert (await members(bank, anna))[member_id] == expected
    await browser.go(path)
    assert (await browser.post(path, {"csrf": browser.csrf})).status_code == 422


async def test_demoting_the_last_administrator_in_the_console_is_refused(bank, team_path, anna, browser):
    [own] = await members(bank, anna)
    await browser.go(f"{team_path}/members/{own}")
    await browser.send(f"{team_path}/members/{own}", role="VIEWER", change="role")
    assert browser.page.status_code == 409
    assert "the only active administrator" in browser.text
    assert (await members(bank, anna))[own] == ("ADMIN", "ACTIVE")


async def test_team_changes_require_a_recent_sign_in_and_a_valid_form_token(
    bank, team_path, anna, browser, pages_clock
):
    member_id = await colleague(bank, anna)
    path = f"{team_path}/members/{member_id}"
    await browser.go(path)
    form = {"change": "deactivate", "csrf": browser.csrf}
    assert (await browser.post(path, form | {"csrf": "x"})).status_code == 403
    assert (await browser.post(path, form, {"origin": "https://evil.example"})).status_code == 403
    pages_clock.forward(minutes=6)
    answer = await browser.post(path, form)
    assert (answer.status_code, answer.headers["location"][:9]) == (303, "/confirm?")
    for page in (path, f"{team_path}/invite"):
        assert (await browser.go(page)).headers["location"].startswith("/confirm?next=")
    for page in (f"{team_path}/invitations/{member_id}/resend", f"{team_path}/invitations/{member_id}/revoke"):
        answer = await browser.post(page, form)
        assert (answer.status_code, answer.headers["location"][:9]) == (303, "/confirm?")
    assert (await members(bank, anna))[member_id] == ("VIEWER", "ACTIVE")


async def test_team_changes_need_confirmation_when_a_rule_requires_it(bank, team_path, anna, browser):
    member_id = await colleague(bank, anna)
    key = {"public_key": new_key().pem}
    await browser.go(f"{team_path}/service-users/new")
    await browser.post(f"{team_path}/service-users", NEW_PROGRAM | {"csrf": browser.csrf})
    program = await bank.pool.fetchval("SELECT member_id FROM oauth_client")
    await hold_roles(bank, anna.customer_id)
    before = await members(bank, anna)
    for path, form in (
        (f"{team_path}/invite", NEW),
        (f"{team_path}/members/{member_id}", {"role": "ADMIN", "change": "role"}),
        (f"{team_path}/service-users", NEW_PROGRAM | key),
        (f"{team_path}/service-users/{program}/keys", key),
    ):
        browser.page = await browser.post(path, form | {"csrf": browser.csrf})
        assert (browser.page.status_code, "Waiting for approval" in browser.text) == (202, True), path
    assert "Nobody in the team can approve it" in browser.text
    assert await members(bank, anna) == before
    counts = "SELECT (SELECT count(*) FROM invitation), count(*) FROM client_key"
    assert tuple(await bank.pool.fetchrow(counts)) == (0, 1)
    rows = await bank.pool.fetch("SELECT action, request_id FROM authorization_request ORDER BY action")
    for row in rows:
        await confirm_as_operator(bank, anna.customer_id, row["request_id"])
        for _ in range(2):
            await apply_authorization_request(bank, anna.customer_id, row["request_id"])
    applied = await bank.pool.fetch("SELECT action, refused FROM authorization_request ORDER BY action")
    actions = ["member.invite", "member.update", "service_user.add_key", "service_user.create"]
    assert [tuple(row) for row in applied] == [(action, None) for action in actions]
    assert (await members(bank, anna))[member_id] == ("ADMIN", "ACTIVE")
    assert tuple(await bank.pool.fetchrow(counts)) == (1, 3)


async def test_a_viewer_can_see_the_team_but_not_change_it(bank, team_path, anna, browser):
    member_id = await colleague(bank, anna)
    await bank.pool.execute("UPDATE membership SET role = 'VIEWER' WHERE user_id = $1", anna.user_id)
    await browser.go(team_path)
    assert "Cora Vale" in browser.text
    assert "Invite" not in browser.text
    assert "<form" not in browser.page.text.partition("<main>")[2]
    token = {"csrf": browser.csrf}
    for path in (f"{team_path}/invite", f"{team_path}/members/{member_id}"):
        assert (await browser.go(path)).status_code == 403
        assert (await browser.post(path, token | NEW | {"change": "deactivate"})).status_code == 403
    assert (await members(bank, anna))[member_id] == ("VIEWER", "ACTIVE")


async def test_the_team_page_of_a_foreign_customer_returns_404(bank, team_path, anna, browser):
    member_id = await colleague(bank, anna)
    await as_owner(bank, "DELETE FROM membership WHERE user_id = $1", anna.user_id)
    token = browser.csrf
    for path in (team_path, f"{team_path}/invite", f"{team_path}/members/{member_id}", "/team/x"):
        assert (await browser.go(path)).status_code == 404
    assert (await browser.post(f"{team_path}/invite", NEW | {"csrf": token})).status_code == 404
    await browser.go("/team")
    assert "You are a member of no company" in browser.text
