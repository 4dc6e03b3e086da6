"""`billfold bench console`: how long a person waits for each page, in a sandbox whose company has a past.

The pages are those that the routers declare. Somebody of each team, and each guest with a mailed link, follows links
from the pages whose addresses have no ids; a page that is not reached is named in the report. Requests are sent one
after the other over HTTPS, as by one person.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from html import unescape
from itertools import product
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks import screens
from benchmarks.company import DAYS_MAX, CompanySizes, open_company
from benchmarks.measurements import Figure, Result, figure, peak_memory_mib, percentile
from benchmarks.server import SandboxServer
from benchmarks.session import Session
from benchmarks.worker_processes import Worker, WorkloadError
from billfold.pages.theme import COOKIE
from billfold.platform.clock import monotonic
from billfold.sandbox.control_room import room
from billfold.sandbox.running_sandbox import SandboxFile, SandboxPerson, require_sandbox_file
from billfold.web.app import PACKAGES, page_routes
from billfold_client.local import local_client

HEALTH = "/health"
PAGE_MS_MAX = 150
LOADS = 20
"""Of each page in each run."""
_TRIES = 4
"""Addresses of one page from which a person follows links."""
_TYPED = {
    "/companies/{customer_id:str}/find": "q=suplier+00042",
    "/companies/{customer_id:str}/counterparties": "text=suplier+00042",
    "/bank/search": "q=250%2C000.00",
}
"""What people type on pages that search."""
_LINK = re.compile(r'href="(/[^"#]*)"')


class Found(NamedTuple):
    """An address of a declared page, and a client that may open it."""

    http: httpx.Client
    address: str


class PageFinder:
    """Looks for an address of every declared page; `others` are the paths that answer with a file or a redirect."""

    def __init__(self) -> None:
        routes = [each for package in (*PACKAGES, *room.PACKAGES) for each in page_routes(package)]
        paths = {path for each in routes if "GET" in each.http_methods for path in each.paths}
        in_order = sorted(paths, key=lambda path: (path.count("{"), path))
        self.left = {path: re.compile(re.sub(r"{(\w+):str}", r"(?P<\1>[^/?]+)", path)) for path in in_order}
        self._declared, self._ids = dict(self.left), dict[str, str]()
        self.found, self.others = dict[str, Found](), set[str]()

    def walk(self, http: httpx.Client, *typed: str) -> None:
        """Follow links from everywhere to everywhere, first from addresses that are typed."""
        queue, tried = deque([*typed, *(path for path in self._declared if "{" not in path)]), Counter[str]()
        seen = set(queue)
        while queue or (queue := deque(each for each in self._guessed() if each not in seen)):
            seen.update(queue)
            address = queue.popleft()
            path = self._path_of(address)
            if path is None or tried[path] >= _TRIES:
                continue
            tried[path] += 1
            links = self._links_of(path, Found(http, address))
            queue.extend(each for each in links if each not in seen)

    def _path_of(self, address: str) -> str | None:
        for path, pattern in self._declared.items():
            if (match := pattern.fullmatch(address.partition("?")[0])) is not None:
                self._ids = match.groupdict() | self._ids
                return path
        return None

    def _links_of(self, path: str, at: Found) -> Sequence[str]:
        """Return the links of an address, or where it leads to."""
        answer = at.http.get(at.address)
        if answer.has_redirect_location:
            self.others.add(path)
            return [answer.headers["location"]]
        if not answer.is_success:
            return ()
        if not answer.headers["content-type"].startswith("text/html"):
            self.others.add(path)
            return ()
        typed = f"{at.address.partition('?')[0]}?{_TYPED[path]}" if path in _TYPED else at.address
        self.found.setdefault(path, Found(at.http, typed))
        self.left.pop(path, None)
        return [unescape(each) for each in _LINK.findall(answer.text)]

    def _guessed(self) -> Iterator[str]:
        """Return addresses that no link led to, with ids of other pages."""
        for path in self.left:
            if self._declared[path].groupindex.keys() <= self._ids.keys():
                yield path.replace(":str", "").format_map(self._ids)


def _find_pages(session: Session, stack: ExitStack, company: Worker, box: SandboxFile, folder: Path) -> PageFinder:
    """Look for every page as each person, with one object of each kind."""
    company.call("forget_requests")
    finder = PageFinder()

    def client(person: SandboxPerson | None) -> httpx.Client:
        http: httpx.Client = stack.enter_context(local_client(box.auth_url, box.ca_file))
        if person is not None:
            http.cookies.set(COOKIE, company.call("sign_in", person.email))
        return http

    screens.send_forms(client(box.person), box)
    typed = screens.make_objects(box, folder)
    for who in (None, box.person, box.operators[0], box.partner_person):
        session.log(f"looking for pages of {who.email if who else 'anybody'}")
        company.call("forget_requests")
        finder.walk(client(who), *typed)
    for email, link, begins in screens.guests(box, folder):
        session.log(f"looking for pages of {email}")
        http = client(None)
        finder.walk(http, *(screens.begin_application(http, link) if begins else [link]))
    return finder


def bench_console(session: Session) -> Result:
    """Make the company, find every page, load each in every round, and return the figures."""
    share = session.sizes.history / 1_000_000
    days = min(DAYS_MAX, max(1, round(100 * share)))
    pockets, transactions, payees, requests = (max(4, round(full * share)) for full in (50, 20_000, 2_000, 200))
    sizes = CompanySizes(pockets, transactions, payees, requests, days)
    with ExitStack() as stack:
        server = stack.enter_context(SandboxServer(session.database.path / "sandbox"))
        company = stack.enter_context(Worker(open_company, folder=server.folder))
        box = require_sandbox_file(server.folder)
        session.log(f"living through {sizes}")
        company.call("live", box, sizes)
        health = stack.enter_context(local_client(box.base_url, box.ca_file))
        finder = _find_pages(session, stack, company, box, server.folder)
        spent = defaultdict[str, list[float]](list)
        for number, (path, page) in product(
            range(session.sizes.runs), {HEALTH: Found(health, HEALTH), **finder.found}.items()
        ):
            if path == HEALTH:
                session.log(f"run {number + 1} of {len(finder.found)} pages")
            company.call("forget_requests")
            spent[path] += [_load(page) for _ in range(LOADS)]
        peaks = {"server": server.peak_of_worker(), "this process": peak_memory_mib(os.getpid())}
    return Result(
        name="console",
        setting={
            **sizes._asdict(),
            "loads of a page": LOADS * session.sizes.runs,
            "not measured": ", ".join(finder.left.keys() - finder.others) or "none",
            "files and redirects": len(finder.left.keys() & finder.others),
        },
        figures=_figures(spent),
        peak_memory_mib=peaks,
    )


def _load(page: Found) -> float:
    """Return the milliseconds of a load of a page."""
    started = monotonic()
    answer = page.http.get(page.address)
    if answer.is_error:
        raise WorkloadError(f"{page.address}: {answer.status_code}")
    return 1e3 * (monotonic() - started)


def _figures(spent: dict[str, list[float]]) -> list[Figure]:
    base = figure(f"{HEALTH}, p50", "ms", [percentile(spent[HEALTH], 50)])
    figures = [base]
    for path, times in sorted(spent.items(), key=lambda each: -percentile(each[1], 99)):
        figures.append(figure(f"{path}, p99", "ms", [percentile(times, 99)], at_most=PAGE_MS_MAX))
        if path != HEALTH:
            figures.append(figure(f"{path}, p50", "ms", [percentile(times, 50)], against=base))
    return figures
