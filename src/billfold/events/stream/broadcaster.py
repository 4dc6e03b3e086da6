"""Where events are read once for all who listen in this process.

One task asks the database, as long as anybody listens, what is new for those who do. Each reader
has a channel with what came lately; whoever is too slow for it reads the log by himself, so nobody
costs memory by not listening.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import asyncpg
import structlog

from billfold.events import store as event_log
from billfold.events.store import LoggedEvent, Reader
from billfold.events.webhooks import sequencer
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Pool

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.2
"""How often the database is asked."""
KEPT = 500
"""How many events a channel keeps."""
PAGE = 100
"""How many events are read at once, of each reader."""
LISTENERS_MAX = 500
LISTENERS_OF_ONE_MAX = 20

_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


class Channel:
    """What one reader was told of lately. `sequence` is the newest he was told of."""

    __slots__ = ("_changed", "_kept", "_passed", "listeners", "sequence")

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        self.listeners = 0
        self._kept: deque[LoggedEvent] = deque(maxlen=KEPT)
        self._passed = 0
        self._changed = asyncio.Event()

    @property
    def passed(self) -> int:
        """Return how many events have come through."""
        return self._passed

    def tell(self, event: LoggedEvent) -> None:
        """Let an event through. One of the log only after the one before it."""
        if event.sequence is not None:
            if event.sequence <= self.sequence:
                return
            self.sequence = event.sequence
        self._kept.append(event)
        self._passed += 1
        self.wake()

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def since(self, passed: int) -> list[LoggedEvent] | None:
        """Return what came through after so many; None when some of it is no longer here."""
        missing = self._passed - passed
        if missing > len(self._kept):
            return None
        return list(islice(self._kept, len(self._kept) - missing, None))

    async def wait(self, seconds: float) -> None:
        """Wait until something comes through, or so long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)


class Newsroom:
    """The channels of one process, and the task that fills them.

    `on_open` is called when somebody listens for the first time.
    """

    def __init__(
        self, pool: Pool, *, sandbox: bool, on_open: Callable[[], None] | None = None
    ) -> None:
        self._pool = pool
        self._sandbox = sandbox
        self._on_open = on_open
        self._channels: dict[Reader, Channel] = {}
        self._task: asyncio.Task[None] | None = None
        self._serial = 0
        self._closed = False

    @property
    def listeners(self) -> int:
        """Return how many listen."""
        return sum(each.listeners for each in self._channels.values())

    def check_room(self, reader: Reader) -> None:
        """Raise Refused `too-many-streams` unless one more may listen."""
        channel = self._channels.get(reader)
        full = channel is not None and channel.listeners >= LISTENERS_OF_ONE_MAX
        if full or self.listeners >= LISTENERS_MAX:
            raise Refused(
                "too-many-streams", f"At most {LISTENERS_OF_ONE_MAX} streams may be open at once."
            )

    async def position(self, reader: Reader) -> int:
        """Return the sequence of the newest event that a reader can be told of now."""
        await sequencer.sequence(self._pool, now=wall_now())
        return await event_log.newest_sequence(self._pool, reader)

    async def past(self, reader: Reader, after: int) -> AsyncIterator[LoggedEvent]:
        """Yield a reader's events after a sequence, up to now."""
        at: int | None = after
        while at is not None:
            page = await self._page(reader, at)
            for event in page:
                yield event
            at = page[-1].sequence if len(page) == PAGE else None

    async def follow(
        self, reader: Reader, after: int, patience: Callable[[], float]
    ) -> AsyncIterator[LoggedEvent | None]:
        """Yield a reader's events after a sequence, then those to come; None after each wait.

        `patience` says how many seconds the next wait may take; below zero is the end.
        """
        channel = await self._join(reader)
        try:
            at, passed, behind = after, channel.passed, after < channel.sequence
            while not self._is_over() and (seconds := patience()) >= 0:
                news = None if behind else channel.since(passed)
                if news is None:
                    passed = channel.passed
                    news = await self._page(reader, at)
                    behind = len(news) == PAGE
                else:
                    passed += len(news)
                for event in news:
                    if event.sequence is None or event.sequence > at:
                        at = event.sequence or at
                        yield event
                if not news:
                    await channel.wait(seconds)
                    if channel.passed == passed:
                        yield None
        finally:
            self._leave(reader, channel)

    def stop(self) -> None:
        """Let all streams end."""
        self._closed = True
        for channel in self._channels.values():
            channel.wake()

    async def close(self) -> None:
        """End all streams, and the task."""
        self.stop()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _is_over(self) -> bool:
        return self._closed or self._task is None or self._task.done()

    async def _page(self, reader: Reader, after: int) -> list[LoggedEvent]:
        return await event_log.list_events(
            self._pool, reader, place=(after,), descending=False, limit=PAGE
        )

    async def _join(self, reader: Reader) -> Channel:
        if reader not in self._channels:
            newest = await event_log.newest_sequence(self._pool, reader)
            self._channels.setdefault(reader, Channel(newest))
        opened, self._on_open = self._on_open, None
        if opened is not None:
            opened()
        channel = self._channels[reader]
        channel.listeners += 1
        if self._is_over() and self._sandbox:
            self._serial = await event_log.last_simulated(self._pool)
        if self._is_over() and not self._closed:
            self._task = asyncio.create_task(self._run())
        return channel

    def _leave(self, reader: Reader, channel: Channel) -> None:
        channel.listeners -= 1
        if channel.listeners == 0 and self._channels.get(reader) is channel:
            del self._channels[reader]

    async def _run(self) -> None:
        """Fill the channels as long as there are any."""
        while self._channels:
            try:
                busy = await self._look()
            except _AWAY as error:
                log.warning("newsroom_lost_the_database", error=repr(error))
                busy = False
            if not busy:
                await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> bool:
        """Tell every channel what is new for it; return whether there may be more at once."""
        await sequencer.sequence(self._pool, now=wall_now(), wait=False)
        channels = {reader.key: each for reader, each in self._channels.items()}
        marks = {reader: each.sequence for reader, each in self._channels.items()}
        found = await event_log.take_news(self._pool, marks, limit=PAGE)
        if self._sandbox:
            self._serial, more = await event_log.take_simulated(
                self._pool, self._serial, limit=PAGE
            )
            found += more
        for news in found:
            if news.key in channels:
                channels[news.key].tell(news.event)
        return len(found) >= PAGE


def newsroom_of(bank: Bank) -> Newsroom:
    """Return a newsroom of a bank; nothing is read before somebody listens."""
    return Newsroom(bank.pool, sandbox=not bank.settings.is_production)
