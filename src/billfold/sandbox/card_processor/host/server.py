"""The TCP server: bounded connections, bounded messages under way on each, and an end to whoever is too slow."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from billfold.platform.logs import logger
from billfold.sandbox.card_processor.host.conversation import Conversation
from billfold.sandbox.card_processor.host.framing import LengthError, LengthPrefix
from billfold.sandbox.card_processor.host.layouts import FormatError

log = logger(__name__)

CONNECTIONS_MAX: Final = 32
UNDER_WAY_MAX: Final = 32
"""Messages of one connection that are decided at a time; the next is not read before one of them is."""
UNREADABLE_MAX: Final = 10
"""So many in a row that are no messages, and the connection is closed."""
IDLE_SECONDS: Final = 300.0
MESSAGE_SECONDS: Final = 5.0
"""How long a message may take to arrive, and a reply to be taken."""


class NetworkServer:
    """Serves the connections of a card network."""

    def __init__(self, converse: Callable[[], Conversation], prefix: LengthPrefix) -> None:
        self._converse, self._prefix = converse, prefix
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends, by whatever end."""
        if self._open >= CONNECTIONS_MAX:
            log.warning("network_connection_refused", open=self._open)
            writer.transport.abort()
            return
        self._open += 1
        try:
            await _Connection(self._converse(), self._prefix, writer).run(reader)
        except (LengthError, TimeoutError, EOFError, OSError, asyncio.CancelledError) as error:  # cancelled: all ends
            log.info("network_connection_ended", reason=type(error).__name__)
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


class _Connection:
    """One connection, whose messages are answered as they are decided, not in their order."""

    def __init__(self, conversation: Conversation, prefix: LengthPrefix, writer: asyncio.StreamWriter) -> None:
        self._conversation, self._prefix, self._writer = conversation, prefix, writer
        self._places = asyncio.Semaphore(UNDER_WAY_MAX)
        self._unreadable = 0

    async def run(self, reader: asyncio.StreamReader) -> NoReturn:
        """Read messages and start to answer each, until reading fails; what is under way is decided all the same."""
        answers: set[asyncio.Task[None]] = set()
        while True:
            raw = await self._prefix.read(reader, idle_seconds=IDLE_SECONDS, message_seconds=MESSAGE_SECONDS)
            await self._places.acquire()
            task = asyncio.create_task(self._answer(raw))
            answers.add(task)
            task.add_done_callback(answers.discard)

    async def _answer(self, raw: bytes) -> None:
        try:
            response = await self._conversation.answer(raw) if raw else None
            self._unreadable = 0
        except FormatError:
            self._unreadable += 1
            log.warning("network_message_unreadable", bytes=len(raw))
            if self._unreadable >= UNREADABLE_MAX:
                self._writer.transport.abort()
            return
        finally:
            self._places.release()
        if response is not None and not self._writer.is_closing():
            await self._write(self._prefix.write(response))

    async def _write(self, framed: bytes) -> None:
        self._writer.write(framed)
        try:
            async with asyncio.timeout(MESSAGE_SECONDS):
                await self._writer.drain()
        except (TimeoutError, OSError):  # it sends and does not read
            self._writer.transport.abort()
