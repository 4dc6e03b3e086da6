"""Every kind of page: its size, its resources, its links, and its Markdown."""

import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any, cast
from zipfile import Path as ZipPath

import httpx
import pytest
from hatchling.builders.wheel import WheelBuilder
from tests.architecture.pages import ROOT
from tests.architecture.worked import worked
from tests.reference.documents import DOCUMENTS
from typing_extensions import override

from billfold.documentation import app
from billfold.documentation.app import DocumentationApp, Renderer, written_groups
from billfold.documentation.operations import call_of
from billfold.documentation.samples import Home, OwnCall
from billfold.events.kinds import KINDS
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.settings import Settings

BYTES_MAX, FULL_TEXT_BYTES_MAX = 115_000, 200_000
MADE = ("/openapi.json", "/postman.json", "/bruno.zip", "/requests.http")
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
    known = {each.path for each in documentation.site.pages} | {"/docs", "/docs/llms.txt"}
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
            elif not path.startswith(("/docs/files/", "/docs/search")) and not path.endswith(MADE):
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
    index = (await browser.get("/llms.txt")).text
    assert re.findall(r"\]\((\S+)\.md\)", index) == [each.path for each in documentation.site.pages]
    parts = [await browser.get(path) for path in re.findall(r"\]\((\S+\.txt)\)", index)]
    assert {each.status_code for each in parts} == {200}
    assert max(len(each.content) for each in parts) <= FULL_TEXT_BYTES_MAX
    whole = "".join(each.text for each in parts)
    assert re.findall(r"^<!-- (\S+) -->$", whole, re.MULTILINE) == [each.path for each in documentation.site.pages]
    assert all(each.text().strip() in whole for each in documentation.site.pages[::40])


async def test_a_resource_has_a_page_with_its_object_states_operations_events_and_errors(documentation, browser):
    page = (await browser.get("/docs/api/partner/resources/wires.md")).text
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == ["The object", "States", "Operations", "Events", "Errors"]
    for shown in ("* `uetr` string", "`PROCESSING`", "/docs/api/partner/create_wire", "transfers.wire.out.queued"):
        assert shown in page, shown
    rows = re.findall(r"^\| \d+ \| \[`([\w-]+)`\].* \| (.+) \|$", page, re.MULTILINE)
    assert {"insufficient-funds": "Create wire", "not-found": "all"}.items() <= dict(rows).items()
    groups = [group for book in documentation.site.books[1:4] for group in book.groups[1:]]
    assert all("/resources/" in group.pages[0].path for group in groups)


async def test_samples_have_the_values_of_a_sandbox_only_where_it_gives_them(documentation, browser):
    path = "/docs/api/partner/get_pocket"
    asked = []

    async def own_values(operation, client):
        asked.append((operation.id, client))
        call = call_of(operation, {"pocket_id": "its-own"})
        return OwnCall(call, Home("prepare", "/box/sandbox.json"), "Nothing yet.") if client == "127.0.0.1" else None

    documents = {name: lambda name=name: DOCUMENTS[name] for name in DOCUMENTS}
    filled = DocumentationApp(Settings(), documents, own_values=own_values)
    plain = (await browser.get(f"{path}.md")).text
    for client, is_own in (("127.0.0.1", True), ("10.0.0.9", False)):
        transport = httpx.ASGITransport(cast("Any", filled), client=(client, 0))
        async with httpx.AsyncClient(transport=transport, base_url="https://acme.localhost") as reader:
            page, again = await reader.get(path), await reader.get(f"{path}.md")
            await reader.get("/docs/")
        assert ("its-own" in again.text, "Nothing yet." in page.text, again.text != plain) == (is_own,) * 3
        assert ('sandbox_partner("/box/sandbox.json")' in again.text, "prepare\n" in again.text) == (is_own, is_own)
    assert asked == [("get_pocket", client) for client in ("127.0.0.1", "127.0.0.1", "10.0.0.9", "10.0.0.9")]


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
