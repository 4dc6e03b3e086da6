"""The account: browsers are signed out from here, passwords changed with the old one."""

from tests.web.steps import give_password
from tests.fixtures.pages import PASSWORD

NEW = "lantern-gravel-otter"


async def test_another_browser_is_signed_out_from_here(anna, new_browser):
    one, other = new_browser(), new_browser(address="198.51.100.4")
    await anna.sign_in(one)
    await anna.sign_in(other)
    await one.go("/account")
    [action] = [each for each in one.page.text.split('"') if each.endswith("/end")]
    await one.send(action)
    assert (await other.go("/account")).status_code == 303
    assert (await one.go("/account")).status_code == 200


async def test_all_others_are_signed_out_from_here(anna, new_browser):
    one, other = new_browser(), new_browser()
    await anna.sign_in(other)
    await anna.sign_in(one)
    await one.send("/account/sessions/end-others")
    assert (await other.go("/account")).status_code == 303
    assert (await one.go("/account")).status_code == 200


async def test_a_session_of_somebody_else_is_not_found(browser, signed_in, bank):
    foreign = "/account/sessions/8f3b6f60-0000-4000-8000-00000000aaaa/end"
    answer = await browser.post(foreign, {"csrf": browser.csrf})
    assert answer.status_code == 404


async def test_a_password_is_changed_with_the_old_one(anna, new_browser, emails):
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


async def test_the_last_factor_stays(browser, signed_in, bank):
    assert browser.questions == ["/account/authenticator/remove"]
    page = await browser.send("/account/authenticator/remove")
    assert page.status_code == 409
    assert await bank.pool.fetchval("SELECT count(*) FROM authenticator") == 1
