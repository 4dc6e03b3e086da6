"""The TCP server: limits connections and concurrent messages on each, and disconnects slow clients."""

import asyncio
import resource
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import iso8583
import uvloop

from billfold.cli.process_supervisor import exit_with_parent
from billfold.platform.clock import wall_now
from billfold.platform.telemetry.logs import configure_logging, logger
from billfold.sandbox.card_processor.host.authorize import AuthorizationHost, BankClient, Forwarder
from billfold.sandbox.card_processor.host.journal import Journal, Reply, SecretChecks
from billfold.sandbox.card_processor.host.messages import FormatError, LengthError, MacKey, Message, decode, encode
from billfold.sandbox.card_processor.host.requests import NotSupported, Outcome, read_request
from billfold.sandbox.card_processor.host.settings import HostSettings, read_settings
from billfold.sandbox.card_processor.vault import CardVault

log = logger(__name__)

_REPEATED: Final[tuple[str, ...]] = ("2", "3", "4", "7", "11", "12", "13", "32", "37", "41", "42", "49", "70")
"""Elements of a message that its response repeats."""
_REQUESTS: Final = frozenset("02")
_CARD_CLASSES, _NETWORK_CLASS = frozenset("124"), "8"
_SIGN_ON, _SIGN_OFF, _ECHO = frozenset({"001", "801"}), frozenset({"002", "802"}), frozenset({"301", "831"})
_AVAILABLE_BALANCE, _ORIGINAL_AMOUNT = "02", "57"
_MACS: Final = frozenset({"64", "128"})
CONNECTIONS_MAX: Final = 32
UNDER_WAY_MAX: Final = 32
"""Number of messages of one connection that are decided at a time; the next is not read until one of them is."""
UNREADABLE_MAX: Final = 10
"""Number of consecutive invalid messages after which the connection is closed."""
IDLE_SECONDS: Final = 300.0
MESSAGE_SECONDS: Final = 5.0
"""Maximum time for a message to arrive, and for a reply to be accepted."""


class NetworkServer:
    """Serves the connections of a card network."""

    def __init__(self, host: AuthorizationHost, settings: HostSettings) -> None:
        self.host, self.prefix, self.mac_required = host, settings.options.length_prefix, settings.mac_required
        self.mac = MacKey(settings.options.mac_algorithm, bytes.fromhex(settings.options.mac_key or ""))
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends, for whatever reason."""
        if self._open >= CONNECTIONS_MAX:
            log.warning("network_connection_refused", open=self._open)
            writer.transport.abort()
            return
        self._open += 1
        try:
            await _Connection(self, writer).run(reader)
        except (LengthError, TimeoutError, EOFError, OSError, asyncio.CancelledError) as error:  # cancelled: all ends
            log.info("network_connection_ended", reason=type(error).__name__)
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


class _Connection:
    """One connection, whose messages are answered in the order of their decisions.

    It is signed on until it signs off. Sign-on and echo are answered here, messages about cards by the host.
    """

    def __init__(self, server: NetworkServer, writer: asyncio.StreamWriter) -> None:
        self._host, self._prefix, self._mac = server.host, server.prefix, server.mac
        self._mac_required, self._writer = server.mac_required, writer
        self._places = asyncio.Semaphore(UNDER_WAY_MAX)
        self._unreadable = 0
        self._is_signed_on = True

    async def run(self, reader: asyncio.StreamReader) -> NoReturn:
        """Read messages and start to answer each, until reading fails; pending messages are still decided."""
        answers: set[asyncio.Task[None]] = set()
        while True:
            raw = await self._prefix.read(reader, idle_seconds=IDLE_SECONDS, message_seconds=MESSAGE_SECONDS)
            await self._places.acquire()
            task = asyncio.create_task(self._answer(raw))
            answers.add(task)
            task.add_done_callback(answers.discard)

    async def _answer(self, raw: bytes) -> None:
        try:
            response = await self._response_to(raw) if raw else None
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
        except (TimeoutError, OSError):  # it sends but does not read
            self._writer.transport.abort()

    async def _response_to(self, raw: bytes) -> bytes | None:
        """Return the response to a message, None if it requests none. Raises FormatError if nothing can be read.

        A response has a MAC if the message had one.
        """
        try:
            message = decode(raw)
            has_mac = not _MACS.isdisjoint(message.fields)
            if (has_mac or self._mac_required) and not self._mac.is_right(message, raw):
                reply = Reply(Outcome.MAC_INCORRECT)
            else:
                reply = await self._reply(message)
        except FormatError as error:
            if error.message is None:
                raise
            log.warning("network_message_malformed", type=error.message.mti, error=str(error))
            message, reply = error.message, Reply(Outcome.FORMAT_ERROR)
            has_mac = self._mac_required
        if message.mti[2] not in _REQUESTS:  # a response, or a message that needs none
            return None
        return self._written(_response(message, reply), has_mac=has_mac or self._mac_required)

    async def _reply(self, message: Message) -> Reply:
        kind, function = message.mti[1], message.mti[2]
        if kind == _NETWORK_CLASS:
            return Reply(self._manage(message))
        if kind not in _CARD_CLASSES or function not in _REQUESTS or not self._is_signed_on:
            return Reply(Outcome.INVALID_TRANSACTION)
        try:
            request = read_request(message, wall_now())
        except NotSupported as error:
            return Reply(error.outcome)
        try:
            return await self._host.respond(request)
        except Exception as error:  # noqa: BLE001 - the store failed; what an error says may hold a card number
            log.error("network_message_failed", error=type(error).__name__)  # noqa: TRY400 - nor may its traceback
            return Reply(Outcome.SYSTEM_MALFUNCTION)

    def _manage(self, message: Message) -> Outcome:
        """Handle sign-on, sign-off and echo."""
        code = message.fields.get("24" if message.is_1993 else "70", "")
        if code not in _SIGN_ON | _SIGN_OFF | _ECHO:
            return Outcome.INVALID_TRANSACTION
        if code not in _ECHO:
            self._is_signed_on = code in _SIGN_ON
            log.info("network_signed_on" if self._is_signed_on else "network_signed_off")
        return Outcome.NETWORK_ACCEPTED

    def _written(self, response: Message, *, has_mac: bool) -> bytes | None:
        try:
            return self._mac.sealed(response) if has_mac else encode(response)
        except iso8583.EncodeError as error:  # an element that the message had and a response cannot have
            log.warning("network_response_unwritable", type=response.mti, field=error.field)
            return None


def _response(message: Message, reply: Reply) -> Message:
    fields: dict[str, str] = {number: message.fields[number] for number in _REPEATED if number in message.fields}
    fields["39"] = reply.outcome.code(is_1993=message.is_1993)
    if reply.approval_code is not None:
        fields["38"] = reply.approval_code
    if reply.outcome.is_partial:
        fields["54"] = _amount_element(_ORIGINAL_AMOUNT, int(fields["4"]))
        fields["4"] = f"{reply.amount:012}"
    elif reply.outcome == Outcome.APPROVED and message.fields["3"].startswith("31"):
        fields["54"] = _amount_element(_AVAILABLE_BALANCE, reply.amount)
    return Message(message.layout, message.response_type(), fields)


def _amount_element(kind: str, cents: int) -> str:
    """Return one amount of element 54: account and amount type, currency, C or D, twelve digits."""
    return f"00{kind}840{'C' if cents >= 0 else 'D'}{abs(cents):012}"


async def run(folder: Path, settings: HostSettings, *, listener: socket.socket, stop: asyncio.Event) -> None:
    """Serve the network on a socket until stopped."""
    options = settings.options
    store, bank = Journal(CardVault(folder)), BankClient(settings)
    checks = SecretChecks(bytes.fromhex(options.pin_key or ""))
    host = AuthorizationHost(store, bank, checks, stand_in_cents=options.stand_in_cents)
    forwarder = Forwarder(store, bank)
    host.on_owed = forwarder.wake
    server = await asyncio.start_server(NetworkServer(host, settings).serve, sock=listener)
    forwarding = asyncio.create_task(forwarder.run())
    logger(__name__).info("card_network_served", address=listener.getsockname())
    try:
        async with server:
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({forwarding, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        forwarding.cancel()
        await asyncio.gather(forwarding, return_exceptions=True)
        await bank.close()
        store.close()


async def _main(folder: Path, listener: socket.socket) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(folder, read_settings(folder), listener=listener, stop=stop)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    configure_logging()
    exit_with_parent()
    state, descriptor = sys.argv[1:]
    uvloop.run(_main(Path(state), socket.socket(fileno=int(descriptor))))
