"""Passkeys: added after a recent sign-in; each signs in without a password, bound to site, browser and counter."""

import pytest
from tests.support.passkey_device import PRESENT, Device
from tests.web.steps import give_password

MAKE, MADE = "/passkeys/options", "/passkeys"
ASK, SIGN = "/passkeys/sign-in/options", "/passkeys/sign-in"


async def add(browser, device):
    options = (await browser.ask(MAKE, {})).json()
    return await browser.ask(MADE, {"credential": device.make(options), "next": "/account"})


async def answer_of(browser, device):
    """Let a device answer the challenge of the sign-in page."""
    await browser.go("/sign-in")
    options = (await browser.ask(ASK, {})).json()
    return {"credential": device.sign(options), "next": ""}


async def sign_in(browser, device, to="/account"):
    sent = await answer_of(browser, device)
    return await browser.ask(SIGN, sent | {"next": to})


@pytest.fixture
async def device(anna, browser, emails):
    """A device on which Anna has made a passkey."""
    await anna.sign_in(browser)
    made = Device()
    answer = await add(browser, made)
    assert answer.json() == {"go": "/account"}
    assert "a passkey was added" in (await emails())[0][1]
    return made


async def test_a_passkey_signs_in_without_a_password(device, new_browser, emails):
    other = new_browser()
    answer = await sign_in(other, device, "/applications")
    assert answer.json() == {"go": "/applications"}
    assert (await other.go("/account")).status_code == 200
    assert [subject for subject, _ in await emails()] == ["New sign-in to your account"]


async def test_a_passkey_works_when_the_password_is_locked(device, anna, new_browser, pages_clock):
    attacker, own = new_browser(address="198.51.100.9"), new_browser()
    for _ in range(5):
        pages_clock.forward(seconds=10)
        await give_password(attacker, anna.email, "x")
    assert (await give_password(own, anna.email)).status_code == 429
    assert (await sign_in(own, device)).status_code == 200


async def test_a_passkey_is_the_second_factor_after_a_password(device, anna, new_browser):
    other = new_browser()
    await give_password(other, anna.email)
    await other.follow()
    options = (await other.ask(ASK, {})).json()
    assert len(options["allowCredentials"]) == 1
    await other.ask(SIGN, {"credential": device.sign(options), "next": ""})
    assert (await other.go("/account")).status_code == 200


async def test_a_passkey_response_is_accepted_once(device, new_browser):
    other = new_browser()
    sent = await answer_of(other, device)
    csrf = other.csrf
    assert (await other.ask(SIGN, sent)).status_code == 200
    other.http.cookies.clear()
    await other.go("/sign-in")
    assert (await other.ask(SIGN, sent)).status_code == 422
    assert csrf != other.csrf


async def test_a_passkey_response_from_a_different_browser_is_refused(device, new_browser):
    one, other = new_browser(), new_browser()
    await other.go("/sign-in")
    assert (await other.ask(SIGN, await answer_of(one, device))).status_code == 422


async def test_a_late_passkey_response_is_refused(device, new_browser, pages_clock):
    other = new_browser()
    sent = await answer_of(other, device)
    pages_clock.forward(minutes=6)
    assert (await other.ask(SIGN, sent)).status_code == 422


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("origin", "https://auth.localhost.example"),
        ("host", "example"),
        ("flags", PRESENT),
        ("count", -1),
        ("credential_id", b"somebody else's"),
    ],
    ids=["another site", "made for another site", "owner not seen", "a copy", "unknown"],
)
async def test_an_invalid_passkey_response_is_refused(device, new_browser, name, value):
    assert (await sign_in(new_browser(), device)).status_code == 200
    setattr(device, name, value)
    answer = await sign_in(new_browser(), device)
    assert answer.status_code == 422
    assert "not accepted" in answer.json()["wrong"]


async def test_creating_a_passkey_requires_a_recent_sign_in(browser, signed_in, pages_clock):
    pages_clock.forward(minutes=6)
    answer = await browser.ask(MAKE, {})
    assert answer.json() == {"go": "/confirm?next=%2Fset-up"}


async def test_creating_a_passkey_requires_the_second_factor(anna, browser):
    await give_password(browser, anna.email)
    await browser.follow()
    assert "second-factor" in (await browser.ask(MAKE, {})).json()["go"]
    answer = await browser.ask(MADE, {"credential": {}, "next": ""})
    assert "second-factor" in answer.json()["go"]


async def test_a_passkey_is_removed_unless_it_is_the_last_factor(device, browser, bank):
    await browser.go("/account")
    await browser.send("/account/authenticator/remove")
    await browser.follow()
    [path] = [each for each in _actions(browser) if "/passkeys/" in each]
    page = await browser.send(path)
    assert page.status_code == 409
    assert "only second factor" in browser.text
    assert await bank.pool.fetchval("SELECT count(*) FROM passkey") == 1


async def test_a_malformed_passkey_request_is_refused(browser):
    await browser.go("/sign-in")
    assert (await browser.ask(SIGN, {"credential": {"id": "x"}})).status_code == 422
    assert (await browser.ask(SIGN, [])).status_code == 400


def _actions(browser):
    return [part.split('"')[0] for part in browser.page.text.split('action="')[1:]]
