"""Responses of the site: caching, redirects, search, and unknown pages."""

import pytest


async def test_an_unchanged_documentation_page_returns_304(browser):
    for path in ("/docs/", "/docs/files/docs.css", "/docs/errors.md", "/docs/api/auth/openapi.json"):
        first = await browser.get(path)
        assert (first.headers["cache-control"], "set-cookie" in first.headers) == ("no-cache", False)
        again = await browser.get(path, headers={"if-none-match": f'"x", W/{first.headers["etag"]}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        assert (await browser.get(path, headers={"if-none-match": '"x"'})).status_code == 200


@pytest.mark.parametrize("slash", ["", "/"])
async def test_former_documentation_paths_redirect_to_the_current_page(browser, slash):
    for old, new in (("reference/errors", "errors"), ("reference/events.md", "events.md")):
        answer = await browser.get(f"/docs/{old}{slash if '.md' not in old else ''}")
        assert (answer.status_code, answer.headers["location"]) == (308, f"/docs/{new}")


async def test_a_missing_documentation_page_suggests_similar_pages(browser):
    answer = await browser.get("/docs/errors/pocket-not-emty")
    assert answer.status_code == 404
    assert 'href="/docs/errors/pocket-not-empty"' in answer.text
    assert 'href="/docs/search?q=pocket%20not%20emty"' in answer.text
    for path in (
        "/docs/files/../app.py",
        "/docs/files/%2e%2e/app.py",
        "/docs/%3Cscript%3E",
        "/docs/api/partner/",
        "/docs/x.md",
    ):
        answer = await browser.get(path)
        assert (answer.status_code, "<script>" in answer.text) == (200 if path.endswith("partner/") else 404, False), (
            path
        )


async def test_documentation_pages_allow_only_get_head_and_options(browser):
    answer = await browser.post("/docs/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert (await browser.options("/docs/")).headers["allow"] == "GET, HEAD, OPTIONS"
    head, get = await browser.head("/docs/"), await browser.get("/docs/")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(get.content)))


async def test_documentation_search_works_without_javascript(browser):
    for query, first in (
        ("idempotency key reused", "/docs/errors/idempotency-key-reused"),
        ("create wire", "/docs/api/partner/create_wire"),
        ("transfers.wire.in.success", "/docs/events/transfers.wire.in.success"),
        ("MICRO-deposits", "/docs/"),
        ("idempotencey key resued", "/docs/errors/idempotency-key-reused"),
    ):
        page = (await browser.get("/docs/search", params={"q": query})).text
        assert page.split('<ol class="results">')[1].split('href="')[1].startswith(first), query
    for query in ("", " ", "xyzzyx plugh", "<b>", '"', "%00", "a" * 5000, "." * 500):
        answer = await browser.get("/docs/search", params={"q": query})
        assert (answer.status_code, "<b>" in answer.text.split("<main")[1]) == (200, False), query
    titles = (await browser.get("/docs/search.json")).json()
    assert ["/docs/guides/webhooks#the-envelope", "Webhooks and the event stream", "The envelope"] in titles
