"""A dealer that an adapter reaches: its messages are kept, numbered and booked like those of a session."""

import asyncio
from datetime import date

from typing_extensions import override

from billfold.platform.database.shortage import error_summary
from billfold.trading.fix.codec import Fields, decode, encode
from billfold.trading.fix.link import WATCH_SECONDS, DealerLink, session_day
from billfold.trading.fix.session import WRITE_SECONDS
from billfold.trading.fix.store import DatabaseJournal
from billfold.trading.ports import DealerAdapter, DealerAdapters


class AdapterLink(DealerLink):
    """The link to a dealer over its adapter."""

    @override
    async def _serve(self, journal: DatabaseJournal, day: date) -> None:
        adapter = self._bank.ports[DealerAdapters][self.dealer]
        self._session = AdapterSession(adapter, journal)
        await journal.note(is_on=True)
        reading = asyncio.create_task(self._read(adapter, journal))
        try:
            await self._on_open(self)
            while not reading.done() and session_day(self._bank, await self._bank.now()) == day:
                await asyncio.wait([reading], timeout=WATCH_SECONDS)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    async def _read(self, adapter: DealerAdapter, journal: DatabaseJournal) -> None:
        while True:
            kind, fields = await adapter.receive()
            message = decode(encode(kind, [], fields))
            await journal.keep_in(message, until=journal.next_in + 1)
            await self._received(message)


class AdapterSession:
    """The session of an adapter, which is always on."""

    is_on = True

    def __init__(self, adapter: DealerAdapter, journal: DatabaseJournal) -> None:
        self._adapter, self._journal, self._sending = adapter, journal, asyncio.Lock()

    async def send(self, kind: str, body: Fields, *, about: str | None = None) -> None:
        """Keep a message under its number, which the adapter may name in a reject (45), then hand it over."""
        sent = [(tag, str(value)) for tag, value in body if value is not None]
        async with self._sending:
            pairs = [(34, str(self._journal.next_out)), *sent]
            await self._journal.keep_out(kind, encode(kind, [], pairs), about=about)
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._adapter.send(kind, pairs)
            except Exception as error:
                raise ConnectionError(error_summary(error)) from error
