"""A bank on a Citus cluster shows, byte for byte, what one server shows after the same life."""

import asyncio
import os
import re
from contextlib import ExitStack
from datetime import datetime, timedelta
from io import BytesIO

import asyncpg
import pytest
from pypdf import PdfReader
from tests.support.databases import as_application, fresh_database
from tests.support.readings import Api, Pages, Reading, get, make_reports
from tests.support.sandbox_process import BOX, Sandbox, free_ports, perform

from billfold.ledger.scheduler import bank_customer_id
from billfold.platform.clock import wall_now
from billfold.platform.database import embedded
from billfold.platform.dates import et_date
from billfold.reports.statements.store import list_unfinished
from billfold.reports.statements.worker import STATEMENTS_LOCK
from billfold.sandbox.running_sandbox import customer_auth, partner_http
from billfold.wiring.cli_context import DATABASE
from billfold_client.local import local_client

pytestmark = pytest.mark.skipif("BILLFOLD_TEST_CITUS_URL" not in os.environ, reason="without a Citus cluster")

PLAYS = ("payday", "bad-week", "card-month")
PAUSE = 0.5
AROUND = 60
AS_OF = "2025-07-25T15:00:00Z"
REPORTED = ("2025-06-30", "2025-07-31")
_LEDGER = rf"ledger($|\\?|/{bank_customer_id(b'sandbox 7')})"
_OF_DESK = "desk|settlement|liquidity|reconciliation"
_RACES = rf"^/bank($|/({_LEDGER}|rails|{_OF_DESK}))|/sandbox/(dealers|desk|forks|tasks)/|^/sandbox"
_TRAFFIC = "/request-log/|/developer/requests|^(/bank)?/partners/sandbox$"
_ORDER = "/notifications|/events(/|$)|^/api/v2/transactions/($|\\?)"
_SALTS = r"proof|[.]zip$"
UNREAD = re.compile(f"{_RACES}|{_TRAFFIC}|{_ORDER}|{_SALTS}")
"""What two simulated dealers and the worker race for; what was asked of the bank; what happens to several customers at
one instant, in the order of its writing; what has random salts, or files with their time."""
DOCUMENTS = re.compile(r"/statements/|/reports?/|report-requests|/confirmation/")
REST = re.compile(rf"^(?!.*({DOCUMENTS.pattern}))(?!.*({UNREAD.pattern.replace('^', '')}))")


def _days():
    """Match the days of this run as pages write them, with the time."""
    days = [et_date(wall_now()) + timedelta(days=each) for each in (-1, 0, 1)]
    words = "|".join(f"{day:%b} {day.day}, {day.year}|{day:%B} {day.day}, {day.year}|{day}" for day in days)
    return rf"({words})(, \d+:\d\d [AP]M ET)?".encode()


DIFFERS = {
    "instants of the wall clock": rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.(?!000000)\d{6}Z",
    "days of the wall clock": _days(),
    "the identity of a request": rb'(?<="trace_id":")[0-9a-f]{32}',
    "an expiry by the wall clock, and its signature": rb"(?<=expires=)\d+(&amp;|&)signature=[\w-]+",
    "sealed with a random nonce": rb'(?<=_page":")[\w-]+|(?<=cursor=)[\w-]+',
    "signed with a random key": rb"eyJ[\w-]+\.[\w-]+\.[\w-]+",
    "a random key": rb'(?<=BEGIN PUBLIC KEY-----).*?(?=-----END)|(?<=hint key">)[\w-]{32,}|(?<=ES256 key )[\w-]{12}',
    "the number of a card, drawn by the processor": rb'(?:(?<="last_four":")|(?<= ending )|(?<=\xe2\x80\xa2 ))\d{4}',
    "tokens of a session": rb'(?:(?<=csrf=")|(?<="csrf" value=")|(?<="form_key" value=")|(?<=nonce=")|whsec_)[^"]+',
    "times of the wall clock's day": rb"(?<=>)\d+:\d\d [AP]M ET(?=<)|(?<=, )\d+:\d\d [AP]M ET(?=<)",
    "hashes with random salts": rb"\b[0-9a-f]{64}\b",
    "the number of a file": rb"(?<=,0000,)\d+(?=,,,2/)|\bB[AR][0-9A-F]{12}\b",
    "the length of that": rb'(?<=us-ascii","size_bytes":)\d+|(?<=<strong>BAI2</strong><span class="hint">)\d+',
}
"""What differs between two lives on the same server."""
LEAST = {"answers": 1400, "documents": 300, "pages": 700}
_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")


async def lived(sandbox, dsn_of, *afterwards):
    """Return what can be read after the story and the plays; play others afterwards."""
    reading = Reading()
    with ExitStack() as stack:
        stack.callback(sandbox.end)
        box = sandbox.wait_up().home()
        partner = stack.enter_context(partner_http(box))
        customer = stack.enter_context(local_client(box.customer_url, box.ca_file, customer_auth(box)))
        apis = [Api(partner, "partner", reading, AS_OF), Api(customer, "customer", reading, AS_OF)]
        conn = await asyncpg.connect(dsn_of())
        # Statements carry the time at which the worker comes to them: it does not while the clock moves.
        await conn.execute("SELECT pg_advisory_lock($1)", STATEMENTS_LOCK)
        play(partner, *PLAYS)
        now = await idle_at(partner)
        for api in apis:
            api.read_all(REST)
        await conn.execute("SELECT pg_advisory_unlock($1)", STATEMENTS_LOCK)
        while await list_unfinished(conn, now):
            await asyncio.sleep(PAUSE)
        await conn.close()
        make_reports(partner, REPORTED)
        for api in apis:
            api.read_all(DOCUMENTS)
        for person in (box.person, box.colleague, box.partner_person, *box.operators):
            Pages(box, person, reading, UNREAD).read_all()
        play(partner, *afterwards)
    return reading


def play(http, *names):
    for each in names:
        assert perform(http, f"scenarios/{each}/play/")[-1] == "Every row is as it was written."


async def idle_at(http):
    """Return the time of the clock at which nothing is due any more."""
    while True:
        clock = get(http, f"{BOX}/clock/").json()
        if clock["next_event_at"] > clock["now"]:
            return datetime.fromisoformat(clock["now"])
        await asyncio.sleep(PAUSE)


def comparable(reading, both):
    """Return what was read by reader and path, with a name for what differs; ids of one life are numbered."""
    names: dict[bytes, bytes] = {}

    def number(found):
        return found[0] if found[0] in both else names.setdefault(found[0], b"id %d" % len(names))

    def named(text):
        for name, pattern in DIFFERS.items():
            text = re.sub(pattern, name.encode(), text, flags=re.DOTALL)
        return _ID.sub(number, text)

    return {(reader, named(path.encode())): (named(body), body) for (reader, path), body in reading.bodies.items()}


def ids_of(reading):
    return {each for body in reading.bodies.values() for each in _ID.findall(body)}


def difference(here, raw_here, there, raw_there):
    """Return where two bodies begin to differ, but for the numbers of confirmations; nothing if they do not."""
    if here == there or printed(raw_here) == printed(raw_there):
        return None
    same = next((n for n, (x, y) in enumerate(zip(here, there, strict=False)) if x != y), 0)
    at = max(0, same - AROUND)
    return here[at : at + 3 * AROUND], there[at : at + 3 * AROUND]


def printed(pdf):
    """Return the words of a document without the number of a confirmation, which is part of an id."""
    if b"%PDF" not in pdf[:8]:
        return pdf
    words = "".join(page.extract_text() for page in PdfReader(BytesIO(pdf)).pages)
    return re.sub(r"\b[0-9A-F]{16}\b", "number", words)


async def test_a_life_on_a_cluster_is_read_byte_for_byte_as_on_one_server(pg_server, database_template, memory_folder):
    ports, limits = free_ports(2), {f"BILLFOLD_{kind}RATE_LIMIT_PER_MINUTE": "1000000" for kind in ("", "MONEY_")}

    def started(name, **settings):
        (memory_folder / name).mkdir()
        return Sandbox(memory_folder / name, "--seed", 7, ports=ports, **limits, **settings)

    alone = started("alone")
    here = await lived(alone, lambda: embedded.find_running(alone.state, DATABASE))
    async with fresh_database(pg_server, database_template) as dsn:
        urls = {"BILLFOLD_DATABASE_URL": as_application(dsn), "BILLFOLD_DATABASE_OWNER_URL": dsn}
        there = await lived(started("cluster", **urls), lambda: dsn, "bad-days")
    both = ids_of(here) & ids_of(there)
    one, other = comparable(here, both), comparable(there, both)
    assert one.keys() ^ other.keys() == set()
    differ = {key: difference(*pair, *other[key]) for key, pair in one.items()}
    assert {key: each for key, each in differ.items() if each} == {}
    assert here.counts == there.counts
    assert all(here.counts[kind] > least for kind, least in LEAST.items()), here.counts
