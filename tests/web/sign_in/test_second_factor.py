"""Codes: good once, few tries, asked for again before something delicate."""

from tests.web.steps import give_password


async def halfway(anna, browser):
    await give_password(browser, anna.email)
    await browser.follow()


async def test_a_code_is_taken_once(anna, new_browser):
    one, other = new_browser(), new_browser()
    await anna.sign_in(one)
    await halfway(anna, other)
    page = await other.send("/second-factor", code=anna.code)
    assert page.status_code == 422
    anna.pages_clock.forward(seconds=30)
    assert (await other.send("/second-factor", code=anna.code)).status_code == 303


async def test_a_code_is_wrong_when_it_is_a_minute_old(anna, browser):
    await halfway(anna, browser)
    old = anna.code
    anna.pages_clock.forward(seconds=61)
    assert (await browser.send("/second-factor", code=old)).status_code == 422


async def test_the_right_code_is_refused_when_five_were_wrong(anna, browser, emails):
    await halfway(anna, browser)
    for _ in range(5):
        anna.pages_clock.forward(seconds=10)
        assert (await browser.send("/second-factor", code="000000")).status_code == 422
    page = await browser.send("/second-factor", code=anna.code)
    assert page.status_code == 429
    assert int(page.headers["retry-after"]) > 14 * 60
    assert len(await emails()) == 1


async def test_the_lock_of_codes_stays_when_the_password_is_given_again(anna, browser):
    await halfway(anna, browser)
    for _ in range(5):
        anna.pages_clock.forward(seconds=10)
        await browser.send("/second-factor", code="000000")
    await halfway(anna, browser)
    assert (await browser.send("/second-factor", code=anna.code)).status_code == 429


async def test_half_a_session_ends_after_ten_minutes(anna, browser):
    await halfway(anna, browser)
    anna.pages_clock.forward(minutes=11)
    page = await browser.send("/second-factor", code=anna.code)
    assert page.headers["location"].startswith("/sign-in")


async def test_a_recent_factor_is_required_before_a_sensitive_change(anna, browser, signed_in):
    anna.pages_clock.forward(minutes=6)
    await browser.go("/account/password")
    assert browser.page.headers["location"] == "/confirm?next=%2Faccount%2Fpassword"
    await browser.follow()
    before = browser.cookie
    await browser.send("/confirm", code=anna.code)
    assert browser.cookie != before
    await browser.follow()
    assert "Change your password" in browser.text


async def test_nobody_confirms_with_a_wrong_code(anna, browser, signed_in):
    anna.pages_clock.forward(minutes=6)
    await browser.go("/confirm?next=%2Faccount%2Fpassword")
    assert (await browser.send("/confirm", code="000000")).status_code == 422
    assert (await browser.go("/account/password")).status_code == 303
