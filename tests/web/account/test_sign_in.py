"""Signing in and out: passwords, lockout, and no information for strangers."""

import pytest
from tests.fixtures.pages import PASSWORD
from tests.support.oauth import program
from tests.web.steps import give_password

from billfold.identity.members import store
from billfold.identity.users import lockout

NEW = "lantern-quarry-tundra"


async def test_a_user_is_signed_in_with_both_factors(anna, browser):
    page = await anna.sign_in(browser)
    assert page.status_code == 200
    assert "Anna Lind" in browser.text
    assert "Northwind" in browser.text


async def test_a_password_without_a_second_factor_opens_no_page(anna, browser):
    await give_password(browser, anna.email)
    page = await browser.go("/account")
    assert page.status_code == 303
    assert page.headers["location"] == "/second-factor?next=%2Faccount"


async def test_pages_redirect_to_sign_in_and_back_when_signed_out(browser, anna):
    page = await browser.go("/applications")
    assert page.headers["location"] == "/sign-in?next=%2Fapplications"
    await anna.sign_in(browser, "/applications")
    assert "No application has access" in browser.text


async def test_a_failed_sign_in_shows_the_same_page_for_an_unknown_address(anna, browser):
    said = []
    for email in (anna.email, "nobody@northwind.example"):
        page = await give_password(browser, email, "not the password")
        said.append((page.status_code, browser.text))
    assert said[0] == said[1]
    assert said[0][0] == 422


async def test_sign_in_with_an_unknown_address_also_verifies_a_password(anna, new_browser, unknown_accounts):
    """Verification takes most of the time: the two cases have the same response time."""
    browser = new_browser()
    for email in (anna.email, "nobody@northwind.example"):
        await give_password(browser, email, "not the password")
    assert unknown_accounts == [False, True]


async def test_the_right_password_is_refused_after_five_wrong_ones(anna, browser, pages_clock, emails):
    await _fail(browser, anna.email, pages_clock, times=5)
    page = await give_password(browser, anna.email)
    assert page.status_code == 429
    assert int(page.headers["retry-after"]) > 14 * 60
    assert "15 minutes" in browser.text
    assert [subject for subject, _ in await emails()] == ["Sign-in is paused for 15 minutes"]
    pages_clock.forward(minutes=15)
    assert (await anna.sign_in(browser)).status_code == 200


async def test_failed_sign_ins_from_a_foreign_network_do_not_lock_known_browsers(
    anna, browser, new_browser, pages_clock
):
    await anna.sign_in(browser)
    await browser.send("/sign-out")
    stranger = new_browser(address="198.51.100.9")
    await _fail(stranger, anna.email, pages_clock, times=5)
    assert (await give_password(stranger, anna.email)).status_code == 429
    assert (await anna.sign_in(browser)).status_code == 200


async def test_a_known_browser_is_locked_after_five_wrong_passwords(anna, browser, pages_clock):
    await anna.sign_in(browser)
    await browser.send("/sign-out")
    await _fail(browser, anna.email, pages_clock, times=5)
    assert (await give_password(browser, anna.email)).status_code == 429


async def test_failed_foreign_sign_ins_do_not_block_a_password_change(anna, signed_in, new_browser, pages_clock):
    await _fail(new_browser(address="198.51.100.9"), anna.email, pages_clock, times=5)
    await signed_in.go("/account/password")
    page = await signed_in.send("/account/password", current=PASSWORD, password=NEW, again=NEW)
    assert (page.status_code, page.headers["location"]) == (303, "/account?done=password-changed")


async def test_an_unknown_email_address_is_locked_out_like_a_known_one(browser, pages_clock, emails):
    await _fail(browser, "nobody@northwind.example", pages_clock, times=5)
    page = await give_password(browser, "nobody@northwind.example")
    assert page.status_code == 429
    assert await emails() == []


async def test_the_sign_in_delay_doubles_with_every_failed_try(anna, browser, pages_clock):
    approval_response = []
    for _ in range(4):
        page = await give_password(browser, anna.email, "not the password")
        if page.status_code == 429:
            approval_response.append(int(page.headers["retry-after"]))
            pages_clock.forward(seconds=approval_response[-1])
            await give_password(browser, anna.email, "not the password")
    assert approval_response == [1, 2]


async def test_an_ip_address_trying_many_accounts_is_slowed_down(browser, pages_clock):
    for number in range(20):
        page = await give_password(browser, f"a{number}@b.example", "x")
        assert page.status_code == 422
    page = await give_password(browser, "another@b.example", "x")
    assert page.status_code == 429


async def test_a_locked_ip_address_does_not_lock_the_account_elsewhere(anna, new_browser, pages_clock, bank):
    address = lockout.ip_subject("198.51.100.9")
    async with bank.pool.acquire() as conn:
        for _ in range(address.pace.lock_after):
            pages_clock.forward(minutes=9)
            assert (await lockout.begin_attempt(conn, address, pages_clock.now)).wait_seconds == 0
    thief = new_browser(address="198.51.100.9")
    page = await give_password(thief, anna.email)
    assert page.status_code == 429
    assert int(page.headers["retry-after"]) == 15 * 60
    assert (await anna.sign_in(new_browser())).status_code == 200


async def test_the_session_cookie_changes_at_every_sign_in_step(anna, browser):
    planted = "A" * 43
    browser.http.cookies.set("__Host-session", planted, domain="auth.localhost")
    await browser.go("/sign-in")
    seen = {planted}
    await browser.send("/sign-in", email=anna.email, password=PASSWORD)
    assert browser.page.cookies["__Host-session"] not in seen
    seen.add(browser.page.cookies["__Host-session"])
    browser.http.cookies.delete("__Host-session", domain="auth.localhost")
    browser.http.cookies.set("__Host-session", seen.difference({planted}).pop())
    await browser.follow()
    anna.pages_clock.forward(seconds=30)
    await browser.send("/second-factor", code=anna.code)
    assert browser.page.cookies["__Host-session"] not in seen


async def test_the_session_cookie_is_http_only_and_same_site(browser):
    page = await browser.go("/sign-in")
    parts = {part.strip().lower() for part in page.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "secure", "path=/", "samesite=lax"} <= parts
    assert not any(part.startswith("domain") for part in parts)


@pytest.mark.parametrize(
    ("passed", "status"), [({"minutes": 29}, 200), ({"minutes": 31}, 303)], ids=["idle", "too long"]
)
async def test_a_session_expires_after_half_an_hour_of_inactivity(browser, signed_in, pages_clock, passed, status):
    pages_clock.forward(**passed)
    assert (await browser.go("/account")).status_code == status


BYE = "/sign-out?client_id=books&post_logout_redirect_uri=https%3A%2F%2Fbooks.example%2Fbye&state=s"


async def test_sign_out_requested_by_a_client_redirects_back_to_it(anna, browser, bank):
    await program(bank.pool, "books")
    await anna.sign_in(browser)
    await browser.go(BYE)
    assert "sent back to Books" in browser.text
    assert browser.page.headers["content-security-policy"].endswith("https://books.example")
    page = await browser.send("/sign-out")
    assert page.headers["location"] == "https://books.example/bye?state=s"
    await browser.go(BYE)
    assert "Go back to Books" in browser.text
    assert 'href="https://books.example/bye?state=s"' in browser.page.text


async def test_sign_out_ignores_an_unregistered_post_logout_redirect_uri(anna, browser, bank):
    await program(bank.pool, "books")
    await anna.sign_in(browser)
    for wrong in (BYE.replace("bye", "by"), BYE.replace("books&", "ledger&")):
        assert (await browser.go(wrong)).status_code == 400
    await browser.go(BYE)
    page = await browser.send("/sign-out", post_logout_redirect_uri="https://evil.example")
    assert page.status_code == 400
    assert (await browser.go("/account")).status_code == 200


async def test_an_active_session_expires_after_twelve_hours(browser, signed_in, pages_clock):
    for _ in range(47):
        pages_clock.forward(minutes=15)
        assert (await browser.go("/account")).status_code == 200
    pages_clock.forward(minutes=16)
    assert (await browser.go("/account")).status_code == 303


async def test_signing_out_deletes_the_session(browser, signed_in, bank):
    before = browser.cookie
    await browser.send("/sign-out")
    assert browser.page.status_code == 303
    await browser.follow()
    assert "You are signed out" in browser.text
    assert browser.cookie != before
    assert await bank.pool.fetchval("SELECT count(*) FROM session") == 0
    assert (await browser.go("/account")).status_code == 303


async def test_sign_out_requires_a_post(browser, signed_in):
    await browser.go("/sign-out")
    assert "Sign out?" in browser.text
    assert (await browser.go("/account")).status_code == 200


async def test_a_sign_in_from_a_new_browser_sends_an_email(anna, new_browser, emails):
    first = new_browser()
    await anna.sign_in(first)
    assert await emails() == []
    await first.send("/sign-out")
    await anna.sign_in(first)
    assert await emails() == []
    await anna.sign_in(new_browser(address="198.51.100.4"))
    [(subject, text)] = await emails()
    assert subject == "New sign-in to your account"
    assert "Firefox on macOS, from 198.51.100.4" in text


async def test_a_user_deactivated_by_the_operator_is_signed_out_immediately(anna, browser, signed_in, bank):
    async with bank.pool.acquire() as conn:
        await store.deactivate_user(conn, anna.user_id)
    assert (await browser.go("/account")).status_code == 303
    page = await give_password(browser, anna.email)
    assert page.status_code == 422


async def _fail(browser, email, pages_clock, *, times):
    for _ in range(times):
        pages_clock.forward(seconds=10)
        page = await give_password(browser, email, "not the password")
        assert page.status_code == 422
