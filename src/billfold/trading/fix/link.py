"""A dealer's session as one process keeps it: connects in the hours of the market, and books what is received."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.platform.clock import monotonic
from billfold.platform.database.shortage import error_summary
from billfold.platform.dates import et_date
from billfold.platform.settings.trading_desk import DealerSession
from billfold.trading.fix.booking import Booked, Booking
from billfold.trading.fix.codec import LENGTH_MAX, Fields, Message
from billfold.trading.fix.session import Session, SessionEnded
from billfold.trading.fix.store import DatabaseJournal, MessageStatus, SessionLost, StoredMessage, list_new

log = structlog.get_logger(__name__)

CONNECT_SECONDS: Final = 5.0
_LOGON_SECONDS: Final = 10.0
_AROUND_THE_MARKET: Final = timedelta(hours=1)
WATCH_SECONDS: Final = 0.2
_RETRY_SECONDS, _RETRY_MAX_SECONDS = 0.5, 30.0

OnBooked = Callable[[StoredMessage, Booked], Awaitable[None]]


def session_day(bank: Bank, now: datetime) -> date | None:
    """Return the day of the sessions at an instant: an hour around the market's hours of a settlement day."""
    day = et_date(now)
    opens, closes = bank.calendars.opens_at(day), bank.calendars.closes_at(day)
    is_open = opens - _AROUND_THE_MARKET <= now < closes + _AROUND_THE_MARKET
    return day if is_open and bank.calendars.is_settlement_day(day) else None


class LinkedSession(Protocol):
    """A session as those who send know it."""

    is_on: bool

    async def send(self, kind: str, body: Fields, *, about: str | None = None) -> None:
        """Keep a message and send it. Raises OSError, TimeoutError, SessionLost."""


class DealerLink:
    """The link to one dealer. `on_booked` is told of each message that is booked, `on_open` of each logon."""

    def __init__(
        self,
        bank: Bank,
        config: DealerSession,
        owner_id: UUID,
        *,
        on_booked: OnBooked,
        on_open: Callable[["DealerLink"], Awaitable[None]],
    ) -> None:
        self.config, self._bank, self._owner_id = config, bank, owner_id
        self._on_booked, self._on_open = on_booked, on_open
        self._session: LinkedSession | None = None
        self.off_since = monotonic()

    @property
    def dealer(self) -> str:
        """The dealer's name."""
        return self.config.dealer

    @property
    def is_on(self) -> bool:
        """Tell whether the session is logged on."""
        return self._session is not None and self._session.is_on

    async def send(self, kind: str, body: Fields, *, about: UUID) -> None:
        """Send a message about an order. Raises OSError, TimeoutError, SessionLost."""
        if self._session is None or not self._session.is_on:
            raise ConnectionError(self.dealer)
        await self._session.send(kind, body, about=str(about))

    async def run(self) -> None:
        """Keep the session until another process takes it. Raises SessionLost."""
        delay = _RETRY_SECONDS
        while True:
            day = session_day(self._bank, await self._bank.now())
            if day is None:
                await asyncio.sleep(WATCH_SECONDS)
                continue
            delay = _RETRY_SECONDS if await self._run_day(day) else min(2 * delay, _RETRY_MAX_SECONDS)
            if session_day(self._bank, await self._bank.now()) == day:
                await asyncio.sleep(delay)

    async def _run_day(self, day: date) -> bool:
        """Run one connection; return whether it was logged on."""
        journal = await DatabaseJournal.take(self._bank.pool, self.dealer, day, self._owner_id)
        await self._book_all()
        problem = None
        try:
            await self._serve(journal, day)
        except SessionEnded as ended:
            problem = str(ended) if ended.needs_person or self._session is None else None
        except SessionLost:
            raise
        except Exception as error:  # noqa: BLE001 - whatever one dealer sends, the others are served
            problem = error_summary(error)
        finally:
            was_on, self._session = self._session is not None, None
            if was_on:
                self.off_since = monotonic()
            await asyncio.shield(journal.note(is_on=False, problem=problem))
        log.warning("dealer_session_off", dealer=self.dealer, reason=problem or "logged out")
        return was_on

    async def _serve(self, journal: DatabaseJournal, day: date) -> None:
        """Connect, log on, and serve until the session ends."""
        async with asyncio.timeout(CONNECT_SECONDS):
            streams = await self._connect()
        session = self._make(journal, streams)
        try:
            async with asyncio.timeout(_LOGON_SECONDS):
                await session.log_on()
            self._session = session
            await journal.note(is_on=True)
            log.info("dealer_session_on", dealer=self.dealer, day=day)
            watching = asyncio.create_task(self._watch(session, day))
            try:
                await self._on_open(self)
                await session.run()
            finally:
                watching.cancel()
        finally:
            session.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = None
        if not self.config.is_plain:
            context = ssl.create_default_context(cafile=self._bank.settings.dealer_trusted_ca)
            if own := self._bank.settings.dealer_client_certificate:
                context.load_cert_chain(own)
        return await asyncio.open_connection(self.config.host, self.config.port, ssl=context, limit=LENGTH_MAX)

    def _make(self, journal: DatabaseJournal, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> Session:
        async def reopened() -> None:
            await self._on_open(self)

        async def note(fault: str) -> None:
            await journal.note(is_on=self.is_on, problem=fault)

        return Session(
            (self.config.sender, self.config.target),
            journal,
            streams,
            now=self._bank.now,
            on_message=self._received,
            on_resend=reopened,
            on_fault=note,
        )

    async def _watch(self, session: Session, day: date) -> None:
        """Log out when the session's day is over."""
        while session_day(self._bank, await self._bank.now()) == day:
            await asyncio.sleep(WATCH_SECONDS)
        await session.log_out("the session's day is over")
        await asyncio.sleep(_LOGON_SECONDS)
        session.abort()

    async def _received(self, message: Message) -> None:
        del message  # it is kept
        await self._book_all()

    async def _book_all(self) -> None:
        """Book every message that is kept and not booked, in their order."""
        for each in await list_new(self._bank.pool, self.dealer):
            booked = await Booking(self._bank, self.config, each).book()
            if booked.status == MessageStatus.REFUSED and self.is_on:
                await self._refuse(each, booked.reason)
            await self._on_booked(each, booked)

    async def _refuse(self, message: StoredMessage, reason: str) -> None:
        """Answer what makes no sense: business message reject, never to another reject."""
        if self._session is not None and message.type not in {"3", "j"}:
            cause = 0 if message.type in {"8", "S", "AG", "9"} else 3
            body = [(45, message.seq), (372, message.type), (380, cause), (58, reason[:200])]
            await self._session.send("j", body)
