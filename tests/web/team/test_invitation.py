"""Mailed invitations: a new user joins, an existing user signs in first, and a different user is refused."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pyotp
import pytest
from tests.support.browser import first_match
from tests.support.oauth import company

from billfold.identity.members import store as member_store
from billfold.identity.members.rules import InviteMember
from billfold.identity.users import store as user_store
from billfold.ledger.types import Origin
from billfold.platform import ids
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.team import invitations
from billfold.team.administrator import Administrator

NEW = "lantern-gravel-otter"
BEN = "ben@northwind.example"


async def administrator(bank, pages_clock, customer_id, customer_name):
    """Return an administrator of a company."""
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=customer_id,
        customer_name=customer_name,
        member_id=ids.new(),
        user_id=None,
        client_id="",
        role="ADMIN",
        scopes=None,
        name="Anna Lind",
        origin=Origin.operator(),
        pages="https://auth.localhost:8443",
        now=await bank.now(),
        business_date=bank.calendars.business_date(await bank.now()),
        wall=pages_clock.now,
    )


@pytest.fixture
async def team_administrator(bank, anna):
    """The administrator of Anna's team."""
    return await administrator(bank, anna.pages_clock, anna.customer_id, customer_name="Northwind")


@pytest.fixture
def invite_ben(team_administrator, emails):
    """Invite a user; return the path of the mailed link."""

    async def invite(email=BEN, role="MANAGER"):
        wanted = InviteMember(first_name="Ben", last_name="Ode", email=email, phone_number="+12025550123", role=role)
        made = await invitations.invite(team_administrator, wanted)
        [text] = [text for subject, text in await emails() if subject == "Join Northwind"]
        return first_match(r"https://auth\.localhost:8443(/invitation\?link=\S+)", text), made

    return invite


async def test_an_invited_new_user_joins_with_password_and_second_factor(bank, browser, pages_clock, invite_ben):
    path, made = await invite_ben()
    await browser.go(path)
    assert "ben@northwind.example is invited as Manager." in browser.text
    page = await browser.send("/invitation", password=NEW, again=NEW, first_name="Benjamin")
    assert page.status_code == 303
    await browser.follow()
    await browser.follow()
    key = first_match(r'class="key">([A-Z2-7 ]+)<', browser.page.text).replace(" ", "")
    await browser.send("/set-up", code=pyotp.TOTP(key).at(pages_clock.now))
    await browser.follow()
    assert "Benjamin Ode (you)" in browser.text
    user = await user_store.find_user_by_email(bank.pool, bank.vault, BEN)
    assert user
    assert (user.email, user.email_verified_at, user.phone_number) == (BEN, pages_clock.now, "+12025550123")
    [membership] = await user_store.list_user_memberships(bank.pool, user.user_id)
    assert (membership.member_id, membership.role, membership.status) == (made.member_id, "MANAGER", "ACTIVE")
    assert await bank.pool.fetchval("SELECT count(*) FROM invitation") == 0
    entry = await bank.pool.fetchrow(
        "SELECT member_id, actor_name, resource_id FROM audit_entry WHERE action = 'member.joined'"
    )
    assert tuple(entry) == (made.member_id, "Benjamin Ode", str(made.member_id))


async def test_an_invitation_link_is_consumed_by_use_and_not_by_opening_it(new_browser, invite_ben):
    path, _ = await invite_ben()
    one, other = new_browser(), new_browser()
    for each in (one, other, one):
        assert (await each.go(path)).status_code == 200
    answers = await asyncio.gather(*(each.send("/invitation", password=NEW, again=NEW) for each in (one, other)))
    assert sorted(each.status_code for each in answers) == [303, 404]
    assert (await other.go(path)).status_code == 404
    assert "Ask the person who invited you" in other.text


async def test_a_weak_password_or_empty_name_does_not_consume_the_invitation_link(bank, browser, invite_ben):
    path, _ = await invite_ben()
    for fields, said in (
        ({"password": "short", "again": "short"}, "12 to 128"),
        ({"password": NEW, "again": NEW + "x"}, "typed differently"),
        ({"password": NEW, "again": NEW, "last_name": " "}, "The last name must be"),
    ):
        await browser.go(path)
        assert (await browser.send("/invitation", **fields)).status_code == 422
        assert said in browser.text
    assert await user_store.find_user_by_email(bank.pool, bank.vault, BEN) is None


async def test_an_invited_user_of_a_different_customer_signs_in_and_accepts(bank, anna, browser, emails):
    other_id = await company(bank.pool, "Contoso")
    by = await administrator(bank, anna.pages_clock, other_id, customer_name="Contoso")
    wanted = InviteMember(first_name="A", last_name="L", email=anna.email, phone_number=None, role="VIEWER")
    made = await invitations.invite(by, wanted)
    [(_, text)] = await emails()
    path = first_match(r"https://auth\.localhost:8443(/invitation\?link=\S+)", text)
    await browser.go(path)
    assert "There is an account for this address." in browser.text
    assert "next=%2Finvitation%3Flink%3D" in browser.page.text
    await browser.go("/sign-in")
    forged = {"csrf": browser.csrf, "link": path.partition("=")[2], "password": NEW, "again": NEW}
    assert (await browser.post("/invitation", forged)).status_code == 403
    await anna.sign_in(browser, path)
    await browser.send("/invitation")
    await browser.follow()
    assert "Contoso" in browser.text
    held = await user_store.list_user_memberships(bank.pool, anna.user_id)
    assert [(each.customer_name, each.role) for each in held] == [("Contoso", "VIEWER"), ("Northwind", "ADMIN")]
    assert held[0].member_id == made.member_id


async def test_an_invitation_for_a_different_address_is_refused_to_the_signed_in_user(anna, browser, invite_ben):
    path, _ = await invite_ben()
    await anna.sign_in(browser, path)
    assert "this invitation is for another address" in browser.text
    form = {"csrf": browser.csrf, "link": path.partition("=")[2]}
    assert (await browser.post("/invitation", form)).status_code == 403
    assert (await browser.go(path)).status_code == 200


@pytest.fixture
async def two_invitation_links(team_administrator, invite_ben, emails):
    """Two links of one invitation, the first one first, and its member."""
    path, made = await invite_ben()
    await invitations.resend_invitation(team_administrator, made.member_id)
    [(_, text)] = await emails()
    return path, first_match(r"https://auth\.localhost:8443(/invitation\?link=\S+)", text), made


async def test_several_invitation_links_are_valid_until_the_invitation_is_withdrawn(
    browser, team_administrator, two_invitation_links
):
    *links, made = two_invitation_links
    for each in links:
        assert (await browser.go(each)).status_code == 200
    await invitations.cancel_invitation(team_administrator, made.member_id)
    for each in links:
        assert (await browser.go(each)).status_code == 404


@pytest.mark.parametrize("used", [0, 1])
async def test_using_one_invitation_link_invalidates_the_others(bank, browser, two_invitation_links, used):
    *links, _ = two_invitation_links
    await browser.go(links[used])
    assert (await browser.send("/invitation", password=NEW, again=NEW)).status_code == 303
    for each in links:
        assert (await browser.go(each)).status_code == 404
    assert await bank.pool.fetchval("SELECT count(*) FROM earlier_link") == 0


async def test_an_earlier_invitation_link_expires_seven_days_after_its_own_email(
    bank, browser, team_administrator, pages_clock, invite_ben, emails
):
    path, made = await invite_ben()
    await emails()
    pages_clock.forward(days=3)
    later = replace(team_administrator, wall=pages_clock.now)
    await invitations.resend_invitation(later, made.member_id)
    [(_, text)] = await emails()
    newer = first_match(r"https://auth\.localhost:8443(/invitation\?link=\S+)", text)
    pages_clock.forward(days=4, seconds=-1)
    assert (await browser.go(path)).status_code == 200
    pages_clock.forward(seconds=1)
    assert (await browser.go(path)).status_code == 404
    assert (await browser.go(newer)).status_code == 200


async def test_an_invitation_link_expires_after_seven_days_on_the_bank_clock(bank, browser, invite_ben):
    path, _ = await invite_ben()
    await ClockStepper(bank).advance(timedelta(days=7))
    assert (await browser.go(path)).status_code == 404


async def test_an_invited_existing_user_without_a_password_sets_one_and_keeps_the_name(
    bank, browser, pages_clock, invite_ben
):
    await member_store.create_user(
        bank.pool, bank.vault, email=BEN, first_name="Benedict", last_name="Ode", now=pages_clock.now
    )
    path, _ = await invite_ben()
    await browser.go(path)
    page = await browser.send("/invitation", password=NEW, again=NEW)
    assert page.status_code == 303
    user = await user_store.find_user_by_email(bank.pool, bank.vault, BEN)
    assert user is not None
    assert user.name == "Benedict Ode"


async def test_an_invitation_of_a_user_deactivated_by_the_operator_is_refused(bank, browser, pages_clock, invite_ben):
    user_id = await member_store.create_user(
        bank.pool, bank.vault, email=BEN, first_name="Ben", last_name="Ode", now=pages_clock.now
    )
    async with bank.pool.acquire() as conn:
        await member_store.deactivate_user(conn, user_id)
    path, _ = await invite_ben()
    await browser.go(path)
    await browser.send("/invitation", password=NEW, again=NEW)
    assert browser.page.status_code == 409
    assert "shut by the operator" in browser.text
