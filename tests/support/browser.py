"""A browser as far as pages need one: cookies, forms as they stand on the page, no script."""

import re
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from uuid import UUID

import httpx
from typing_extensions import override

ORIGIN = "https://auth.localhost:8443"
FIREFOX = "Mozilla/5.0 (Macintosh; Intel Mac OS X 15.1) Gecko/20100101 Firefox/140.0"


def found(pattern, text):
    """Return what the group of a pattern stands for in a text that must hold it."""
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


class _Forms(HTMLParser):
    """Collects the forms of a page: where each is sent, and what a browser would send of its fields."""

    def __init__(self):
        super().__init__()
        self.forms = {}
        self._fields: dict[str, str] | None = None
        self._open = ""  # the name of the select or of the textarea that is being read

    @override
    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "form":
            self._fields = self.forms.setdefault(given["action"], {})
        elif self._fields is None:
            return
        elif tag == "input" and "name" in given:
            if given.get("type") not in {"checkbox", "radio"} or "checked" in given:
                self._fields[given["name"] or ""] = given.get("value") or ""
        elif tag in {"select", "textarea"}:
            self._open = given["name"] or ""
            self._fields[self._open] = ""
        elif tag == "option" and "selected" in given:
            self._fields[self._open] = given["value"] or ""

    @override
    def handle_data(self, data):
        if self._open and self._fields is not None and self.lasttag == "textarea":
            self._fields[self._open] += data

    @override
    def handle_endtag(self, tag):
        if tag == "form":
            self._fields = None
        elif tag in {"select", "textarea"}:
            self._open = ""


def forms_of(text):
    """Return the forms of a page: where each is sent, and its fields as they stand there."""
    parser = _Forms()
    parser.feed(text)
    return parser.forms


class Browser:
    """Goes to pages and sends their forms; never follows anywhere by itself."""

    def __init__(self, pages_app, *, address="203.0.113.7", agent=FIREFOX):
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(pages_app, client=(address, 50_000)),
            base_url=ORIGIN,
            headers={"user-agent": agent},
        )
        self.page = httpx.Response(204)
        self.home = "/account"
        self.user_id: UUID | None = None

    async def close(self):
        await self.http.aclose()

    @property
    def cookie(self):
        """The session's cookie."""
        return self.http.cookies.get("__Host-session")

    @property
    def csrf(self):
        """What scripts of the page would send."""
        return found(r'name="csrf" value="([^"]+)"', self.page.text)

    @property
    def mistakes(self):
        """What is said of each field that is marked as wrong, found by the ids in its `aria-describedby`."""
        marked = re.findall(r'<\w+([^>]*) aria-invalid="true" aria-describedby="([^"]+)"', self.page.text)
        return {found(r'id="([^"]+)"', field): self._described(ids) for field, ids in marked}

    def _described(self, ids):
        return " ".join(unescape(found(rf'id="{each}">([^<]+)<', self.page.text)) for each in ids.split())

    @property
    def questions(self):
        """Where the forms are sent that stand behind a question."""
        return re.findall(r'<details class="ask">.*?<form method="post" action="([^"]+)"', self.page.text, re.DOTALL)

    @property
    def text(self):
        """What stands on the page."""
        words = re.sub(r"<[^>]+>", " ", re.sub(r"<title>.*?</title>", "", self.page.text))
        return re.sub(r"\s+", " ", unescape(words)).strip()

    async def go(self, path):
        """Load a page, whose headings must be an outline: those who cannot see it move by them."""
        self.page = await self.http.get(path)
        levels = [int(each) for each in re.findall(r"<h([1-6])[ >]", self.page.text)]
        assert levels[:1] in ([], [1]), (path, levels)
        assert all(below <= above + 1 for above, below in pairwise(levels)), (path, levels)
        return self.page

    async def follow(self):
        """Go where the answer points."""
        assert self.page.status_code == 303, self.page.status_code
        return await self.go(self.page.headers["location"])

    async def send(self, action, headers=None, **fields):
        """Fill in the form of this page that is sent to `action`, and send it."""
        full = {**forms_of(self.page.text)[action], **fields}
        form = {name: value for name, value in full.items() if value is not None}
        self.page = await self.post(action, form, headers)
        return self.page

    async def post(self, action, form, headers=None):
        """Send a form that stands on no page."""
        sent = {"origin": ORIGIN, **(headers or {})}
        sent = {name: value for name, value in sent.items() if value is not None}
        return await self.http.post(action, data=form, headers=sent)

    async def ask(self, path, body, *, csrf=None):
        """Send what the script would."""
        headers = {"origin": ORIGIN, "x-csrf": csrf or self.csrf}
        return await self.http.post(path, json=body, headers=headers)
