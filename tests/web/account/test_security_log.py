"""Audit log entries and alerts about sign-ins and credentials of team members."""

import msgspec
from tests.fixtures.pages import PASSWORD
from tests.support.events import notified
from tests.support.oauth import company
from tests.web.steps import give_password

from billfold.audit import store as audit_store
from billfold.audit.rules import EntryFilter
from billfold.identity.members import store as member_store


async def log_of(bank, customer_id):
    wanted = EntryFilter(customer_id=customer_id)
    rows = await audit_store.list_entries(bank.pool, wanted, descending=False, limit=100)
    return [(row.action, row.outcome, msgspec.json.decode(row.details)) for row in rows]


async def alerts(bank):
    rows = await notified(bank)
    assert {kind for kind, _ in rows} <= {"SECURITY_ALERT"}
    return [description for _, description in rows]


async def test_a_sign_in_is_audited_in_every_team_of_the_user(bank, anna, browser):
    other = await company(bank.pool)
    left = await company(bank.pool)
    for customer_id in (other, left):
        await member_store.add_member(bank.pool, customer_id, anna.user_id, role="VIEWER", now=anna.pages_clock.now)
    await member_store.deactivate_member(bank.pool, left, anna.user_id, now=anna.pages_clock.now)
    await anna.sign_in(browser)
    for customer_id in (anna.customer_id, other):
        assert await log_of(bank, customer_id) == [("user.login", "SUCCESS", {"proved": ["pwd", "otp"]})]
    assert await log_of(bank, left) == []
    wanted = EntryFilter(customer_id=other)
    (row,) = await audit_store.list_entries(bank.pool, wanted, limit=9)
    assert (row.actor, row.actor_name, row.resource_id) == ("MEMBER", "Anna Lind", str(anna.user_id))
    assert row.member_id == await bank.pool.fetchval("SELECT member_id FROM membership WHERE customer_id = $1", other)
    assert row.ip_address


async def test_a_failed_sign_in_is_audited_without_the_password(bank, anna, browser):
    await give_password(browser, anna.email, "not the password")
    await browser.send("/sign-in", email=anna.email, password=PASSWORD)
    await browser.follow()
    await browser.send("/second-factor", code="000000")
    assert await log_of(bank, anna.customer_id) == [
        ("user.login", "FAILURE", {"wrong": "password"}),
        ("user.login", "FAILURE", {"wrong": "code"}),
    ]
    assert await alerts(bank) == []


async def test_a_locked_account_notifies_the_administrators(bank, anna, browser, pages_clock, emails):
    boss = await member_store.create_user(
        bank.pool, bank.vault, email="boss@northwind.example", first_name="Bo", last_name="Berg", now=pages_clock.now
    )
    await member_store.add_member(bank.pool, anna.customer_id, boss, role="ADMIN", now=pages_clock.now)
    for _ in range(5):
        pages_clock.forward(minutes=1)
        await give_password(browser, anna.email, "not the password")
    log = await log_of(bank, anna.customer_id)
    assert ("user.locked", "FAILURE", {}) in log
    (description,) = await alerts(bank)
    assert "Five attempts to sign in as Anna Lind failed" in description
    # Anna gets her own letter, the other administrator the alert.
    assert sorted(subject for subject, _ in await emails()) == [
        "Security of Anna Lind's account",
        "Sign-in is paused for 15 minutes",
    ]


async def test_a_password_change_is_audited_and_notified(bank, anna, browser, signed_in):
    await browser.go("/account/password")
    new = "granite-velvet-harbour"
    await browser.send("/account/password", current=PASSWORD, password=new, again=new)
    changed = ("user.password_changed", "SUCCESS", {"change": "the password was changed"})
    assert (await log_of(bank, anna.customer_id))[-1] == changed
    assert await alerts(bank) == ["On the account of Anna Lind the password was changed."]
