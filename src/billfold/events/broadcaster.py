"""Reads events once for all listeners of this process.

One task polls the database while there are listeners. Each subscriber has a channel with recent
events; a listener that is too slow for it reads the log, so slow listeners cost no memory.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import islice

import structlog

from billfold.data_keys.keys import DataKeys
from billfold.events import sequencer, store
from billfold.events.schemas import Subscriber
from billfold.events.store import LoggedEvent, NewEvent
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Pool
from billfold.platform.database.shortage import error_summary
from billfold.platform.errors import Refused

log = structlog.get_logger(__name__)

POLL_SECONDS = 0.2
"""Interval at which the database is polled."""
CHANNEL_EVENTS_MAX = 500
"""Maximum number of events kept in a channel."""
PAGE_SIZE = 100
"""Number of events read at once, per reader."""
LISTENERS_MAX = 500
LISTENERS_PER_READER_MAX = 20


class Channel:
    """Recent events of one reader. `sequence` is the newest received."""

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        self.listeners = 0
        self._recent: deque[LoggedEvent] = deque(maxlen=CHANNEL_EVENTS_MAX)
        self._count = 0
        self._published = asyncio.Event()

    @property
    def event_count(self) -> int:
        """Return how many events have passed through."""
        return self._count

    def publish(self, event: LoggedEvent) -> None:
        """Append an event. An event of the log must follow the one before it."""
        if event.sequence is not None:
            if event.sequence <= self.sequence:
                return
            self.sequence = event.sequence
        self._recent.append(event)
        self._count += 1
        self.wake()

    def wake(self) -> None:
        """Wake the listeners."""
        self._published.set()
        self._published = asyncio.Event()

    def since(self, event_count: int) -> list[LoggedEvent] | None:
        """Return the events after the first `count`; None if some of them are no longer here."""
        missing = self._count - event_count
        if missing > len(self._recent):
            return None
        return list(islice(self._recent, len(self._recent) - missing, None))

    async def wait(self, seconds: float) -> None:
        """Wait until an event arrives, or until the timeout."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._published.wait(), seconds)


class EventBroadcaster:
    """The channels of one process, and the task that fills them.

    `on_open` is called with the first listener.
    """

    def __init__(self, pool: Pool, keys: DataKeys, *, sandbox: bool, on_open: Callable[[], None] | None = None) -> None:
        self._pool = pool
        self._keys = keys
        self._sandbox = sandbox
        self._on_open = on_open
        self._channels: dict[Subscriber, Channel] = {}
        self._task: asyncio.Task[None] | None = None
        self._serial = 0
        self._generation = 0
        self._closed = False

    @property
    def listeners(self) -> int:
        """Return the number of listeners."""
        return sum(each.listeners for each in self._channels.values())

    def check_capacity(self, reader: Subscriber) -> None:
        """Raise Refused `too-many-streams` unless another listener is allowed."""
        channel = self._channels.get(reader)
        full = channel is not None and channel.listeners >= LISTENERS_PER_READER_MAX
        if full or self.listeners >= LISTENERS_MAX:
            raise Refused("too-many-streams", f"At most {LISTENERS_PER_READER_MAX} streams may be open at once.")

    async def position(self, reader: Subscriber) -> int:
        """Return the sequence of the newest event that a reader can receive now."""
        await sequencer.sequence_events(self._pool, now=wall_now())
        return await store.newest_sequence(self._pool, reader)

    async def events_until_now(self, reader: Subscriber, after: int) -> AsyncIterator[LoggedEvent]:
        """Yield a reader's events after a sequence, up to now."""
        at: int | None = after
        while at is not None:
            page = await self._page(reader, at)
            for event in page:
                yield event
            at = page[-1].sequence if len(page) == PAGE_SIZE else None

    async def follow(
        self, reader: Subscriber, after: int, wait_seconds: Callable[[], float]
    ) -> AsyncIterator[LoggedEvent | None]:
        """Yield a reader's events after a sequence, then those to come; None after each wait.

        The first None comes at once: no later event is missed. `wait_seconds` returns how many
        seconds the next wait may take; below zero is the end.
        """
        channel = await self._open_channel(reader)
        try:
            at, event_count, is_behind = after, channel.event_count, after < channel.sequence
            generation = self._generation
            yield None
            while generation == self._generation and not self._is_stopped() and (seconds := wait_seconds()) >= 0:
                new_events = None if is_behind else channel.since(event_count)
                if new_events is None:
                    event_count = channel.event_count
                    new_events = await self._page(reader, at)
                    is_behind = len(new_events) == PAGE_SIZE
                else:
                    event_count += len(new_events)
                for event in new_events:
                    if event.sequence is None or event.sequence > at:
                        at = event.sequence or at
                        yield event
                if not new_events:
                    await channel.wait(seconds)
                    if channel.event_count == event_count:
                        yield None
        finally:
            self._close_channel(reader, channel)

    def stop(self) -> None:
        """End all streams, and refuse later ones."""
        self._closed = True
        self.end_streams()

    def end_streams(self) -> None:
        """End the current streams."""
        self._generation += 1
        for channel in self._channels.values():
            channel.wake()

    async def close(self) -> None:
        """End all streams, and the task."""
        self.stop()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _is_stopped(self) -> bool:
        return self._closed or self._task is None or self._task.done()

    async def _page(self, reader: Subscriber, after: int) -> list[LoggedEvent]:
        page = await store.list_events(self._pool, reader, place=(after,), descending=False, limit=PAGE_SIZE)
        return await self._with_notes([NewEvent(reader.key, each) for each in page], reader.level)

    async def _with_notes(self, found: Sequence[NewEvent], level: str) -> list[LoggedEvent]:
        events = [each.event for each in found]
        return await store.with_notes(self._pool, self._keys, events, by_customer=level == "customer")

    async def _open_channel(self, reader: Subscriber) -> Channel:
        if reader not in self._channels:
            newest = await store.newest_sequence(self._pool, reader)
            self._channels.setdefault(reader, Channel(newest))
        opened, self._on_open = self._on_open, None
        if opened is not None:
            opened()
        channel = self._channels[reader]
        channel.listeners += 1
        if self._is_stopped() and self._sandbox:
            self._serial = await store.last_simulated_serial(self._pool)
        if self._is_stopped() and not self._closed:
            self._task = asyncio.create_task(self._run())
        return channel

    def _close_channel(self, reader: Subscriber, channel: Channel) -> None:
        channel.listeners -= 1
        if channel.listeners == 0 and self._channels.get(reader) is channel:
            del self._channels[reader]

    async def _run(self) -> None:
        """Fill the channels as long as there are any."""
        while self._channels:
            try:
                has_more = await self._poll()
            except Exception as error:  # noqa: BLE001 - tried again
                log.warning("event_stream_poll_failed", error=error_summary(error))
                has_more = False
            if not has_more:
                await asyncio.sleep(POLL_SECONDS)

    async def _poll(self) -> bool:
        """Send every channel its new events; return whether there may be more at once."""
        await sequencer.sequence_events(self._pool, now=wall_now(), wait=False)
        channels = {reader.key: each for reader, each in self._channels.items()}
        positions = {reader: each.sequence for reader, each in self._channels.items()}
        found = await store.list_new_events(self._pool, positions, limit=PAGE_SIZE)
        if self._sandbox:
            self._serial, more = await store.list_new_simulated(self._pool, self._serial, limit=PAGE_SIZE)
            found += more
        levels = {reader.key: reader.level for reader in positions}
        for level in ("partner", "customer"):
            of_level = [each for each in found if levels.get(each.key) == level]
            for each, event in zip(of_level, await self._with_notes(of_level, level), strict=True):
                channels[each.key].publish(event)
        return len(found) >= PAGE_SIZE


def create_event_broadcaster(bank: Bank) -> EventBroadcaster:
    """Return a broadcaster of a bank; it reads nothing until there is a listener."""
    return EventBroadcaster(bank.pool, bank.ports[DataKeys], sandbox=not bank.settings.is_production)
