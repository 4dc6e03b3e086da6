"""Events, webhooks and their receivers."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Any
from uuid import UUID

from tests.support.oauth import company

from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import FileMasterKey
from billfold.events import sequencer
from billfold.events.notifications import notify
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import store, subscriptions
from billfold.events.webhooks.http_client import GuardedWebhookClient
from billfold.events.webhooks.worker import WebhookDispatcher
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault, associated_data

PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000aaaa")
OTHER_PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000bbbb")
NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)
RAISED = datetime(2025, 6, 2, 13, tzinfo=UTC)
BOTH, PARTNERS, CUSTOMERS = ("transfers.wire.in.success", "proofs.daily-root.published", "transfers.series.updated")
"""Kinds that both are told of, only the partner, only the customer."""


async def add_customer(conn, partner_id=PARTNER):
    return await company(conn, "Anna", partner_id=partner_id, opened_at=RAISED)


async def raise_event(conn, customer_id, kind=BOTH, *, seconds=0):
    """Write the customer's next event, in the transaction of the connection; return its id."""
    event_id = ids.new()
    await conn.execute(
        "INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at)"
        " SELECT $1, coalesce(max(event_no), 0) + 1, $2, $3, '{\"a\": 1}', $4"
        " FROM event WHERE customer_id = $1",
        customer_id,
        event_id,
        kind,
        RAISED + timedelta(seconds=seconds),
    )
    return event_id


async def tell(customer_desk, kind="FUNDS_RECEIVED", *, title="Money arrived", **fields):
    """Notify the team; return the number of notified members."""
    bank = customer_desk.bank
    async with bank.pool.acquire() as conn, conn.transaction():
        return await notify.notify(
            conn,
            bank.vault,
            UUID(customer_desk.team.customer),
            kind,
            title=title,
            description="A wire of $1.00.",
            now=wall_now(),
            **fields,
        )


async def notified(bank, customer_id=None):
    """Return type and description of the notifications of a customer, or of all, the first one first."""
    rows = await bank.pool.fetch(
        "SELECT customer_id, notification_id, type, description FROM notification"
        " WHERE $1::uuid IS NULL OR customer_id = $1 ORDER BY created_at",
        customer_id,
    )
    return [
        (kind, bank.vault.open_text(sealed, associated_data("notification", "description", row_id, tenant_id=owner)))
        for owner, row_id, kind, sealed in rows
    ]


LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
SECRET = "a secret of more than 24 characters"


def answer(status=200, *headers, body=b"", reason="OK"):
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {status} {reason}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class LastWords(bytes):
    """An answer after which a receiver hangs up."""

    __slots__ = ()


@dataclass
class Received:
    """One received request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self):
        return json.loads(self.body)

    @property
    def id(self):
        return self.headers["webhook-id"]


Script = Callable[[Received], Awaitable[bytes | None]]
"""What a receiver answers to a request; None hangs up."""


@dataclass
class Receiver:
    """Serves on a port of its own; `script` yields the bytes to answer, or waits, or hangs up."""

    script: Script | None = None
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    url: str = ""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while await self.serve_one(reader, writer):
                    pass
        finally:
            writer.transport.abort()

    async def serve_one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        got = Received(head[0].split(" ")[1], headers, body)
        self.requests.append(got)
        self.arrived.set()
        said = answer() if self.script is None else await self.script(got)
        if said is None:
            return False
        writer.write(said)
        await writer.drain()
        if isinstance(said, LastWords):
            writer.write_eof()
            await reader.read()
            return False
        return True

    async def count(self, number, seconds=10):
        """Wait until so many requests have come."""
        async with asyncio.timeout(seconds):
            while len(self.requests) < number:
                self.arrived.clear()
                if len(self.requests) < number:
                    await self.arrived.wait()
        return self.requests


@asynccontextmanager
async def receiving(script=None, *, ssl=None):
    """A receiver that listens while the context lasts."""
    receiver = Receiver(script)
    tasks: set[asyncio.Task[None]] = set()

    def serve(reader, writer):
        tasks.add(asyncio.create_task(receiver.serve(reader, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=ssl)
    port = server.sockets[0].getsockname()[1]
    receiver.url = f"{'http' if ssl is None else 'https'}://localhost:{port}/hook?a=1"
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def always(said):
    """A script that always answers the same."""

    async def script(_):
        return said

    return script


OWNER = Subscriber(PARTNER)
VAULT = Vault(bytes(range(32)))
KEYS = DataKeys(FileMasterKey(VAULT))


class WebhookScenario:
    """One customer whose events are told, couriers, and a clock that is turned by hand."""

    def __init__(self, pool, customer_id):
        self.pool, self.customer_id = pool, customer_id
        self.now = NOW
        self.failing = []

    async def subscribe(self, receiver, owner=OWNER, **fields):
        usual: dict[str, Any] = {"shared_secret": SECRET, "now": self.now}
        row = await subscriptions.create_subscription(
            self.pool, VAULT, owner, url=receiver.url, events=[BOTH], **usual | fields
        )
        return row.id

    async def happen(self, times=1):
        return [str(await raise_event(self.pool, self.customer_id)) for _ in range(times)]

    @asynccontextmanager
    async def dispatcher(self, **fields):
        """A dispatcher that runs during the block."""

        async def on_failing(_conn, failing):
            self.failing.append(failing)

        usual: dict[str, Any] = {"clock": lambda: self.now, "on_failing": on_failing, "pause_seconds": 0.01}
        stop = asyncio.Event()
        client = GuardedWebhookClient(allowed=LOOPBACK)
        dispatcher = WebhookDispatcher(self.pool, VAULT, KEYS, client, **usual | fields)
        work = asyncio.create_task(dispatcher.run(stop))
        yield
        stop.set()
        await work

    async def quiet(self, seconds=10):
        """Wait until no delivery is due or in progress at this time of the clock."""
        async with asyncio.timeout(seconds):
            while await self.pool.fetchval(
                "SELECT EXISTS (SELECT 1 FROM subscription_queue WHERE worker_no IS NOT NULL"
                " OR (due_at <= $1 AND coalesce(paused_until, $1) <= $1))",
                self.now,
            ):
                await asyncio.sleep(0.005)

    async def work(self):
        """Run a dispatcher until all due deliveries are done."""
        await sequencer.sequence_events(self.pool, now=self.now)
        async with self.dispatcher():
            await self.quiet()

    async def attempts(self, subscription_id):
        rows = await store.ATTEMPTS.rows(self.pool, subscription_id, None, limit=100)
        return [(row.response_code, row.response_message) for row in reversed(rows)]

    async def states(self, subscription_id):
        rows = await self.pool.fetch(
            "SELECT state FROM delivery WHERE subscription_id = $1 ORDER BY sequence", subscription_id
        )
        return [row[0] for row in rows]


PATIENCE_SECONDS = 10


class Listener:
    """One open stream. `headers` prove the request; leaving it hangs up."""

    def __init__(self, sample_app, host, headers, query=""):
        self._app = sample_app
        self._hung_up = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._sent = False
        self._text = ""
        self.status = 0
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "https",
            "path": "/api/v1/events/stream/",
            "raw_path": b"/api/v1/events/stream/",
            "query_string": query.encode(),
            "root_path": "",
            "client": ("127.0.0.1", 1),
            "server": (host, 443),
            "state": {},
            "headers": [(b"host", host.encode())]
            + [(name.encode(), value.encode()) for name, value in headers.items()],
        }

    async def __aenter__(self):
        self._task = asyncio.create_task(self._app(self.scope, self._receive, self._send))
        return self

    async def __aexit__(self, *_):
        self._hung_up.set()
        await asyncio.wait_for(self._task, PATIENCE_SECONDS)

    async def _receive(self):
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            await self._chunks.put(message.get("body", b""))
            if not message.get("more_body", False):
                await self._chunks.put(None)

    async def message(self):
        """Return the next message as (id, event, data); None at the end of the stream."""
        while "\n\n" not in self._text:
            chunk = await asyncio.wait_for(self._chunks.get(), PATIENCE_SECONDS)
            if chunk is None:
                return None
            self._text += chunk.decode()
        block, _, self._text = self._text.partition("\n\n")
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "data" not in fields:
            return await self.message()
        return fields.get("id"), fields.get("event"), json.loads(fields["data"])

    async def event(self):
        """Return the next event, heartbeats passed over."""
        while True:
            told = await self.message()
            if told is None or told[1] != "heartbeat":
                return told
