"""The account page: sign out browsers, change the password with the current one."""

from tests.fixtures.pages import PASSWORD
from tests.web.steps import give_password

NEW = "lantern-gravel-otter"


async def test_ending_a_session_signs_that_browser_out(anna, new_browser):
    one, other = new_browser(), new_browser(address="198.51.100.4")
    await anna.sign_in(one)
    await anna.sign_in(other)
    await one.go("/account")
    [action] = [each for each in one.page.text.split('"') if each.endswith("/end")]
    await one.send(action)
    assert (await other.go("/account")).status_code == 303
    assert (await one.go("/account")).status_code == 200


async def test_ending_all_other_sessions_keeps_the_current_one(anna, new_browser):
    one, other = new_browser(), new_browser()
    await anna.sign_in(other)
    await anna.sign_in(one)
    await one.send("/account/sessions/end-others")
    assert (await other.go("/account")).status_code == 303
    assert (await one.go("/account")).status_code == 200


async def test_ending_a_foreign_session_returns_404(browser, signed_in, bank):
    foreign = "/account/sessions/8f3b6f60-0000-4000-8000-00000000aaaa/end"
    answer = await browser.post(foreign, {"csrf": browser.csrf})
    assert answer.status_code == 404


async def test_changing_a_password_requires_the_old_one(anna, new_browser, emails):
    one, other = new_browser(), new_browser()
    await anna.sign_in(other)
    await anna.sign_in(one)
    await emails()
    await one.go("/account/password")
    wrong = await one.send("/account/password", current="x", password=NEW, again=NEW)
    assert (wrong.status_code, one.mistakes) == (422, {"current": "The current password is not right."})
    await one.send("/account/password", current=PASSWORD, password=NEW, again=NEW)
    assert one.page.status_code == 303
    assert [subject for subject, _ in await emails()] == ["Your password was changed"]
    assert (await other.go("/account")).status_code == 303
    assert (await give_password(other, anna.email)).status_code == 422
    assert (await give_password(other, anna.email, NEW)).status_code == 303


async def test_removing_the_last_second_factor_is_refused(browser, signed_in, bank):
    assert browser.questions == ["/account/authenticator/remove"]
    page = await browser.send("/account/authenticator/remove")
    assert page.status_code == 409
    assert await bank.pool.fetchval("SELECT count(*) FROM authenticator") == 1
