"""Consent: described in words, for one company, once; later listed and revoked."""

from urllib.parse import parse_qs, quote, urlsplit

import pytest
from tests.support.browser import first_match
from tests.support.oauth import ISSUER, REDIRECT, SCOPES, Relying, came, company, program

from billfold.identity.members import store
from billfold.oauth import grants
from billfold.platform.clock import wall_now


@pytest.fixture
async def books(bank, anna, auth_app, pages_clock):
    """A program that asks Anna."""
    pages_clock.now = wall_now()
    client = await program(bank.pool, "books", requires_nonce=False, scopes=(*SCOPES, "transfers.write"))
    made = Relying(bank, auth_app, client, person=anna)
    yield made
    await made.close()


async def asking(books, **changed):
    """Return the path of the page on which the person is asked."""
    return f"/consent?request={await books.waiting(**changed)}"


async def token_of(books, page):
    """Exchange the code that consent led to."""
    return (await books.exchange(came(page.headers["location"]).fields["code"])).json()["access_token"]


async def test_the_consent_page_shows_client_and_scopes_and_redirects_back(anna, browser, books, bank, emails):
    await anna.sign_in(browser, await asking(books, scope="openid pockets.read pockets.write transfers.write"))
    assert "Give Books access?" in browser.text
    assert "for Northwind" in browser.text
    assert f"Publisher {bank.settings.bank_name} Afterwards you are sent to books.example" in browser.text
    assert "Move money Request transfers and change counterparties Change Open, change" in browser.text
    assert "See See Pockets, what they are worth" in browser.text
    assert '<h2 class="group money">Move money</h2>' in browser.page.text
    policy = browser.page.headers["content-security-policy"]
    assert policy.endswith("form-action 'self' https://books.example")
    page = await browser.send("/consent", decision="grant")
    assert page.status_code == 303
    back = urlsplit(page.headers["location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == REDIRECT
    assert parse_qs(back.query).keys() == {"code", "state", "iss"}
    [(subject, text)] = await emails()
    assert subject == "Books has access to Northwind"
    assert "  - Know who you are" in text


async def test_refusing_consent_returns_access_denied_to_the_client(anna, browser, books, bank):
    await anna.sign_in(browser, await asking(books))
    page = await browser.send("/consent", decision="deny")
    told = parse_qs(urlsplit(page.headers["location"]).query)
    assert told["error"] == ["access_denied"]
    assert (told["iss"], told["state"]) == ([ISSUER], ["a state"])
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_grant") == 0


async def test_consent_can_be_given_only_once_per_request(anna, browser, books, bank):
    await anna.sign_in(browser, await asking(books))
    shown = browser.page
    assert (await browser.send("/consent", decision="grant")).status_code == 303
    browser.page = shown
    assert (await browser.send("/consent", decision="grant")).status_code == 404
    assert await bank.pool.fetchval("SELECT count(*) FROM authorization_code") == 1


async def test_consent_for_a_foreign_customer_is_refused(anna, browser, books, bank):
    other = await company(bank.pool, "Somebody else")
    await anna.sign_in(browser, await asking(books))
    page = await browser.send("/consent", decision="grant", customer=str(other))
    assert page.status_code == 422
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_grant") == 0


async def test_a_member_of_two_customers_chooses_one_at_consent(anna, browser, books, bank):
    other = await company(bank.pool, "Southwind")
    await store.add_member(bank.pool, other, anna.user_id, role="VIEWER", now=anna.pages_clock.now)
    await anna.sign_in(browser, await asking(books))
    assert "For which company?" in browser.text
    page = await browser.send("/consent", decision="grant", customer=str(other))
    access = await grants.find_access_token(bank.pool, await token_of(books, page), wall_now())
    assert access is not None
    assert access.customer_id == other
    assert access.role == "VIEWER"


async def test_withdrawing_access_revokes_tokens_immediately(anna, browser, books, bank):
    await anna.sign_in(browser, await asking(books))
    token = await token_of(books, await browser.send("/consent", decision="grant"))
    assert await grants.find_access_token(bank.pool, token, wall_now()) is not None
    await browser.go("/applications")
    assert "Books" in browser.text
    await browser.send(*browser.questions)
    await browser.follow()
    assert "The access is revoked." in browser.text
    assert "No application has access" in browser.text
    assert await grants.find_access_token(bank.pool, token, wall_now()) is None


@pytest.mark.parametrize("way", ["sign out", "deactivate"])
async def test_signing_out_or_leaving_revokes_granted_tokens_immediately(anna, browser, books, bank, way):
    await anna.sign_in(browser, await asking(books))
    token = await token_of(books, await browser.send("/consent", decision="grant"))
    await browser.go("/account")
    if way == "sign out":
        await browser.send("/sign-out")
    else:
        await store.deactivate_member(bank.pool, anna.customer_id, anna.user_id, now=anna.pages_clock.now)
    assert await grants.find_access_token(bank.pool, token, wall_now()) is None


@pytest.mark.parametrize("asked", [{"prompt": "login"}, {"max_age": "60"}], ids=["prompt login", "max_age"])
async def test_consent_asks_for_a_fresh_sign_in_when_the_client_requires_one(anna, browser, books, asked):
    anna.pages_clock.forward(minutes=-3)
    await anna.sign_in(browser)
    anna.pages_clock.now = wall_now()
    before = await asking(books)
    assert (await browser.go(before)).status_code == 200
    page = await asking(books, **asked)
    assert (await browser.go(page)).status_code == 303
    assert browser.page.headers["location"] == f"/confirm?next={quote(page, safe='')}"
    await browser.follow()
    assert (await browser.send("/confirm", code="000000")).status_code == 422
    assert (await browser.go(page)).status_code == 303
    await browser.follow()
    anna.pages_clock.forward(seconds=1)
    await browser.send("/confirm", code=anna.code)
    await browser.follow()
    assert browser.page.status_code == 200
    assert "Give Books access?" in browser.text


async def test_consent_without_the_required_fresh_sign_in_is_refused(anna, browser, books, bank):
    anna.pages_clock.forward(minutes=-3)
    await anna.sign_in(browser)
    anna.pages_clock.now = wall_now()
    await browser.go(await asking(books))
    shown = browser.page.text
    wanted = (await asking(books, prompt="login")).partition("request=")[2]
    asked = first_match(r'name="request" value="([^"]+)"', shown)
    form = {"csrf": browser.csrf, "request": wanted, "decision": "grant"}
    form["customer"] = str(anna.customer_id)
    assert asked != wanted
    answer = await browser.post("/consent", form)
    assert answer.headers["location"].startswith("/confirm?next=%2Fconsent")
    assert await bank.pool.fetchval("SELECT count(*) FROM oauth_grant") == 0


async def test_revoking_a_grant_of_a_different_user_does_nothing(anna, browser, books, bank, pages_clock):
    await anna.sign_in(browser, await asking(books))
    await browser.send("/consent", decision="grant")
    grant_id = await bank.pool.fetchval("SELECT grant_id FROM oauth_grant")
    async with bank.pool.acquire() as conn:
        stranger = await store.create_user(
            conn, bank.vault, email="eve@b.example", first_name="Eve", last_name="B", now=pages_clock.now
        )
        assert not await grants.revoke_grant(conn, user_id=stranger, grant_id=grant_id, now=pages_clock.now)
