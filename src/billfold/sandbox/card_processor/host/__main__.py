"""The process of the authorisation host: `python -m billfold.sandbox.card_processor.host FOLDER DESCRIPTOR`.

The folder is the processor's, with the settings of the host; the descriptor is of the socket that listens. It leaves no
core dump and ends with the process that started it. Whatever kills it, what it owes the bank is sent by its next run.
"""

import asyncio
import resource
import signal
import socket
import sys
from pathlib import Path

import uvloop

from billfold.cli.process_supervisor import exit_with_parent
from billfold.platform.logs import configure_logging, logger
from billfold.sandbox.card_processor.host.authorize import AuthorizationHost
from billfold.sandbox.card_processor.host.bank_client import BankClient, Forwarder
from billfold.sandbox.card_processor.host.journal import Journal, SecretChecks
from billfold.sandbox.card_processor.host.server import NetworkServer
from billfold.sandbox.card_processor.host.settings import HostSettings, read_settings
from billfold.sandbox.card_processor.vault import CardVault


async def run(folder: Path, settings: HostSettings, *, listener: socket.socket, stop: asyncio.Event) -> None:
    """Serve the network on a socket until told to stop."""
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
