"""`billfold bench webhooks`: the delivery rate of events, also next to receivers that hang, and from a long queue.

One dispatcher, as in a worker, and receivers on this machine over http, the engine idle.
"""

from __future__ import annotations

import asyncio
import re
from ipaddress import ip_network
from typing import cast

from typing_extensions import override

from benchmarks import dataset
from benchmarks.bank_workload import BankWorkload
from benchmarks.dataset import PARTNER, submit_commands
from benchmarks.measurements import Result, Timing, figure, rate
from benchmarks.session import Session
from benchmarks.worker_processes import Worker
from billfold.data_keys.keys import DataKeys
from billfold.events import sequencer
from billfold.events.kinds import PARTNER_KINDS
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import subscriptions
from billfold.events.webhooks.worker import WebhookDispatcher
from billfold.platform.clock import monotonic, wall_now
from billfold.wiring.providers import webhook_client_of

RECEIVERS = 8
DELIVERIES_LEAST = 500.0
HANGING_LEAST = 0.9
MEMORY_MOST = 1.1
SHORT_QUEUE = 50
"""The length of a long queue as a multiple of a short one."""
HANGING = "/never/"
LOOPBACK = (ip_network("127.0.0.0/8"),)

_CENTS = 1_000_00
_LOOK_SECONDS = 0.02
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
_WAITING = """
SELECT EXISTS (SELECT 1 FROM subscription_queue l JOIN subscription s USING (subscription_id)
                WHERE s.status = 'enabled' AND s.url NOT LIKE $1
                  AND (l.due_at IS NOT NULL OR l.worker_no IS NOT NULL))
"""
_DELIVERED = "SELECT count(*) FROM delivery WHERE state = 'delivered'"
_END_ALL = "UPDATE subscription SET status = 'disabled'"
_STOP_ALL = "UPDATE subscription_queue SET due_at = NULL"


class WebhookReceivers:
    """Every path is a receiver: it answers at once, below `/never/` not at all."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server

    async def port(self) -> int:
        """Return where they listen."""
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening."""
        self._server.close()


class _ReceiverProtocol(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            found = _LENGTH.search(head)
            whole = end + 4 + (int(found[1]) if found else 0)
            if len(self._buffer) < whole:
                return
            self._buffer = self._buffer[whole:]
            if not head.split(b" ", 2)[1].startswith(HANGING.encode()):
                assert self._transport is not None
                self._transport.write(_ANSWER)


async def open_receivers() -> WebhookReceivers:
    """Return receivers that listen at a port of this machine."""
    return WebhookReceivers(await asyncio.get_running_loop().create_server(_ReceiverProtocol, "127.0.0.1", 0))


class WebhookWorkload(BankWorkload):
    """Lets things happen, or delivers them."""

    _occasions = 0

    async def queue(self, urls: list[str], events: int) -> None:
        """Subscribe these addresses and no others; let wires arrive, one event each, and queue their deliveries."""
        bank, now = self._bank, wall_now()
        await bank.pool.execute(_END_ALL)
        await bank.pool.execute(_STOP_ALL)
        for url in urls:
            await subscriptions.create_subscription(
                bank.pool,
                bank.vault,
                Subscriber(PARTNER),
                url=url,
                events=PARTNER_KINDS,
                shared_secret="a secret of the benchmark",  # noqa: S106 - nobody is to keep it
                now=now,
            )
        self._occasions += 1
        people = list(self._portals.items())[:events]
        wires = [
            dataset.deposit(*people[nth % len(people)], _CENTS, f"{self._occasions}.{nth}") for nth in range(events)
        ]
        await submit_commands(bank, wires)
        await self.sequence()
        self._forget_books()

    async def sequence(self) -> None:
        """Number what has happened and queue what is to be delivered of it."""
        await sequencer.sequence_events(self._bank.pool, now=wall_now())

    async def deliver(self) -> Timing:
        """Deliver until nothing waits but for receivers that hang."""
        bank, stop = self._bank, asyncio.Event()
        before = await self.fetch(_DELIVERED)
        keys, client = bank.ports[DataKeys], webhook_client_of(bank.settings)
        dispatcher = WebhookDispatcher(bank.pool, bank.vault, keys, client)
        started = monotonic()
        work = asyncio.create_task(dispatcher.run(stop))
        while await self.fetch(_WAITING, f"%{HANGING}%"):
            await asyncio.sleep(_LOOK_SECONDS)
        ended = monotonic()
        stop.set()
        await work
        return Timing(await self.fetch(_DELIVERED) - before, started, ended)


def bench_webhooks(session: Session) -> Result:
    """Run everything and return the figures."""
    sizes, location = session.sizes, session.database.location("webhooks")
    with Worker(open_receivers, fast=True) as receivers:
        origin = f"http://127.0.0.1:{receivers.call('port')}"
        well = [f"{origin}/{nth}" for nth in range(RECEIVERS)]
        hanging = [f"{origin}{HANGING}{nth}" for nth in range(RECEIVERS)]
        engine = session.bank(location, WebhookWorkload, webhook_allowed_networks=LOOPBACK)
        session.log(f"creating {sizes.customers:,} customers")
        engine.call("create", sizes.customers)
        engine.call("sequence")
        dispatcher = session.bank(location, WebhookWorkload, first=False, webhook_allowed_networks=LOOPBACK)

        def deliver(urls: list[str], deliveries: int) -> Timing:
            session.log(f"{deliveries:,} deliveries, {len(urls)} receivers")
            engine.call("queue", urls, deliveries // RECEIVERS)
            timing: Timing = dispatcher.call("deliver")
            assert timing.done == deliveries // RECEIVERS * RECEIVERS, "deliveries are missing"
            return timing

        memory = {}
        for undelivered in (max(RECEIVERS, sizes.undelivered // SHORT_QUEUE), sizes.undelivered):
            deliver(well, undelivered)
            memory[f"memory, {undelivered:,} undelivered"] = dispatcher.peak_memory_mib()
        rates, beside_hanging = list[float](), list[float]()
        for _ in range(sizes.runs):
            rates.append(rate([deliver(well, sizes.deliveries)]))
            beside_hanging.append(rate([deliver(well + hanging, sizes.deliveries)]))
        peaks = session.peaks(dispatcher=dispatcher.peak_memory_mib(), engine=engine.peak_memory_mib())
    base = figure("deliveries", "per second", rates, at_least=DELIVERIES_LEAST)
    hang = f"deliveries, {RECEIVERS} more receivers hang"
    (short, little), (long, much) = memory.items()
    few = figure(short, "MiB", [little])
    return Result(
        name="webhooks",
        setting={
            "receivers": RECEIVERS,
            "deliveries per run": sizes.deliveries,
            "undelivered": sizes.undelivered,
            "customers": sizes.customers,
        },
        figures=[
            base,
            figure(hang, "per second", beside_hanging, against=base, at_least=HANGING_LEAST),
            few,
            figure(long, "MiB", [much], against=few, at_most=MEMORY_MOST),
        ],
        peak_memory_mib=peaks,
    )
