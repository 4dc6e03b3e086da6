"""The card processor's authorisation host with one card, in this process or in one of its own."""

import asyncio
import base64
import socket
from contextlib import asynccontextmanager, suppress
from datetime import date
from typing import Any
from uuid import uuid4

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from tests.support.card_network import BANK_KEY, Switch

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
