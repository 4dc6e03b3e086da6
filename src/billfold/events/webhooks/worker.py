"""The webhook worker: sequences events and delivers them to subscriptions.

Any number may run. Each subscription is a queue that one worker processes at a time, one event in
flight, so its events arrive in order; queues do not wait for each other. Events that were sent but not
yet recorded when a worker dies are sent again under the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import structlog

from billfold.data_keys.keys import DataKeys
from billfold.events import sequencer
from billfold.events.webhooks import attempts, rules
from billfold.events.webhooks.attempts import OnFailing
from billfold.events.webhooks.http_client import GuardedConnection, GuardedWebhookClient, WebhookResponse
from billfold.events.webhooks.signature import sign_webhook
from billfold.events.webhooks.store import Attempt, Delivery, SubscriptionQueue
from billfold.platform import ids
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.background_work import forget, put_aside, read_put_aside, retry_delay
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.pool import Batcher
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.telemetry.metrics import WEBHOOK_DELIVERIES, WEBHOOK_SECONDS
from billfold.platform.telemetry.tracing import tracing

log = structlog.get_logger(__name__)

POLL_SECONDS = 0.2
"""Interval at which a worker polls."""
LANES_MAX = 128
"""Maximum number of healthy queues processed at once, and likewise of failing ones."""
SUBSCRIBERS_MIN = 4
"""Minimum number of subscribers that share the queues processed at once."""
DELIVERY_PAGE_SIZE = 50
"""Number of deliveries of a queue kept in memory."""
PAGE_SECONDS = 1.0
"""Maximum age of cached subscription data before it is read again."""
HEARTBEAT_SECONDS = 2.0
HEARTBEAT_TIMEOUT_SECONDS = 20.0
"""A worker that could not send a heartbeat for this long stops, before others take over its work."""
STOP_SECONDS = 3.0
RECORD_ATTEMPTS = 3
_FAILED_QUEUE = "webhook queue"
USER_AGENT = "billfold-webhooks/1"


@dataclass
class WebhookDispatcher:
    """One worker of one bank."""

    pool: Pool
    vault: Vault
    keys: DataKeys
    client: GuardedWebhookClient
    _: KW_ONLY
    clock: Callable[[], datetime] = wall_now
    on_failing: OnFailing | None = None
    lanes_max: int = LANES_MAX
    pause_seconds: float = POLL_SECONDS

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set. Waits while the database is unavailable."""
        while not stop.is_set():
            try:
                await self._register(stop)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next round may be better
                log.warning("webhook_dispatcher_interrupted", error=error_summary(error))
                await wait_or_stop(stop, self.pause_seconds)

    async def _register(self, stop: asyncio.Event) -> None:
        """Work under one number, until stopped or declared dead."""
        async with self.pool.acquire() as conn:
            number = await attempts.register_worker(conn, self.clock())
            session = _Session(self, number, stop)
            try:
                await self._work(conn, session, stop)
            finally:
                await session.end()
                with suppress(Exception):  # others release them when they find this worker dead
                    await attempts.unregister_workers(conn, number)

    async def _work(self, conn: Connection, session: _Session, stop: asyncio.Event) -> None:
        heartbeat_at = session.seen_alive_at
        while not stop.is_set():
            now = self.clock()
            if monotonic() - heartbeat_at >= HEARTBEAT_SECONDS or not heartbeat_at:
                heartbeat_at = monotonic()
                if not await attempts.record_heartbeat(conn, session.number, now):
                    log.warning("webhook_dispatcher_lease_lost", number=session.number)
                    return
                session.seen_alive_at = heartbeat_at
                await attempts.release_dead_workers(conn, session.number, now)
            await sequencer.sequence_events(conn, now=now, wait=False)
            for failing in (False, True):
                capacity = self.lanes_max - session.active(failing=failing)
                share = max(1, self.lanes_max // SUBSCRIBERS_MIN)
                claimed = await attempts.claim_queues(
                    conn, session.number, now, failing=failing, limit=capacity, per_subscriber=share
                )
                session.walk(claimed, failing=failing)
            await wait_or_stop(stop, self.pause_seconds)
            await session.look_after()


class _Session:
    """The queues a worker processes under one number."""

    def __init__(self, dispatcher: WebhookDispatcher, number: int, stop: asyncio.Event) -> None:
        self.number = number
        self.seen_alive_at = 0.0
        self._pool = dispatcher.pool
        self._vault = dispatcher.vault
        self._keys = dispatcher.keys
        self._client = dispatcher.client
        self._clock = dispatcher.clock
        self._on_failing = dispatcher.on_failing
        self._stop = stop
        self._recorder: Batcher[Attempt, None] = Batcher(self._record)
        self._lane_tasks: dict[asyncio.Task[None], bool] = {}
        self._subscriptions: dict[asyncio.Task[None], UUID] = {}

    def active(self, *, failing: bool) -> int:
        """Return how many queues of that kind are being processed."""
        return sum(each is failing for each in self._lane_tasks.values())

    def walk(self, queues: list[UUID], *, failing: bool) -> None:
        """Begin to process claimed queues."""
        for subscription_id in queues:
            task = asyncio.create_task(self._run_lane(subscription_id))
            self._lane_tasks[task] = failing
            self._subscriptions[task] = subscription_id

    async def look_after(self) -> None:
        """Remove the finished queues. Raises a shortage that one of them met.

        A queue that fails is released with its error and not claimed for a while; no other is affected.
        """
        for task in [task for task in self._lane_tasks if task.done()]:
            subscription_id = self._subscriptions.pop(task)
            del self._lane_tasks[task]
            error = task.exception()
            if isinstance(error, Exception):
                if is_shortage(error):
                    raise error
                log.error("webhook_delivery_failed", subscription_id=str(subscription_id), exc_info=error)
                await self._put_aside(subscription_id, error)

    async def _put_aside(self, subscription_id: UUID, error: Exception) -> None:
        now, item = self._clock(), str(subscription_id)
        earlier = await read_put_aside(self._pool, _FAILED_QUEUE, now)
        tries = earlier.due.get(item, 0) + 1
        await put_aside(self._pool, _FAILED_QUEUE, item, error, now=now, tries=tries)
        await attempts.pause_queue(self._pool, subscription_id, self.number, now + retry_delay(tries))

    async def end(self) -> None:
        """Wait briefly for calls under way, and until their attempts are recorded."""
        if self._lane_tasks:
            _, unfinished = await asyncio.wait(self._lane_tasks, timeout=STOP_SECONDS)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*self._lane_tasks, return_exceptions=True)
        await self._recorder.settle()

    async def _run_lane(self, subscription_id: UUID) -> None:
        pool, connection, url = self._pool, None, None
        try:
            while self._should_continue():
                queue = await attempts.read_queue(
                    pool, self._vault, subscription_id, worker_no=self.number, now=self._clock()
                )
                if queue is None:
                    break
                if connection is None or url != queue.url:
                    if connection is not None:
                        await connection.disconnect()
                    url, connection = queue.url, self._client.connection(queue.url)
                if not await self._deliver(queue, connection):
                    break
        finally:
            if connection is not None:
                await connection.disconnect()
        async with pool.acquire() as conn:
            await attempts.release_queue(conn, subscription_id, self.number)
        await forget(pool, _FAILED_QUEUE, [str(subscription_id)])

    async def _deliver(self, queue: SubscriptionQueue, connection: GuardedConnection) -> bool:
        """Deliver some of the due events; return whether to continue at once."""
        now = self._clock()
        deliveries = await attempts.list_due_deliveries(self._pool, self._keys, queue, now, limit=DELIVERY_PAGE_SIZE)
        page_deadline = monotonic() + PAGE_SECONDS
        recorded: list[asyncio.Future[None]] = []
        succeeded = bool(deliveries)
        for delivery in deliveries:
            attempt = await self._attempt(queue, connection, delivery)
            recorded.append(self._recorder.ask(attempt))
            succeeded = attempt.outcome.state == "delivered"
            if not succeeded or monotonic() >= page_deadline or not self._should_continue():
                break
        await asyncio.shield(asyncio.gather(*recorded))
        return succeeded

    async def _attempt(self, queue: SubscriptionQueue, connection: GuardedConnection, delivery: Delivery) -> Attempt:
        called_at, started = self._clock(), monotonic()
        attempt_id = ids.new()
        headers = headers_of(queue, delivery, attempt_id, called_at=called_at)
        if tracing.is_on:
            response = await _post_traced(queue, connection, headers, body=delivery.body)
        else:
            response = await connection.post(headers, delivery.body)
        tries, seconds = delivery.tries + 1, monotonic() - started
        outcome = rules.delivery_outcome(
            queue.retry_policy,
            tries=tries,
            code=response.code,
            retry_after=response.retry_after,
            now=self._clock(),
            jitter=rules.delivery_jitter(queue.subscription_id, delivery.event_id, tries),
        )
        WEBHOOK_SECONDS.observe(seconds)
        WEBHOOK_DELIVERIES.add("retried" if outcome.state == "pending" else outcome.state)
        return Attempt(
            attempt_id=attempt_id,
            subscription_id=queue.subscription_id,
            event_id=delivery.event_id,
            response_code=response.code,
            response_message=response.message,
            called_at=called_at,
            duration_ms=round(seconds * 1_000),
            outcome=outcome,
        )

    async def _record(self, batch: Sequence[Attempt]) -> list[None]:
        """Record the results of attempts, many in one transaction."""
        for retries_left in reversed(range(RECORD_ATTEMPTS)):
            try:
                async with self._pool.acquire() as conn, conn.transaction():
                    for failing in await attempts.record_attempts(conn, batch, now=self._clock()):
                        if self._on_failing is not None:
                            await self._on_failing(conn, failing)
                break
            except asyncpg.DeadlockDetectedError:
                # The sequencer moves queues too. One of the two has to go first.
                if not retries_left:
                    raise
        return [None] * len(batch)

    def _should_continue(self) -> bool:
        return not self._stop.is_set() and monotonic() - self.seen_alive_at < HEARTBEAT_TIMEOUT_SECONDS


async def _post_traced(
    queue: SubscriptionQueue, connection: GuardedConnection, headers: dict[str, str], *, body: bytes
) -> WebhookResponse:
    """Post a body, with the span of the call in its headers. The path is not recorded: it may hold a secret."""
    named = {"http.request.method": "POST", "server.address": urlsplit(queue.url).hostname or ""}
    with tracing.span("webhook POST", "CLIENT", named) as span:
        tracing.send_with(headers)
        response = await connection.post(headers, body)
        if response.code:
            span.set_attribute("http.response.status_code", response.code)
        else:
            span.set_attribute("error.type", response.message)
    return response


def headers_of(queue: SubscriptionQueue, delivery: Delivery, attempt_id: UUID, called_at: datetime) -> dict[str, str]:
    """Return the headers of one attempt: Standard Webhooks 1.0, one signature per secret."""
    event_id, seconds = str(delivery.event_id), int(called_at.timestamp())
    return {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "webhook-id": event_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(
            sign_webhook(secret, event_id, seconds, body=delivery.body) for secret in queue.secrets
        ),
        "x-service-subscription-id": str(queue.subscription_id),
        "x-service-delivery-attempt-id": str(attempt_id),
    }


async def wait_or_stop(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but no longer than until `stop` is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
