"""Everything that can be read over HTTP of a running sandbox: answers of both APIs, pages, and documents."""

import re
import time
from collections import Counter, deque
from html import unescape
from itertools import product
from typing import Any
from uuid import UUID, uuid5

import pyotp
from tests.reference.documents import DOCUMENTS
from tests.support.browser import forms_of

from billfold.reports.requests.renderers import RENDERERS
from billfold.reports.requests.schemas import REQUIRED
from billfold_client.local import local_client

LATER = {429, 503}
PATTERN_MAX = 12
"""Pages that are read of those which differ in their ids only, and as many queries of each."""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\d|[A-Z0-9]{9,}")
_LINK = re.compile(r'(?<!action)="(/[^"#]*)["#]')
_DOWNLOAD = re.compile(r"/downloads/[^\"\s]+")
_REPORTS, _REPORT = "/api/v1/report-requests/", re.compile(r"/api/v1/reports?/[0-9a-f-]{36}/?")
_CUSTOMERS = "/api/v1/customers/"
_STREAM = "text/event-stream"
LISTS = {
    "/api/v1/service-accounts/": "/api/v2/pockets/",
    "/api/v1/accounts/": "/api/v2/pockets/",
    "/api/v1/accounts/{account_id}/trades/": "/api/v2/trades/",
    "/api/v2/pockets/{pocket_id}/trades/": "/api/v2/trades/",
    "/api/v1/team/members/": "/api/v1/team/",
    "/api/v1/team/service-users/": "/api/v1/team/",
    "/api/v2/customers/": "/api/v1/customers/",
    "/api/v1/reports/": "/api/v1/report-requests/",
    "/api/v1/report/": "/api/v1/report-requests/",
}
"""Lists whose items are read below another path."""
GIVEN = {"/api/v1/routing-numbers/": ("021000021", "011000015")}
"""Values of path parameters that no list has."""


def get(http, path, method="GET", **request):
    """Return the answer, once the bank has time for it."""
    answer = http.request(method, path, **request)
    while answer.status_code in LATER:
        time.sleep(int(answer.headers.get("retry-after", 1)))
        answer = http.request(method, path, **request)
    return answer


class Reading:
    """Bodies by reader and path, with the status before them; `counts` tells how many of each kind."""

    def __init__(self):
        self.bodies: dict[tuple[str, str], bytes] = {}
        self.counts: Counter[str] = Counter()

    def keep(self, kind, reader, path, answer):
        self.counts[kind] += (reader, path) not in self.bodies
        self.bodies[reader, path] = b"%d " % answer.status_code + answer.content
        return answer


class Api:
    """Every read of an API, for every id that its lists have."""

    def __init__(self, http, name, reading, as_of):
        self._http, self._name, self._reading, self._as_of = http, name, reading, as_of
        self._reads = {path: ms["get"] for path, ms in DOCUMENTS[name]["paths"].items() if "get" in ms}
        self._items: dict[str, list[Any]] = {}

    def read_all(self, chosen):
        """Read now and as of a past instant, what a pattern finds in."""
        for template, operation in self._reads.items():
            if _STREAM in str(operation["responses"]) or not chosen.search(template):
                continue
            names = {each.get("name") for each in operation.get("parameters", [])}
            for path in self._expanded(template):
                self._read(path)
                if "as_of" in names:
                    self._read(f"{path}{'&' if '?' in path else '?'}as_of={self._as_of}")

    def _read(self, path):
        """Return the items of all pages."""
        if path not in self._items:
            self._items[path], page = [], path
            while page:
                answer = self._reading.keep("answers", self._name, page, get(self._http, page))
                self._fetch(_DOWNLOAD.findall(answer.text) + _DOWNLOAD.findall(answer.headers.get("location", "")))
                is_json = answer.is_success and "json" in answer.headers.get("content-type", "")
                body = answer.json() if is_json else None
                lists = body if isinstance(body, dict) else {"items": body}
                self._items[path] += next((each for each in lists.values() if isinstance(each, list)), [])
                page = lists.get("next_page")
                if _REPORT.fullmatch(path):
                    self._download(path, body)
                if page and not page.startswith("/"):
                    page = f"{path}{'&' if '?' in path else '?'}cursor={page}"
        return self._items[path]

    def _download(self, path, report):
        """Read each format of a report."""
        for each in report["formats"]:
            body = {"output_format": each["output_format"]}
            answer = get(self._http, f"{path.rstrip('/')}/download/", "POST", json=body)
            self._fetch(_DOWNLOAD.findall(answer.text))

    def _fetch(self, links):
        """Read the files of links, which are signed and expire."""
        for link in links:
            path = link.partition("?")[0]
            if ("", path) not in self._reading.bodies:
                self._reading.keep("documents", "", path, get(self._http, link))

    def _expanded(self, template):
        """Return the paths of a template."""
        found = re.fullmatch(r"(.*/)\{(\w+)\}(.*)", template)
        if not found:
            self._read(template)
            needs = self._reading.bodies[self._name, template].startswith(b"422")
            return [f"{template}?customer_id={each['id']}" for each in self._read(_CUSTOMERS)] if needs else [template]
        head, name, tail = found.groups()
        if head in GIVEN:
            return [f"{head}{value}{tail}" for value in GIVEN[head]]
        source = head if head in self._reads else LISTS.get(head, head)
        if source not in self._reads:
            return []
        items = [(path, each.get("event", each)) for path in self._expanded(source) for each in self._read(path)]
        return [
            f"{path if source == head else _filled(head, item)}{item.get(name, item.get('id'))}{tail}"
            for path, item in items
            if item.get(name, item.get("id"))
        ]


def _filled(head, item):
    """Return a path with ids of an item of another list."""
    return re.sub(r"\{account_id\}|\{pocket_id\}", lambda _: str(item.get("pocket_id")), head)


class Pages:
    """Every page that a person comes to by links."""

    def __init__(self, box, person, reading, unread):
        self._name, self._reading, self._unread = person.email.partition("@")[0], reading, unread
        self._http = local_client(box.auth_url, box.ca_file)
        self._origin = {"origin": box.auth_url}
        self._sign_in(person)

    def _sign_in(self, person):
        page = self._send(self._http.get("/sign-in"), "/sign-in", email=person.email, password=person.password)
        page = self._send(page, "/second-factor", code=pyotp.TOTP(person.totp_secret).now())
        self._home = page.url.path

    def _send(self, page, action, **fields):
        form = {**forms_of(page.text)[action], **fields}
        answer = self._http.post(action, data=form, headers=self._origin, follow_redirects=True)
        assert answer.is_success, answer.text
        return answer

    def read_all(self):
        waiting, seen, patterns = deque([self._home, "/"]), {self._home, "/"}, Counter[str]()
        while waiting:
            path = waiting.popleft()
            answer = get(self._http, path)
            if not self._unread.search(path):
                self._reading.keep("pages", self._name, path, answer)
            links = [answer.headers["location"]] if answer.is_redirect else []
            if "text/html" in answer.headers.get("content-type", ""):
                links += [unescape(each) for each in _LINK.findall(answer.text)]
            for link in links:
                bare, _, query = link.partition("?")
                pattern = _ID.sub("*", bare)
                patterns_of = (pattern, f"{pattern}?{_ID.sub('*', query)}")
                if link in seen or self._unread.search(link) or bare.startswith(("/static", "/docs", "/sign")):
                    continue
                if all(patterns[each] < PATTERN_MAX for each in patterns_of[query == "" :]):
                    patterns.update(patterns_of[query == "" :])
                    seen.add(link)
                    waiting.append(link)
        self._http.close()


def make_reports(http, days):
    """Have each report made of each customer in each format; wait until all are made."""
    customers = get(http, _CUSTOMERS).json()["items"]
    for customer, day, (type_, needed) in product(customers, days, REQUIRED.items()):
        pockets = get(http, f"/api/v2/customers/{customer['id']}/pockets/").json()["items"]
        values = {"pocket_ids": [each["id"] for each in pockets], "date": day, "date_to": day}
        values["date_from"] = f"{day[:8]}01"
        parameters = {"customer_id": customer["id"], **{name: values[name] for name in sorted(needed)}}
        formats = [each for kind, each in RENDERERS if kind == type_]
        key = {"x-service-idempotency": str(uuid5(UUID(customer["id"]), f"{type_} {day}"))}
        body = {"type": type_, "parameters": parameters, "output_formats": formats}
        assert get(http, _REPORTS, "POST", json=body, headers=key).status_code in {202, 422}, body
    while get(http, f"{_REPORTS}?status[]=PENDING&status[]=PROCESSING").json()["items"]:
        time.sleep(0.5)
