"""Codes of the second factor: valid once, limited attempts, required again before sensitive steps."""

from tests.web.steps import give_password


async def halfway(anna, browser):
    await give_password(browser, anna.email)
    await browser.follow()


async def test_a_second_factor_code_is_accepted_once(anna, new_browser):
    one, other = new_browser(), new_browser()
    await anna.sign_in(one)
    await halfway(anna, other)
    page = await other.send("/second-factor", code=anna.code)
    assert page.status_code == 422
    anna.pages_clock.forward(seconds=30)
    assert (await other.send("/second-factor", code=anna.code)).status_code == 303


async def test_a_one_minute_old_second_factor_code_is_refused(anna, browser):
    await halfway(anna, browser)
    old = anna.code
    anna.pages_clock.forward(seconds=61)
    assert (await browser.send("/second-factor", code=old)).status_code == 422


async def test_the_right_second_factor_code_is_refused_after_five_wrong_ones(anna, browser, emails):
    await halfway(anna, browser)
    for _ in range(5):
        anna.pages_clock.forward(seconds=10)
        assert (await browser.send("/second-factor", code="000000")).status_code == 422
    page = await browser.send("/second-factor", code=anna.code)
    assert page.status_code == 429
    assert int(page.headers["retry-after"]) > 14 * 60
    assert len(await emails()) == 1


async def test_repeating_the_password_does_not_clear_the_second_factor_lock(anna, browser):
    await halfway(anna, browser)
    for _ in range(5):
        anna.pages_clock.forward(seconds=10)
        await browser.send("/second-factor", code="000000")
    await halfway(anna, browser)
    assert (await browser.send("/second-factor", code=anna.code)).status_code == 429


async def test_a_session_without_second_factor_expires_after_ten_minutes(anna, browser):
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


async def test_confirming_with_a_wrong_code_is_refused(anna, browser, signed_in):
    anna.pages_clock.forward(minutes=6)
    await browser.go("/confirm?next=%2Faccount%2Fpassword")
    assert (await browser.send("/confirm", code="000000")).status_code == 422
    assert (await browser.go("/account/password")).status_code == 303
