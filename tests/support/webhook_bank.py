"""A customer whose events are told to receivers, and a clock that is turned by hand."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from tests.support.raised_events import BOTH, NOW, PARTNER, raise_event
from tests.support.webhook_receivers import LOOPBACK, SECRET

from billfold.events import sequencer
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import store as webhook_store
from billfold.events.webhooks import subscriptions
from billfold.events.webhooks.http_client import GuardedWebhookClient
from billfold.events.webhooks.worker import WebhookDispatcher
from billfold.platform.crypto import Vault

OWNER = Subscriber(PARTNER)
VAULT = Vault(bytes(range(32)))


class Town:
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
    async def courier(self, **fields):
        """A courier that works while the context lasts."""

        async def on_failing(_conn, failing):
            self.failing.append(failing)

        usual: dict[str, Any] = {"clock": lambda: self.now, "on_failing": on_failing, "pause_seconds": 0.01}
        stop = asyncio.Event()
        courier = WebhookDispatcher(self.pool, VAULT, GuardedWebhookClient(allowed=LOOPBACK), **usual | fields)
        work = asyncio.create_task(courier.run(stop))
        yield
        stop.set()
        await work

    async def quiet(self, seconds=10):
        """Wait until nothing is due at this time of the clock and nobody is at it."""
        async with asyncio.timeout(seconds):
            while await self.pool.fetchval(
                "SELECT EXISTS (SELECT 1 FROM subscription_queue WHERE worker_no IS NOT NULL"
                " OR (due_at <= $1 AND coalesce(paused_until, $1) <= $1))",
                self.now,
            ):
                await asyncio.sleep(0.005)

    async def work(self):
        """Let a courier do all that is due at this time of the clock."""
        await sequencer.sequence_events(self.pool, now=self.now)
        async with self.courier():
            await self.quiet()

    async def attempts(self, subscription_id):
        rows = await webhook_store.ATTEMPTS.rows(self.pool, subscription_id, None, limit=100)
        return [(row.response_code, row.response_message) for row in reversed(rows)]

    async def states(self, subscription_id):
        rows = await self.pool.fetch(
            "SELECT state FROM delivery WHERE subscription_id = $1 ORDER BY sequence", subscription_id
        )
        return [row[0] for row in rows]
