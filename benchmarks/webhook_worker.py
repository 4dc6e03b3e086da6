"""A bank with a webhook dispatcher: its events are delivered as in a worker."""

from __future__ import annotations

import asyncio
import gc
from ipaddress import ip_network
from typing import Any
from uuid import UUID

from benchmarks.dataset import (
    DEPOSIT_CENTS,
    PARTNER,
    Location,
    OpenBank,
    advance_to_next_morning,
    create_bank,
    create_customers,
    deposit,
    open_bank,
    submit_commands,
)
from benchmarks.engine_transfers import Pair, transfer_of
from benchmarks.measurements import Timing
from benchmarks.webhook_receivers import HANGING
from benchmarks.worker_processes import Worker
from billfold.events import sequencer
from billfold.events.kinds import PARTNER_KINDS
from billfold.events.types import Subscriber
from billfold.events.webhooks import redelivery, subscriptions
from billfold.events.webhooks.types import EventSimulation
from billfold.events.webhooks.worker import WebhookDispatcher
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.ids import new
from billfold.wiring.providers import webhook_client_of

LOOPBACK = (ip_network("127.0.0.0/8"),)
SIMULATED_KIND = "card.status.open"
"""A kind that nothing in these benchmarks raises."""

_CENTS = 1_000_00
_LOOK_SECONDS = 0.02
_WAITING = """
SELECT EXISTS (SELECT 1 FROM subscription_queue l JOIN subscription s USING (subscription_id)
                WHERE s.status = 'enabled' AND s.url NOT LIKE $1
                  AND (l.due_at IS NOT NULL OR l.worker_no IS NOT NULL))
"""
_DELIVERED = "SELECT count(*) FROM delivery WHERE state = 'delivered'"
_END_ALL = "UPDATE subscription SET status = 'disabled'"
_STOP_ALL = "UPDATE subscription_queue SET due_at = NULL"


class WebhookWorkload:
    """Lets things happen, and delivers them."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank
        self._portals: dict[int, UUID] = {}
        self._occasions = 0
        self._work: tuple[asyncio.Event, asyncio.Task[None]] | None = None

    async def prepare(self, task: tuple[str, Any]) -> Any:
        """Do what is asked: one of the verbs below."""
        verb, argument = task
        done: Any = await getattr(self, f"_{verb}")(argument)
        return done

    async def run(self) -> Timing:
        """Deliver until nothing waits but for receivers that hang."""
        before = await self._bank.pool.fetchval(_DELIVERED)
        gc.collect()
        started = monotonic()
        await self._begin(None)
        while await self._bank.pool.fetchval(_WAITING, f"%{HANGING}%"):
            await asyncio.sleep(_LOOK_SECONDS)
        ended = monotonic()
        await self._end(None)
        return Timing(await self._bank.pool.fetchval(_DELIVERED) - before, started, ended)

    async def close(self) -> None:
        """Stop the courier and the engine."""
        await self._end(None)
        await self._opened.close()

    async def _create(self, customers: int) -> None:
        self._portals = await create_customers(self._bank, range(customers))
        await submit_commands(
            self._bank, [deposit(nth, portal, DEPOSIT_CENTS, occasion="first") for nth, portal in self._portals.items()]
        )
        await self._sequence(None)
        await self._bank.pool.execute("VACUUM ANALYZE", timeout=None)

    async def _transfers(self, task: tuple[str, list[Pair]]) -> Timing:
        """Carry out whole transfers, every book loaded from the database."""
        name, pairs = task
        commands = [transfer_of(name, nth, pair) for nth, pair in enumerate(pairs)]
        self._bank.engine.forget_all()
        gc.collect()
        started = monotonic()
        outcomes = await submit_commands(self._bank, commands)
        ended = monotonic()
        assert all(outcome["status"] == "COMPLETED" for outcome in outcomes)
        return Timing(len(outcomes), started, ended)

    async def _morning(self, _: None) -> None:
        await advance_to_next_morning(self._bank)

    async def _subscribe(self, task: tuple[list[str], list[str] | None]) -> None:
        """Subscribe urls, and nobody else, to kinds; None is all of them."""
        urls, kinds = task
        await self._bank.pool.execute(_END_ALL)
        await self._bank.pool.execute(_STOP_ALL)
        for url in urls:
            await subscriptions.create_subscription(
                self._bank.pool,
                self._bank.vault,
                Subscriber(PARTNER),
                url=url,
                events=kinds or PARTNER_KINDS,
                shared_secret="a secret of the benchmark",  # noqa: S106 - nobody is to keep it
                now=wall_now(),
            )

    async def _happen(self, events: int) -> None:
        """Let wires arrive, one event each, and queue what is to be delivered of them."""
        self._occasions += 1
        people = list(self._portals.items())[:events]
        await submit_commands(
            self._bank,
            [deposit(*people[nth % len(people)], _CENTS, f"{self._occasions}.{nth}") for nth in range(events)],
        )
        await self._sequence(None)
        self._bank.engine.forget_all()

    async def _sequence(self, _: None) -> None:
        await sequencer.sequence_events(self._bank.pool, now=wall_now())

    async def _simulate(self, events: int) -> None:
        for _ in range(events):
            event = EventSimulation(event_id=new(), kind=SIMULATED_KIND, raised_at=wall_now(), payload="{}")
            await redelivery.simulate_event(self._bank.pool, Subscriber(PARTNER), event, now=wall_now())

    async def _begin(self, _: None) -> None:
        stop = asyncio.Event()
        bank = self._bank
        courier = WebhookDispatcher(bank.pool, bank.vault, webhook_client_of(bank.settings))
        self._work = stop, asyncio.create_task(courier.run(stop))

    async def _end(self, _: None) -> int:
        """Stop the courier and return how much was ever delivered."""
        if self._work is not None:
            stop, work = self._work
            stop.set()
            await work
            self._work = None
        return int(await self._bank.pool.fetchval(_DELIVERED))


async def open_webhook_workload(location: Location, *, first: bool) -> WebhookWorkload:
    """Open the bank of a place; the `first` to do so founds it."""
    changes = {"webhook_allowed_networks": LOOPBACK}
    return WebhookWorkload(await (create_bank if first else open_bank)(location, **changes))


def webhook_process(location: Location, *, first: bool = False) -> Worker:
    """Return it in a process of its own."""
    return Worker(open_webhook_workload, location=location, first=first)
