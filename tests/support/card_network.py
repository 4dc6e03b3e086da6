"""The card network and the host of the processor that answers it."""

import asyncio
import base64
import hmac
import itertools
import json
import socket
from contextlib import asynccontextmanager, suppress
from datetime import date
from typing import Any
from uuid import uuid4

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from billfold.sandbox.card_processor.host.server import run
from billfold.sandbox.card_processor.host.settings import HostSettings, read_options
from billfold.sandbox.card_processor.vault import CardVault


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Place:
    """A processor's folder with one card in it, its host and a bank."""

    def __init__(self, folder, bank, **options):
        self.folder, self.bank, self.port = folder, bank, free_port()
        self.vault, self.card_id = CardVault(folder), str(uuid4())
        self.card = self.vault.issue(self.card_id, date(2025, 6, 2))
        environ = {f"CARD_PROCESSOR_{name.upper()}": str(value) for name, value in options.items()}
        parsed = read_options(environ, folder)
        self.settings = HostSettings(
            bank_url=f"http://cards.localhost:{bank.port}",
            bank_address="127.0.0.1",
            bank_key=BANK_KEY.hex(),
            trusted_ca=None,
            mac_required=bool(parsed.mac_required),
            options=parsed,
        )

    def listener(self):
        return socket.create_server(("127.0.0.1", self.port))

    @asynccontextmanager
    async def serving(self):
        stop = asyncio.Event()
        task = asyncio.create_task(run(self.folder, self.settings, listener=self.listener(), stop=stop))
        try:
            async with connected_in_time(self) as switch:
                yield switch
        finally:
            stop.set()
            await task


async def opened(port):
    """Connect once the host listens."""
    async with asyncio.timeout(10):
        while True:
            with suppress(ConnectionRefusedError):
                return await asyncio.open_connection("127.0.0.1", port)
            await asyncio.sleep(0.02)


@asynccontextmanager
async def connected_in_time(place):
    reader, writer = await opened(place.port)
    try:
        yield Switch(reader, writer, place.card.pan)
    finally:
        writer.close()


def set_pin(place, pin):
    key: Any = load_pem_public_key(place.vault.pin_key().encode())
    place.vault.set_pin(place.card_id, base64.b64encode(key.encrypt(pin.encode(), padding.PKCS1v15())).decode())


def pin_block(place, pin):
    """Return a PIN as a terminal enciphers it."""
    return enciphered(clear_block(place.card.pan, pin), place.settings.options.pin_key or "")


def clear_block(pan, pin):
    """Return the PIN of a card in ISO 9564 format 0."""
    clear, account = bytes.fromhex(f"0{len(pin)}{pin}".ljust(16, "F")), bytes.fromhex("0000" + pan[3:15])
    return bytes(a ^ b for a, b in zip(clear, account, strict=True))


def enciphered(block, pin_key):
    """Return a PIN block under the network's key."""
    key = bytes.fromhex(pin_key)
    return Cipher(TripleDES(key + key[:8]), modes.ECB()).encryptor().update(block).hex().upper()


# Of the elements that tests use: the digits of a length, or the fixed length.
LL, LLL = "LL", "LLL"
BOTH: dict[int, Any] = {
    2: LL,
    3: 6,
    4: 12,
    6: 12,
    7: 10,
    11: 6,
    13: 4,
    14: 4,
    24: 3,
    32: LL,
    35: LL,
    37: 12,
    38: 6,
    41: 8,
    42: 15,
}
BOTH |= {48: LLL, 49: 3, 51: 3, 52: 16, 54: LLL, 64: 16, 70: 3, 128: 16}
FORMATS: dict[str, dict[int, Any]] = {
    "0": BOTH | {12: 6, 18: 4, 22: 3, 25: 2, 39: 2, 43: 40, 90: 42, 95: 42},
    "1": BOTH | {12: 12, 22: 12, 26: 4, 30: 24, 39: 3, 43: LL, 56: LL},
}
BANK_KEY = bytes(range(32))


def pack(mti, fields):
    """Write a message as text."""
    is_long = any(number > 64 for number in fields)
    bits = sum(1 << (128 - number) for number in fields) | (is_long << 127)
    bitmap = f"{bits:032X}" if is_long else f"{bits >> 64:016X}"
    written = []
    for number in sorted(fields):
        value, form = fields[number], FORMATS[mti[0]][number]
        written.append(value if isinstance(form, int) else f"{len(value):0{len(form)}}{value}")
    return (mti + bitmap + "".join(written)).encode()


def unpack(raw):
    """Return the type and the elements of a message."""
    text = raw.decode()
    mti, at = text[:4], 20 if int(text[4], 16) < 8 else 36
    bits = int(text[4:at].ljust(32, "0"), 16)
    fields = {}
    for number in range(2, 129):
        if not bits >> (128 - number) & 1:
            continue
        form = FORMATS[mti[0]][number]
        if isinstance(form, str):
            size, at = int(text[at : at + len(form)]), at + len(form)
        else:
            size = form
        fields[number], at = text[at : at + size], at + size
    assert at == len(text)
    return mti, fields


class Switch:
    """A connection of the network to the host, and messages about one card."""

    def __init__(self, reader, writer, pan):
        self.reader, self.writer, self.pan = reader, writer, pan
        self._numbers = itertools.count(1)

    def purchase(self, cents, *, version="0", **changes):
        """Return the elements of a purchase, new with each call."""
        number = next(self._numbers)
        fields = {2: self.pan, 3: "000000", 4: f"{cents:012}", 7: "0602130501", 11: f"{number:06}", 32: "123456"}
        fields |= {37: f"{600000000000 + number}", 41: "TERM0001", 42: "MERCHANT0000001", 49: "840"}
        if version == "1":
            fields |= {
                12: "250602090501",
                22: "51010151134C",
                26: "5411",
                43: "Larkmoor Deli\\9 Road\\Vantorp\\89507     NV USA",
            }
        else:
            fields |= {
                12: "090501",
                13: "0602",
                18: "5411",
                22: "051",
                43: "Larkmoor Deli".ljust(23) + "Vantorp".ljust(13) + "NVUS",
            }
        return fields | {int(name.removeprefix("de")): value for name, value in changes.items()}

    async def send_raw(self, raw):
        self.writer.write(len(raw).to_bytes(2) + raw)
        await self.writer.drain()

    async def receive_raw(self):
        size = int.from_bytes(await self.reader.readexactly(2))
        return await self.reader.readexactly(size)

    async def ask(self, mti, fields):
        """Send a message and return the type and the elements of the response."""
        await self.send_raw(pack(mti, fields))
        return unpack(await self.receive_raw())

    async def code(self, mti, fields):
        """Send a message and return element 39 of the response."""
        return (await self.ask(mti, fields))[1][39]


@asynccontextmanager
async def connected(port, pan=""):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Switch(reader, writer, pan)
    finally:
        writer.close()


class StubBank:
    """The bank's endpoint for card messages: it keeps the requests, and answers with the result of `decide`."""

    def __init__(self):
        self.messages = []
        self.decide = lambda message: {"decision": "APPROVED", "approved_amount": message["amount"] or 0}
        self.port = 0
        self._server: Any = None

    async def open(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self):
        """Refuse connections from now on."""
        self._server.close()

    def of(self, *kinds):
        return [each for each in self.messages if each["type"] in kinds]

    async def received(self, count):
        """Wait until so many messages came."""
        async with asyncio.timeout(10):
            while len(self.messages) < count:
                await asyncio.sleep(0.02)
        return self.messages

    async def _serve(self, reader, writer):
        try:
            while self._server.is_serving():
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
                body = await reader.readexactly(int(headers["content-length"]))
                signed = hmac.digest(BANK_KEY, headers["x-timestamp"].encode() + body, "sha256").hex()
                assert headers["x-signature"] == signed
                message = json.loads(body)
                self.messages.append(message)
                decided = self.decide(message)
                decided = await decided if asyncio.iscoroutine(decided) else decided
                sent = json.dumps(decided).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(sent) + sent)
                await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()
