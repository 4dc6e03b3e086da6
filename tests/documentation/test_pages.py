"""Every kind of page: its size, its resources, its links, and its Markdown."""

import re
from collections import Counter
from html.parser import HTMLParser
from zipfile import Path as ZipPath

import pytest
from hatchling.builders.wheel import WheelBuilder
from tests.architecture.pages import ROOT
from tests.architecture.worked import worked
from typing_extensions import override

from billfold.documentation import app
from billfold.documentation.app import Renderer, written_groups
from billfold.events.kinds import KINDS
from billfold.platform.problems import PROBLEMS

BYTES_MAX = 100_000
STYLE = "default-src 'none'; script-src 'self'; style-src 'self'"
FIGURES = (
    "cusip",
    "ask",
    "bid today",
    "bid tomorrow",
    "units",
    "cost",
    "residue",
    "mark",
    "total value",
    "slope",
    "gain",
)


class Tags(HTMLParser):
    """The tags of a page as an HTML parser sees them."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    @override
    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def values(self, name):
        return [attrs[name] for _, attrs in self.found if name in attrs]


@pytest.fixture(scope="module")
def checked_pages(documentation):
    """Every written page, and one in thirty of the generated ones."""
    pages = documentation.site.pages
    made = [each for each in pages if each.path.startswith(("/docs/api/", "/docs/errors/", "/docs/events/"))]
    heavy = [each for each in made if each.path.endswith(("/list_event_types", "/update_business_application"))]
    return [*(each for each in pages if each not in made), *made[::30], *heavy]


async def test_a_documentation_page_is_small_valid_and_self_contained(documentation, browser, checked_pages):
    known = {each.path for each in documentation.site.pages} | {"/docs", "/docs/llms.txt", "/docs/llms-full.txt"}
    for page in checked_pages:
        answer = await browser.get(page.path)
        tags = Tags(answer.text)
        assert (answer.status_code, len(answer.content) < BYTES_MAX) == (200, True), page.path
        assert not [name for tag, attrs in tags.found for name in attrs if name == "style" or name.startswith("on")]
        assert "<style" not in answer.text
        assert all("src" in attrs for tag, attrs in tags.found if tag == "script"), page.path
        assert Counter(tags.values("id")).most_common(1)[0][1] == 1, page.path
        assert len([tag for tag, _ in tags.found if tag == "h1"]) == 1, page.path
        for to in {*tags.values("href"), *tags.values("src")}:
            path, _, fragment = to.partition("#")
            if not path:
                assert fragment in {*tags.values("id")}, (page.path, to)
            elif not path.startswith(("/docs/files/", "/docs/search")) and not path.endswith("/openapi.json"):
                assert path.removesuffix(".md").rstrip("/") in known | {"/docs"}, (page.path, to)
        assert answer.headers["content-security-policy"].startswith(STYLE), page.path


async def test_links_between_documentation_pages_point_to_existing_headings(documentation, browser, checked_pages):
    anchors = {}
    for page in checked_pages:
        made = re.findall(r"\]\((/docs/[^)]*)", page.text())
        assert [to for to in made if documentation.site.find_link(page, to) is None] == [], page.path
        for to in Tags((await browser.get(page.path)).text).values("href"):
            path, _, fragment = to.partition("#")
            if path.startswith("/docs/") and fragment:
                if path not in anchors:
                    anchors[path] = {*Tags((await browser.get(path)).text).values("id")}
                assert fragment in anchors[path], (page.path, to)


async def test_every_error_and_every_event_has_a_page(documentation, browser):
    paths = {each.path for each in documentation.site.pages}
    assert {f"/docs/errors/{code}" for code in PROBLEMS} | {f"/docs/events/{name}" for name in KINDS} <= paths
    page = await browser.get("/docs/errors/pocket-not-empty/")
    assert (PROBLEMS["pocket-not-empty"].title in page.text, "What to do" in page.text) == (True, True)
    event = (await browser.get("/docs/events/transfers.wire.in.success.md")).text
    assert '"event_type": "transfers.wire.in.success"' in event


async def test_the_yield_page_computes_the_yield_of_the_entered_deposit(browser):
    page, numbers = (await browser.get("/docs/domain/yield.md")).text, worked()
    assert [name for name in FIGURES if numbers[name] not in page] == []
    other = (
        await browser.get("/docs/domain/yield", params={"amount": "1,000.50", "on": "2024-02-29", "weeks": 26})
    ).text
    assert ("$1,000.50" in other, "UST-26W" in other, "blockquote" in other) == (True, True, False)
    for wrong in (
        {"amount": "nan"},
        {"amount": "1e99"},
        {"on": "2999-01-01"},
        {"weeks": "<b>"},
        {"amount": "1" * 5000},
    ):
        answer = await browser.get("/docs/domain/yield", params=wrong)
        assert (answer.status_code, answer.text.count("<blockquote>")) == (200, 1), wrong


async def test_every_documentation_page_is_available_as_markdown(documentation, browser):
    for path, source in (("/docs/guides/webhooks", "docs/guides/webhooks.md"), ("/docs/changelog", "CHANGELOG.md")):
        answer = await browser.get(f"{path}.md")
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        assert answer.text == (ROOT / source).read_text().rstrip() + "\n"
    index, whole = (await browser.get("/docs/llms.txt")).text, (await browser.get("/docs/llms-full.txt")).text
    assert re.findall(r"\]\((\S+)\.md\)", index) == [each.path for each in documentation.site.pages]
    assert all(each.text().strip() in whole for each in documentation.site.pages[::40])


async def test_an_operation_page_links_to_try_it_only_in_a_sandbox(documentation, browser):
    path = "/docs/api/customer/create_pocket"
    assert "Try it" not in (await browser.get(path)).text
    shown = Renderer(documentation.site, "A Bank", tries_at="https://auth.localhost:8443")
    assert 'href="https://auth.localhost:8443/sandbox/try/customer/create_pocket"' in shown.page(
        *documentation.site.find(path)
    )


def test_an_installed_bank_has_the_same_pages_as_a_checkout(tmp_path, monkeypatch):
    written = {page.path: page.text() for group in written_groups() for page in group.pages}
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path))
    content = ZipPath(wheel, "billfold/documentation/content/")
    monkeypatch.setattr(app, "_installed", lambda: content)
    monkeypatch.setattr(app, "list_sources", app.list_sources.__wrapped__)
    assert {page.path: page.text() for group in written_groups() for page in group.pages} == written
