"""`billfold bench console`: what a page costs, beside the read of the API that it shows; then CSV files of all rows.

Over HTTPS against one server in its default installation, one request at a time, as one person would: so that the
time of a page is that of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import msgspec

from benchmarks.company import CompanyPast, CompanySessions, fill
from benchmarks.csv_exports import bench_exports
from benchmarks.dataset import customer_of, pocket_of
from benchmarks.load_generator import Call, LoadResult, LoadTask, Sessions, load_process
from benchmarks.measurements import Figure, Log, Result, cpu_seconds, figure, peak_memory_of_server, rate
from benchmarks.server import Server
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database

PAGE_MS_MAX: Final = 150
PAGE_KB_MAX: Final = 100
_BYTES_PER_KB: Final = 1000
_MS_PER_SECOND: Final = 1000


class Page(msgspec.Struct, frozen=True):
    """A page of a company by its path, and the read of the API whose rows it shows."""

    name: str
    path: str
    read: str

    def call(self) -> Call:
        """Return the request of the page."""
        return _get(f"/companies/{customer_of(0)}{self.path}")

    def api_call(self) -> Call:
        """Return the request of the read."""
        return _get(self.read)


def bench_console(database: Database, sizes: Sizes, log: Log) -> Result:
    """Make the company, load every page and its read in every round, and return the figures."""
    with ExitStack() as stack:
        location = database.location("console")
        log(f"opening {sizes.pockets:,} Pockets with {sizes.history:,} transactions")
        company, past = fill(location, sizes.pockets, sizes.history, stack=stack)
        server = Server(location, workers=1)
        stack.callback(server.close)
        server.open()
        loader = load_process(server.ca)
        stack.callback(loader.close)
        pages = pages_of(past)
        outcomes: dict[str, list[LoadResult]] = {}
        spent: dict[str, list[float]] = {}
        for number in range(1, sizes.runs + 1):
            for page in pages:
                log(f"run {number}: {page.name}")
                allowed: CompanySessions = company.prepare(("sessions", 0))
                for name, call, own in (
                    (_read_of(page), page.api_call(), allowed.api),
                    (page.name, page.call(), allowed.pages),
                ):
                    task = _task(call, own, sizes.page_requests, server.port)
                    before = cpu_seconds(server.pid, database.pid)
                    outcomes.setdefault(name, []).append(loader.run(task))
                    cpu = (cpu_seconds(server.pid, database.pid) - before) / sizes.page_requests
                    spent.setdefault(name, []).append(_MS_PER_SECOND * cpu)
        sessions: CompanySessions = company.prepare(("sessions", 0))
        exports = bench_exports(server, database.pid, sessions.api, log)
        peaks = {"server worker": server.peak_of_worker(), **peak_memory_of_server(database.pid)}
    return Result(
        name="console",
        setting={
            "workers": 1,
            "connections": 1,
            "requests per run": sizes.page_requests,
            "company": {name: getattr(past, name) for name in ("pockets", "transactions", "of_first_pocket")},
        },
        figures=[*figures_of(pages, outcomes, spent), *exports],
        peak_memory_mib=peaks,
    )


def pages_of(past: CompanyPast) -> list[Page]:
    """Return every kind of page that reads what grows with a company."""
    pocket = pocket_of(0)
    of_pocket, days = f"pocket={pocket}", f"from={past.first_day}&to={past.first_day}"
    api_days = f"time_booked_from={past.first_day}&time_booked_to={past.first_day}"
    booked = f"book_date_from={past.first_day}&book_date_to={past.first_day}"
    own, trade = f"/pockets/{pocket}", f"/pockets/{pocket}/trades/{past.newest_trade}"
    moved, traded = "/api/v2/transactions/?limit=30", "/api/v2/trades/?limit=30"
    audit = "/api/v1/team"
    return [
        Page("home", "", "/api/v2/portfolio/"),
        Page("Pockets", "/pockets", "/api/v2/pockets/?limit=30"),
        Page("a Pocket", own, f"/api/v2{own}/"),
        Page("total explained", "/explain?field=total_value", "/api/v2/pockets/explain/?field=total_value"),
        Page("transactions", "/transactions", moved),
        Page("transactions, last page", f"/transactions?cursor={past.last_page}", f"{moved}&cursor={past.last_page}"),
        Page("transactions of a Pocket", f"/transactions?{of_pocket}", f"{moved}&pocket[]={pocket}"),
        Page("transactions of the first day", f"/transactions?{days}", f"{moved}&{api_days}"),
        Page("transactions of a rare type", "/transactions?type=FEE", f"{moved}&type[]=FEE"),
        Page("transactions of a type that never occurs", "/transactions?type=CARD", f"{moved}&type[]=CARD"),
        Page(
            "transactions of an amount that never occurs",
            "/transactions?amount_from=900000000",
            f"{moved}&amount_from=90000000000",
        ),
        Page(
            "transactions of a Pocket, of a type that never occurs",
            f"/transactions?type=CARD&{of_pocket}",
            f"{moved}&type[]=CARD&pocket[]={pocket}",
        ),
        Page(
            "trades that settle when none does",
            "/trades?settled_from=2001-01-01&settled_to=2001-01-02",
            f"{traded}&settlement_date_from=2001-01-01&settlement_date_to=2001-01-02",
        ),
        Page("trades", "/trades", traded),
        Page("trades of the first day", f"/trades?{days}", f"{traded}&{booked}"),
        Page("a trade", trade, f"/api/v2{trade}/"),
        Page("statements", "/statements", "/api/v1/statements/?limit=30"),
        Page("transfer requests", "/transfer-requests", "/api/v1/transfer-requests/?limit=30"),
        Page("approvals", "/approvals", "/api/v1/transfer-requests/?status=PENDING&limit=100"),
        Page("audit log", "/audit-log", f"{audit}/audit-logs/?limit=30"),
        Page(
            "audit log of a member",
            f"/audit-log?member={past.member}",
            f"{audit}/members/{past.member}/audit-logs/?limit=30",
        ),
        Page("events", "/developer/events", "/api/v1/events/?limit=30"),
    ]


def figures_of(
    pages: Sequence[Page], outcomes: dict[str, list[LoadResult]], spent: dict[str, list[float]]
) -> list[Figure]:
    """Return of each page its rate against that of its read, its times and costs, and how large the largest is."""
    figures = []
    for page in pages:
        found = outcomes[page.name]
        read = figure(_read_of(page), "per second", [rate([each.timing]) for each in outcomes[_read_of(page)]])
        figures += [
            read,
            figure(page.name, "per second", [rate([each.timing]) for each in found], against=read),
            figure(f"{page.name}, p50", "ms", [each.p50_ms for each in found]),
            figure(f"{page.name}, p99", "ms", [each.p99_ms for each in found], at_most=PAGE_MS_MAX),
            figure(f"{page.name}, server and database", "CPU ms", spent[page.name]),
        ]
    largest = max(each.largest for page in pages for each in outcomes[page.name])
    return [*figures, figure("largest page", "KB", [largest / _BYTES_PER_KB], at_most=PAGE_KB_MAX)]


def _read_of(page: Page) -> str:
    return f"API read: {page.name}"


def _task(call: Call, sessions: Sessions, requests: int, port: int) -> LoadTask:
    return LoadTask(calls=[call] * requests, port=port, credentials=sessions, connections=1)


def _get(address: str) -> Call:
    path, _, query = address.partition("?")
    return Call("GET", path, query)
