"""E-mailed links: first sign-in, forgotten password, and no information for strangers."""

import asyncio

import pyotp
from tests.support.browser import first_match
from tests.support.cases import in_one_bank
from tests.support.oauth import Member, Relying, program
from tests.web.steps import give_password, reset_link

from billfold.identity.members import store
from billfold.identity.users import email_links
from billfold.oauth import grants
from billfold.oauth.server.token import refresh

NEW = "lantern-gravel-otter"


async def test_a_new_user_sets_a_password_and_an_authenticator_and_is_signed_in(
    bank, anna, browser, pages_clock, emails
):
    user_id = await store.create_user(
        bank.pool, bank.vault, email="Ben@Northwind.example", first_name="Ben", last_name="Ode", now=pages_clock.now
    )
    async with bank.pool.acquire() as conn:
        secret = await email_links.create_link(conn, user_id, "welcome", now=pages_clock.now)
    await browser.go(f"/password?link={secret}")
    assert "ben@northwind.example" in browser.text
    await browser.send("/password", password=NEW, again=NEW)
    await browser.follow()
    await browser.follow()
    key = first_match(r'class="key">([A-Z2-7 ]+)<', browser.page.text).replace(" ", "")
    assert (await browser.send("/set-up", code="000000")).status_code == 422
    assert (await browser.send("/set-up", code=pyotp.TOTP(key).at(pages_clock.now))).status_code == 303
    await browser.follow()
    await browser.follow()
    assert "Ben Ode" in browser.text
    told = [subject for subject, _ in await emails()]
    assert told == ["Your password was changed", "Your second factor was changed"]


async def test_a_password_reset_ends_existing_sessions(anna, browser, new_browser, emails):
    other = new_browser()
    await anna.sign_in(other)
    await browser.go(await reset_link(browser, emails, anna.email))
    page = await browser.send("/password", password=NEW, again=NEW)
    assert page.status_code == 303
    assert (await other.go("/account")).status_code == 303
    await browser.follow()
    assert "Code from your authenticator app" in browser.text
    fresh = new_browser()
    assert (await give_password(fresh, anna.email)).status_code == 422


async def test_a_password_reset_revokes_every_token_and_code(bank, auth_app, anna, browser, emails):
    client = await program(bank.pool, "books", requires_nonce=False)
    books = Relying(bank, auth_app, client, person=Member(anna.user_id, anna.user_id, anna.customer_id))
    tokens, code = await books.tokens(), await books.code()
    await browser.go(await reset_link(browser, emails, anna.email))
    assert await books.is_good(tokens["access_token"])
    await browser.send("/password", password=NEW, again=NEW)
    assert not await books.is_good(tokens["access_token"])
    assert (await books.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await books.exchange(code)).json()["error"] == "invalid_grant"
    await books.close()


async def test_a_password_link_is_consumed_by_use_and_not_by_opening_it(anna, browser, new_browser, emails):
    path = await reset_link(browser, emails, anna.email)
    for _ in range(3):
        assert (await new_browser().go(path)).status_code == 200
    one, other = new_browser(), new_browser()
    await one.go(path)
    await other.go(path)
    assert (await one.send("/password", password=NEW, again=NEW)).status_code == 303
    assert (await other.send("/password", password=NEW, again=NEW)).status_code == 404
    assert (await browser.go(path)).status_code == 404


async def test_a_password_reset_link_expires_after_an_hour(anna, browser, emails, pages_clock):
    link = await reset_link(browser, emails, anna.email)
    pages_clock.forward(minutes=61)
    assert (await browser.go(link)).status_code == 404


async def test_a_token_refreshed_during_a_password_reset_is_revoked(bank, auth_app, anna):
    client = await program(bank.pool, "books", requires_nonce=False)
    books = Relying(bank, auth_app, client, person=Member(anna.user_id, anna.user_id, anna.customer_id))
    tokens = await books.tokens()
    async with bank.pool.acquire() as issuing, bank.pool.acquire() as ending:
        async with issuing.transaction():
            row = await issuing.fetchrow("SELECT jkt, issued_at FROM refresh_token")
            issued = await refresh(
                issuing, client, tokens["refresh_token"], scope=None, jkt=row["jkt"], now=row["issued_at"]
            )
            revoking = asyncio.create_task(grants.revoke_user_tokens(ending, anna.user_id))
            await asyncio.wait({revoking}, timeout=0.3)
        await revoking
    assert not await books.is_good(issued.access_token)
    await books.close()


async def test_a_password_reset_for_an_unknown_address_shows_the_same_page_and_sends_no_email(anna, browser, emails):
    said = []
    for email in (anna.email, "nobody@northwind.example"):
        await browser.go("/forgot")
        page = await browser.send("/forgot", email=email)
        said.append((page.status_code, browser.text.replace(email, "")))
    assert said[0] == said[1]
    assert len(await emails()) == 1


async def test_password_reset_emails_are_limited_to_one_per_minute(anna, browser, new_browser, emails, pages_clock):
    browsers = [browser, *(new_browser() for _ in range(8))]
    for each in browsers:
        await each.go("/forgot")
    await asyncio.gather(*(each.send("/forgot", email=anna.email) for each in browsers))
    await browser.go("/forgot")
    await browser.send("/forgot", email=anna.email)
    assert len(await emails()) == 1
    pages_clock.forward(seconds=61)
    await browser.go("/forgot")
    await browser.send("/forgot", email=anna.email)
    assert len(await emails()) == 1


async def test_a_second_reset_request_keeps_the_first_link_valid_until_one_is_used(
    bank, anna, browser, new_browser, emails, pages_clock
):
    first = await reset_link(browser, emails, anna.email)
    pages_clock.forward(seconds=61)
    second = await reset_link(browser, emails, anna.email)
    assert first != second
    assert (await new_browser().go(second)).status_code == 200
    await browser.go(first)
    assert (await browser.send("/password", password=NEW, again=NEW)).status_code == 303
    assert (await new_browser().go(second)).status_code == 404


async def test_password_reset_links_are_limited_per_day_without_revealing_it(bank, anna, browser, emails, pages_clock):
    for _ in range(12):
        await browser.go("/forgot")
        assert (await browser.send("/forgot", email=anna.email)).status_code == 200
        pages_clock.forward(seconds=61)
    assert len(await emails()) == 10


@in_one_bank(
    ("password", "again", "said"),
    [
        ("short", "short", "12 to 128"),
        ("northwind-anna", "northwind-anna", "too easy"),
        (NEW, NEW + "x", "typed differently"),
    ],
)
async def test_a_weak_new_password_is_refused(bank, anna, browser, password, again, said):
    async with bank.pool.acquire() as conn:
        secret = await email_links.create_link(conn, anna.user_id, "reset", now=anna.pages_clock.now)
    await browser.go(f"/password?link={secret}")
    page = await browser.send("/password", password=password, again=again)
    assert page.status_code == 422
    assert said in browser.text
