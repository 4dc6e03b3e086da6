"""A session of FIX 4.4 over a connection, on either side: logon, numbers, heartbeats, resends, logout.

A message is kept with its number in one commit before it is written, and before it is acted upon. What is missing is
asked for again. Of what was sent only types that may be repeated are; the rest is filled by SequenceReset.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, NamedTuple, Protocol

import structlog

from billfold.platform.clock import monotonic
from billfold.trading.fix.codec import Fields, Garbled, Message, decode, encode, format_time, read_frame

log = structlog.get_logger(__name__)

SESSION_TYPES: Final = frozenset("0124A5")
"""Heartbeat, test request, resend request, sequence reset, logon, logout."""
WRITE_SECONDS: Final = 5.0
_SILENCE, _DEAD = 1.2, 2.4
_RESEND_SECONDS: Final = 5.0
_HEARTBEAT_SECONDS, _HEARTBEAT_MAX = 30, 3600


class SessionEnded(Exception):
    """The session has ended; the text says why. `needs_person` if it cannot be resumed as it is."""

    def __init__(self, reason: str, *, needs_person: bool = False) -> None:
        super().__init__(reason)
        self.needs_person = needs_person


class SentMessage(NamedTuple):
    """A message that was sent before."""

    seq: int
    type: str
    text: str


class Journal(Protocol):
    """The place of a session's numbers, and of messages that are not about the session itself."""

    next_in: int
    next_out: int

    async def keep_out(self, kind: str, frame: bytes, *, about: str | None) -> None:
        """Keep what is sent next under `next_out`, and advance it."""

    async def keep_in(self, message: Message, *, until: int) -> None:
        """Keep a message that was received under `next_in`, and advance that to `until`."""

    async def reset(self) -> None:
        """Begin both numbers at 1 again."""

    async def list_sent(self, first: int, last: int, types: Collection[str]) -> Sequence[SentMessage]:
        """Return messages of some types that were sent, in their order."""


class Session:
    """One connection of a session. `on_message` gets each new message that is not about the session itself.

    `on_resend` is called after an answer to a resend request, `on_fault` with each message that is ignored or rejected.
    """

    def __init__(
        self,
        names: tuple[str, str],
        journal: Journal,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        *,
        now: Callable[[], Awaitable[datetime]],
        on_message: Callable[[Message], Awaitable[None]],
        on_resend: Callable[[], Awaitable[None]] | None = None,
        on_fault: Callable[[str], Awaitable[None]] | None = None,
        repeated: Collection[str] = (),
    ) -> None:
        (self._own, self._other), self._journal, (self._reader, self._writer) = names, journal, streams
        self._now, self._on_message, self._on_resend, self._repeated = now, on_message, on_resend, repeated
        self._on_fault = on_fault
        self._heartbeat = _HEARTBEAT_SECONDS
        self._sending = asyncio.Lock()
        self._heard_at = self._wrote_at = monotonic()
        self._asked = (0, 0.0)
        self._is_leaving = self._is_cut = False
        self.is_on = False

    async def log_on(self) -> None:
        """Log on as the initiator. Raises SessionEnded, EOFError, OSError."""
        if is_new := self._journal.next_in == 1:  # also after a logon that nobody answered
            await self._journal.reset()
        body = [(98, 0), (108, self._heartbeat), (141, "Y" if is_new else None)]
        await self.send("A", body)
        await self._receive_logon(is_acceptor=False)

    async def accept(self, first: Message) -> None:
        """Log on as the acceptor of a logon that was read. Raises SessionEnded."""
        await self._receive_logon(is_acceptor=True, first=first)

    async def run(self) -> None:
        """Serve until the session ends. Raises SessionEnded, EOFError, OSError, NotFix."""
        beating = asyncio.create_task(self._beat())
        try:
            while True:
                message = await self._read()
                if self._is_cut:
                    raise SessionEnded("The connection was cut.")
                if message is not None:
                    await self._receive(message)
        finally:
            self.is_on = False
            beating.cancel()
            self.close()

    async def send(self, kind: str, body: Fields, *, about: str | None = None) -> None:
        """Keep a message under its number, then write it. Raises OSError, TimeoutError."""
        async with self._sending:
            frame = encode(kind, await self._header(self._journal.next_out), body)
            await self._journal.keep_out(kind, frame, about=about)
            await self._write(frame)

    async def log_out(self, reason: str) -> None:
        """Say that the session ends; the other side answers and closes."""
        self._is_leaving, self.is_on = True, False
        with suppress(OSError, TimeoutError):
            await self.send("5", [(58, reason or None)])

    def close(self) -> None:
        """Close the connection once everything is written."""
        self._writer.close()

    def abort(self) -> None:
        """Cut the connection; what has arrived already is not read any more."""
        self._is_cut = True
        self._writer.transport.abort()

    async def _header(self, seq: int, *, first_sent: str | None = None) -> Fields:
        at = format_time(await self._now())
        repeat = [] if first_sent is None else [(43, "Y"), (122, first_sent)]
        return [(49, self._own), (56, self._other), (34, seq), *repeat, (52, at)]

    async def _write(self, frame: bytes) -> None:
        self._wrote_at = monotonic()
        self._writer.write(frame)
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._writer.drain()
        except TimeoutError:  # it reads nothing any more
            self.abort()
            raise

    async def _read(self) -> Message | None:
        frame = await read_frame(self._reader)
        self._heard_at = monotonic()
        try:
            return decode(frame)
        except Garbled as error:
            await self._note(f"a message of {len(frame)} bytes was ignored: {error}")
            return None

    async def _beat(self) -> None:
        """Send a heartbeat when nothing was sent, and cut a connection on which nothing is heard."""
        is_tested = False
        while True:
            await asyncio.sleep(min(1.0, self._heartbeat / 4))
            silence = monotonic() - self._heard_at
            if silence > _DEAD * self._heartbeat:
                self.abort()
                return
            with suppress(OSError, TimeoutError):
                if silence > _SILENCE * self._heartbeat and not is_tested:
                    await self.send("1", [(112, "TEST")])
                elif monotonic() - self._wrote_at >= self._heartbeat:
                    await self.send("0", [])
            is_tested = silence > _SILENCE * self._heartbeat

    async def _receive_logon(self, *, is_acceptor: bool, first: Message | None = None) -> None:
        message = first or await self._read()
        if message is None or message.type != "A":
            said = message.fields.get(58, message.text) if message else "a garbled message"
            raise SessionEnded(f"The other side does not log on: {said}", needs_person=True)
        self._check_names(message)
        is_reset = message.fields.get(141) == "Y"
        if is_reset and is_acceptor:
            await self._journal.reset()
        if message.seq < self._journal.next_in and not message.is_possible_duplicate:
            await self._refuse_number(message)
        if is_acceptor:
            self._heartbeat = min(message.number(108), _HEARTBEAT_MAX) or self._heartbeat
        if message.seq == self._journal.next_in:
            await self._journal.keep_in(message, until=message.seq + 1)
        if is_acceptor:
            await self.send("A", [(98, 0), (108, self._heartbeat), (141, "Y" if is_reset else None)])
        self.is_on = True
        if message.seq > self._journal.next_in:
            await self._ask_again()

    async def _receive(self, message: Message) -> None:
        self._check_names(message)
        kind, seq, expected = message.type, message.seq, self._journal.next_in
        if kind == "4" and message.fields.get(123) != "Y":
            if message.number(36) < expected:
                await self._reject(message, f"NewSeqNo is below {expected}, which is expected next")
            await self._journal.keep_in(message, until=max(message.number(36), expected))
        elif seq > expected:
            if kind == "2":  # otherwise both sides would wait for each other
                await self._answer_resend(message)
            elif kind == "5":
                await self._receive_logout(message)
            await self._ask_again()
        elif seq < expected:
            if not message.is_possible_duplicate:
                await self._refuse_number(message)
        else:
            until = max(message.number(36), seq + 1) if kind == "4" else seq + 1
            await self._journal.keep_in(message, until=until)
            await self._act(message)

    async def _act(self, message: Message) -> None:
        kind = message.type
        if kind not in SESSION_TYPES:
            await self._on_message(message)  # what can be read of it counts
        elif message.fault:
            await self._reject(message, message.fault)
        elif kind == "1":
            await self.send("0", [(112, message.fields.get(112))])
        elif kind == "2":
            await self._answer_resend(message)
        elif kind == "5":
            await self._receive_logout(message)

    async def _note(self, fault: str) -> None:
        log.warning("fix_message_faulty", dealer=self._other, fault=fault)
        if self._on_fault:
            await self._on_fault(fault)

    async def _reject(self, message: Message, reason: str) -> None:
        await self._note(f"message {message.seq} of type {message.type} was rejected: {reason}")
        await self.send("3", [(45, message.seq), (372, message.type), (373, 5), (58, reason)])

    async def _receive_logout(self, message: Message) -> None:
        if not self._is_leaving:
            await self.log_out("")
        said = message.fields.get(58, "")
        raise SessionEnded(f"The other side logged out: {said}" if said else "The session was logged out.")

    def _check_names(self, message: Message) -> None:
        names = message.fields.get(49), message.fields.get(56)
        if names != (self._other, self._own):
            raise SessionEnded(f"A message is from {names[0]} to {names[1]}.", needs_person=True)

    async def _refuse_number(self, message: Message) -> None:
        reason = f"MsgSeqNum too low, expecting {self._journal.next_in} but received {message.seq}"
        await self.log_out(reason)
        raise SessionEnded(reason, needs_person=True)

    async def _ask_again(self) -> None:
        """Ask for what is missing, again only after a while."""
        expected = self._journal.next_in
        if self._asked[0] != expected or monotonic() - self._asked[1] > _RESEND_SECONDS:
            self._asked = expected, monotonic()
            await self.send("2", [(7, expected), (16, 0)])

    async def _answer_resend(self, message: Message) -> None:
        """Repeat what may be repeated, with PossDup, and fill the rest."""
        async with self._sending:
            first, last = max(message.number(7), 1), self._journal.next_out - 1
            last = min(message.number(16) or last, last)
            for each in await self._journal.list_sent(first, last, self._repeated):
                await self._fill(first, each.seq)
                await self._repeat(each)
                first = each.seq + 1
            await self._fill(first, last + 1)
        if self._on_resend:
            await self._on_resend()

    async def _fill(self, first: int, until: int) -> None:
        if first < until:
            header = await self._header(first, first_sent=format_time(await self._now()))
            await self._write(encode("4", header, [(123, "Y"), (36, until)]))

    async def _repeat(self, sent: SentMessage) -> None:
        pairs = [each.partition("=") for each in sent.text.rstrip("\x01").split("\x01")]
        first_sent = next(value for tag, _, value in pairs if tag == "52")
        body = [(int(tag), value) for tag, _, value in pairs if tag not in _HEADER]
        await self._write(encode(sent.type, await self._header(sent.seq, first_sent=first_sent), body))


_HEADER: Final = frozenset({"8", "9", "35", "49", "56", "34", "52", "43", "122", "10"})
