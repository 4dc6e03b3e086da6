"""Protections of every page: foreign forms, redirects and frames are refused; headers and names are present."""

import re
from urllib.parse import quote

import pytest
from litestar.routes import HTTPRoute
from tests.fixtures.pages import PASSWORD
from tests.support.browser import ORIGIN, first_match
from tests.support.cases import in_one_bank

from billfold.identity.users.totp import totp_uri
from billfold.web.page_context import redirect

SIGN_IN = "/sign-in"


def routes(pages_app, method):
    return sorted(
        route.path for route in pages_app.router.routes if isinstance(route, HTTPRoute) and method in route.methods
    )


def filled(path):
    known = {"name": "pages.css", "step": "business", "grant_id": "x"}
    return re.sub(r"{(\w+):\w+}", lambda each: known.get(each[1], "00000000-0000-4000-8000-000000000000"), path)


def test_a_redirect_location_is_encoded_for_the_header():
    signed = "https://app.example/a%2Fb?x='(1)'&y=[2]#here"
    assert redirect(signed).headers["location"] == signed
    assert redirect("/a \u2603\r\n?b=\u2603").headers["location"] == "/a%20%E2%98%83%0D%0A?b=%E2%98%83"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": ORIGIN}, 422),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 422),
        ({"origin": None, "sec-fetch-site": "same-origin"}, 422),
        ({"origin": "null", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "null", "sec-fetch-site": "same-site"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": None}, 403),
        ({"origin": ORIGIN + ".evil.example"}, 403),
        ({"origin": "http://auth.localhost:8443"}, 403),
        ({"origin": "https://evil.example", "sec-fetch-site": "same-origin"}, 403),
    ],
)
async def test_a_form_is_accepted_only_from_the_same_origin(browser, headers, status):
    await browser.go(SIGN_IN)
    page = await browser.send(SIGN_IN, headers, email="a@b.example", password="x")
    assert page.status_code == status


@in_one_bank(
    "to",
    [
        "//evil.example",
        "\\\\evil.example",
        "/\\evil.example",
        "https:evil.example",
        "https://evil.example/",
        "/%09/evil.example",
        "javascript:alert(1)",
        "/a//evil.example",
        "account",
        "/account\r\nx: y",
        "/./@evil.example",
        "/account#x",
    ],
)
async def test_a_redirect_to_a_foreign_site_is_refused(anna, browser, to):
    page = await browser.http.get(SIGN_IN, params={"next": to})
    assert page.status_code == 400
    await browser.go(SIGN_IN)
    page = await browser.send(SIGN_IN, email=anna.email, password=PASSWORD, next=to)
    assert page.status_code == 400


async def test_every_page_has_security_headers_and_no_inline_code(pages_app, browser, signed_in, new_browser):
    for client_info in (browser, new_browser()):
        for path in routes(pages_app, "GET"):
            page = await client_info.go(filled(path))
            if path.startswith("/files/"):
                continue
            policy = page.headers["content-security-policy"]
            assert "default-src 'none'" in policy, path
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert page.headers["x-frame-options"] == "DENY"
            assert page.headers["x-content-type-options"] == "nosniff"
            assert page.headers["referrer-policy"] == "no-referrer"
            assert page.headers["cache-control"] == "no-store"
            assert "strict-transport-security" in page.headers
            assert page.headers["x-service-clock"] == "2025-06-02T13:00:00.000000Z"
            assert not [each for each in ("style=", "<style", "onclick", "<script>") if each in page.text]


async def test_a_file_is_kept_under_the_address_of_its_version_and_revalidated_elsewhere(browser):
    await browser.go(SIGN_IN)
    own = first_match(r'href="(/files/[0-9a-f]{32}/pages.css)"', browser.page.text)
    kept = await browser.http.get(own)
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "set-cookie" not in kept.headers
    assert (await browser.http.get(own.replace("pages.css", "source-sans.woff"))).content[:4] == b"wOFF"
    for address in ("/files/pages.css", f"/files/{'0' * 32}/pages.css"):
        asked = await browser.http.get(address)
        assert (asked.content, asked.headers["cache-control"]) == (kept.content, "public, no-cache"), address
        again = await browser.http.get(address, headers={"if-none-match": f'"x", W/{asked.headers["etag"]}'})
        assert (again.status_code, again.content) == (304, b"")
    for wrong in (own.replace("pages.css", "app.py"), f"{own}/pages.css", own.replace("pages.css", "..%2Ftheme.py")):
        assert (await browser.http.get(wrong)).status_code == 404, wrong


async def test_pages_authenticator_apps_and_passkeys_show_the_bank_name(browser, anna, bank):
    name = bank.settings.bank_name
    await anna.sign_in(browser)
    for path in ("/account", "/nothing"):
        page = await browser.go(path)
        assert f" - {name}</title>" in page.text
        assert f">{name}</a>" in page.text
    await browser.go("/account")
    assert (await browser.ask("/passkeys/options", {})).json()["rp"]["name"] == name
    assert totp_uri(anna.secret, anna.email, issuer=name).endswith(f"issuer={quote(name)}")


async def test_an_error_page_has_the_same_security_headers(browser):
    for path in ("/nothing", "/files/nothing.css", "/consent?request=x"):
        page = await browser.go(path)
        if page.status_code != 303:
            assert page.status_code == 404
            assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
            assert page.headers["content-type"].startswith("text/html")


async def test_successful_form_submissions_redirect_with_303(pages_app, anna, browser):
    await browser.go(SIGN_IN)
    answers = [await browser.send(SIGN_IN, email=anna.email, password=PASSWORD)]
    await browser.follow()
    answers.append(await browser.send("/second-factor", code=anna.code))
    await browser.follow()
    await browser.follow()
    answers.append(await browser.send("/sign-out"))
    assert [answer.status_code for answer in answers] == [303, 303, 303]


async def test_a_form_with_a_repeated_field_is_refused(browser):
    await browser.go(SIGN_IN)
    body = f"csrf={browser.csrf}&email=a%40b.example&email=c%40d.example&password=x"
    answer = await browser.http.post(
        SIGN_IN, content=body, headers={"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    )
    assert answer.status_code == 400


async def test_typed_input_is_escaped_on_pages(browser):
    await browser.go(SIGN_IN)
    typed = '"><script>alert(1)</script>'
    page = await browser.send(SIGN_IN, email=typed, password="x")
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;" in page.text


async def test_form_submissions_from_one_address_are_rate_limited(browser):
    await browser.go(SIGN_IN)
    statuses = [(await browser.post(SIGN_IN, {})).status_code for _ in range(301)]
    assert set(statuses[:300]) == {403}
    assert statuses[300] == 429
