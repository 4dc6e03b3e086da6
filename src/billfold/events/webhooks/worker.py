"""The courier: gives events their sequences, and delivers them to whoever subscribed.

Any number may run. Each subscription is a lane that one courier walks at a time, one event in
flight, so its events arrive in order; lanes do not wait for each other. What was sent and not
yet written down when a courier dies is sent again under the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import asyncpg
import structlog

from billfold.events.webhooks import claims, sequencer
from billfold.events.webhooks import rules as webhook_rules
from billfold.events.webhooks.attempt_recorder import OnFailing, Recorder
from billfold.events.webhooks.ports import Line, Messenger
from billfold.events.webhooks.types import Attempt, Delivery, Lane
from billfold.platform import ids
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.crypto import Vault, sign_webhook

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 0.2
"""How long a courier rests between two looks at what there is to do."""
LANES_MAX = 128
"""How many lanes that are well are walked at once, and how many that fail beside them."""
PAGE = 50
"""How many deliveries of a lane are in memory."""
PAGE_SECONDS = 1.0
"""How old what is known of a subscription may get before it is read again."""
SIGN_SECONDS = 2.0
PRESENCE_SECONDS = 20.0
"""How long after its last sign of life a courier stops by itself: before others give it up."""
STOP_SECONDS = 3.0
USER_AGENT = "billfold-webhooks/1"

_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


class Courier:
    """One courier of one bank."""

    def __init__(
        self,
        pool: Pool,
        vault: Vault,
        messenger: Messenger,
        *,
        clock: Callable[[], datetime] = wall_now,
        on_failing: OnFailing | None = None,
        lanes_max: int = LANES_MAX,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._pool = pool
        self._vault = vault
        self._messenger = messenger
        self._clock = clock
        self._on_failing = on_failing
        self._lanes_max = lanes_max
        self._pause_seconds = pause_seconds

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set. A database that is away is waited for."""
        while not stop.is_set():
            try:
                await self._sign_on(stop)
            except _AWAY as error:
                log.warning("courier_interrupted", error=repr(error))
                await rest(stop, self._pause_seconds)

    async def _sign_on(self, stop: asyncio.Event) -> None:
        """Work under one number, until told to stop or given up."""
        async with self._pool.acquire() as conn:
            number = await claims.sign_on(conn, self._clock())
            round_ = _Round(
                self._pool,
                self._vault,
                self._messenger,
                Recorder(self._pool, self._clock, self._on_failing),
                self._clock,
                number=number,
                stop=stop,
            )
            try:
                await self._work(conn, round_, stop)
            finally:
                await round_.end()
                with suppress(*_AWAY):
                    await claims.sign_off(conn, number)

    async def _work(self, conn: Connection, round_: _Round, stop: asyncio.Event) -> None:
        shown_at = round_.present_at
        while not stop.is_set():
            now = self._clock()
            if monotonic() - shown_at >= SIGN_SECONDS or not shown_at:
                shown_at = monotonic()
                if not await claims.show_up(conn, round_.number, now):
                    log.warning("courier_given_up", number=round_.number)
                    return
                round_.present_at = shown_at
                await claims.free_the_dead(conn, round_.number, now)
            await sequencer.sequence(conn, now=now, wait=False)
            for failing in (False, True):
                room = self._lanes_max - round_.walked(failing=failing)
                round_.walk(
                    await claims.claim_lanes(conn, round_.number, now, failing=failing, limit=room),
                    failing=failing,
                )
            await rest(stop, self._pause_seconds)
            round_.look_after()


class _Round:
    """The lanes a courier walks under one number."""

    def __init__(
        self,
        pool: Pool,
        vault: Vault,
        messenger: Messenger,
        recorder: Recorder,
        clock: Callable[[], datetime],
        *,
        number: int,
        stop: asyncio.Event,
    ) -> None:
        self.number = number
        self.present_at = 0.0
        self._pool = pool
        self._vault = vault
        self._messenger = messenger
        self._recorder = recorder
        self._clock = clock
        self._stop = stop
        self._walks: dict[asyncio.Task[None], bool] = {}

    def walked(self, *, failing: bool) -> int:
        """Return how many lanes of that sort are walked now."""
        return sum(each is failing for each in self._walks.values())

    def walk(self, lanes: list[UUID], *, failing: bool) -> None:
        """Begin to walk lanes that were claimed."""
        for subscription_id in lanes:
            self._walks[asyncio.create_task(self._walk(subscription_id))] = failing

    def look_after(self) -> None:
        """Forget the walks that are over. Raises what one of them was interrupted by.

        A walk that met what nobody foresaw takes no other lane along: its own stays with this
        courier, and so alone, until the courier ends.
        """
        for task in [task for task in self._walks if task.done()]:
            del self._walks[task]
            error = task.exception()
            if isinstance(error, _AWAY):
                raise error
            if error is not None:
                log.error("lane_broke", exc_info=error)

    async def end(self) -> None:
        """Let calls that are out come back, for a moment."""
        if not self._walks:
            return
        _, late = await asyncio.wait(self._walks, timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*self._walks, return_exceptions=True)

    async def _walk(self, subscription_id: UUID) -> None:
        pool, line, url = self._pool, None, None
        try:
            while self._may_go_on():
                lane = await claims.read_lane(
                    pool, self._vault, subscription_id, self.number, self._clock()
                )
                if lane is None:
                    break
                if line is None or url != lane.url:
                    if line is not None:
                        await line.hang_up()
                    url, line = lane.url, self._messenger.line(lane.url)
                if not await self._deliver(lane, line):
                    break
        finally:
            if line is not None:
                await line.hang_up()
        async with pool.acquire() as conn:
            await claims.leave_lane(conn, subscription_id, self.number)

    async def _deliver(self, lane: Lane, line: Line) -> bool:
        """Deliver some of what is due; tell whether to go on at once."""
        page = await claims.read_page(self._pool, lane, self._clock(), limit=PAGE)
        until = monotonic() + PAGE_SECONDS
        written, well = None, bool(page)
        for delivery in page:
            attempt = await self._attempt(lane, line, delivery)
            written = self._recorder.add(attempt)
            well = attempt.outcome.state == "delivered"
            if not well or monotonic() >= until or not self._may_go_on():
                break
        if written is not None:
            await asyncio.shield(written)
        return well

    async def _attempt(self, lane: Lane, line: Line, delivery: Delivery) -> Attempt:
        called_at, began = self._clock(), monotonic()
        attempt_id = ids.new()
        headers = headers_of(lane, delivery, attempt_id, called_at)
        answer = await line.post(headers, delivery.body)
        tries = delivery.tries + 1
        return Attempt(
            attempt_id=attempt_id,
            subscription_id=lane.subscription_id,
            event_id=delivery.event_id,
            response_code=answer.code,
            response_message=answer.message,
            called_at=called_at,
            duration_ms=round((monotonic() - began) * 1_000),
            outcome=webhook_rules.outcome_of(
                lane.retry_policy,
                tries=tries,
                code=answer.code,
                retry_after=answer.retry_after,
                now=self._clock(),
                spread=webhook_rules.spread_of(lane.subscription_id, delivery.event_id, tries),
            ),
        )

    def _may_go_on(self) -> bool:
        return not self._stop.is_set() and monotonic() - self.present_at < PRESENCE_SECONDS


def headers_of(
    lane: Lane, delivery: Delivery, attempt_id: UUID, called_at: datetime
) -> dict[str, str]:
    """Return the headers of one attempt: Standard Webhooks 1.0, one signature per secret."""
    event_id, seconds = str(delivery.event_id), int(called_at.timestamp())
    return {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "webhook-id": event_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(
            sign_webhook(secret, event_id, seconds, delivery.body) for secret in lane.secrets
        ),
        "x-service-subscription-id": str(lane.subscription_id),
        "x-service-delivery-attempt-id": str(attempt_id),
    }


async def rest(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but no longer than until `stop` is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
