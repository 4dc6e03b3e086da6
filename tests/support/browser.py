"""A minimal browser: cookies and forms, no scripts."""

import re
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from uuid import UUID

import httpx
from tests.support.applications import V2
from tests.support.oauth import KEYS, REDIRECT
from typing_extensions import override

from billfold.events.email import outbox
from billfold.platform.clock import wall_now

ORIGIN = "https://auth.localhost:8443"
FIREFOX = "Mozilla/5.0 (Macintosh; Intel Mac OS X 15.1) Gecko/20100101 Firefox/140.0"


def first_match(pattern, text):
    """Return the first group of a pattern's first match in a text; fail without a match."""
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
    """Return the forms of a page: the action of each, and its fields with their values."""
    parser = _Forms()
    parser.feed(text)
    return parser.forms


class Browser:
    """Opens pages and sends their forms; follows redirects only when asked."""

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
        """The CSRF token of the page, which its scripts send."""
        return first_match(r'name="csrf" value="([^"]+)"', self.page.text)

    @property
    def mistakes(self):
        """The error of each field marked as invalid, found by the ids in its `aria-describedby`."""
        marked = re.findall(r'<\w+([^>]*) aria-invalid="true" aria-describedby="([^"]+)"', self.page.text)
        return {first_match(r'id="([^"]+)"', field): self._described(ids) for field, ids in marked}

    def _described(self, ids):
        return " ".join(unescape(first_match(rf'id="{each}">([^<]+)<', self.page.text)) for each in ids.split())

    @property
    def questions(self):
        """The actions of the forms behind a confirmation."""
        return re.findall(r'<details class="ask">.*?<form method="post" action="([^"]+)"', self.page.text, re.DOTALL)

    @property
    def text(self):
        """The text of the page."""
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
        """Send a form that is on no page."""
        sent = {"origin": ORIGIN, **(headers or {})}
        sent = {name: value for name, value in sent.items() if value is not None}
        return await self.http.post(action, data=form, headers=sent)

    async def ask(self, path, body, *, csrf=None):
        """Send what the script would."""
        headers = {"origin": ORIGIN, "x-csrf": csrf or self.csrf}
        return await self.http.post(path, json=body, headers=headers)


def invite_path(application_id, *more):
    """Return where the invites of an application are."""
    return "/".join([f"{V2}{application_id}", *more]) + "/"


async def mailed(bank):
    """Return the e-mails that wait, by address: (subject, text)."""
    now, found_there = wall_now(), {}
    while rows := await outbox.claim_emails(bank.pool, now):
        for each in (outbox.open_email(row, bank.vault) for row in rows):
            await outbox.mark_email_sent(bank.pool, each.email_id, now)
            found_there[each.recipient] = (each.subject, each.text)
    return found_there


def link_in(email):
    """Return the path of the link of an e-mail."""
    return first_match(rf"{ORIGIN}(/onboarding\?link=\S+)", email[1])


class Guest(Browser):
    """A browser in which a link of an invite is opened; paths are below the invite's."""

    base = ""

    async def open(self, path, *, begins=True):
        """Open a mailed link, and begin."""
        await self.go(path)
        assert "link" not in self.page.headers["location"]
        self.base = self.page.headers["location"]
        await self.follow()
        if begins:
            await self.send(f"{self.base}/begin")
            await self.follow()
        return self

    async def at(self, path=""):
        """Load a page of the invite."""
        return await self.go(f"{self.base}/{path}".rstrip("/"))

    async def fill(self, path, go="next", **fields):
        """Fill in a step, whose fields have `__` for a dot, and send it."""
        await self.at(path)
        named = {name.replace("__", "."): value for name, value in fields.items()}
        return await self.send(f"{self.base}/{path}", **named, go=go)

    async def upload(self, document_id, content, *, kind="application/pdf", name="scan.pdf", **fields):
        """Send a file of a document with the form of the page."""
        await self.at("documents")
        form = {"csrf": self.csrf} | fields
        path = f"{self.base}/documents/{document_id}"
        sent = {"file": (name, content, kind)}
        self.page = await self.http.post(path, data=form, files=sent, headers={"origin": ORIGIN})
        return self.page


FORM = {
    "name": "Books",
    "description": "Keeps our books",
    "profile": "fapi2",
    "redirect_uris": f"{REDIRECT}\r\n\r\n http://127.0.0.1:8123/back \r\n",
    "post_logout_redirect_uris": "https://books.example/bye",
    "public_key": KEYS["ES256"].pem,
    "scope.pockets.read": "yes",
    "scope.openid": "yes",
    "refreshes": "yes",
}


def applications(anna):
    """Return where the applications of her company are."""
    return f"/companies/{anna.customer_id}/applications"


async def register(anna, browser, **changed):
    """Register an application with the form; return the path of its page."""
    await browser.go(f"{applications(anna)}/new")
    # A browser sends only the boxes that are ticked.
    form = {"csrf": browser.csrf, **FORM, **changed}
    form = {name: value for name, value in form.items() if value is not None}
    browser.page = await browser.post(applications(anna), form)
    return browser.page.headers.get("location", "").partition("?")[0] or None


def client_of(path):
    """Return the client_id in the path of an application's page."""
    return first_match(r"/applications/([0-9a-f]{32})\b", path)
