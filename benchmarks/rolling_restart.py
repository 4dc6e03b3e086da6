"""Two `serve` behind HAProxy are restarted one after the other under load: what was not answered with 2xx?

`python -m benchmarks.rolling_restart` needs haproxy and the embedded PostgreSQL.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from time import sleep
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.dataset import Location, create_bank
from benchmarks.load_generator import Call, Credentials, request_of
from benchmarks.partner_setup import create_partner
from benchmarks.throwaway_server import throwaway_server
from billfold.cli.serve import child_command_line
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.ids import command_id, derive
from billfold.platform.network.tls import ensure_certificates
from billfold.wiring.cli_context import Wiring

PROXY_PORT, PORTS = 8970, (8971, 8972)
PER_SECOND, CONNECTIONS, DRAIN_SECONDS = 200, 32, 6
CALM_SECONDS, ANSWER_SECONDS = 3.0, 30.0
CHANGES_EVERY = 20
NEW_POCKET = '{"pocket_name": "Under load", "trading_strategy_id": "UST-4W"}'
_EXAMPLE = Path(__file__).parents[1] / "deploy/proxies/haproxy.cfg"
LOST = (OSError, asyncio.IncompleteReadError, TimeoutError)


class Served:
    """One `serve`, as an operator runs it."""

    def __init__(self, location: Location, port: int) -> None:
        self._settings = location.settings(port=port)
        self._dsn, self._port = location.dsn, port
        self._log = location.state_dir / f"serve-{port}.log"

    def start(self) -> None:
        """Start it and wait until it is ready."""
        environment = Wiring(dict(os.environ)).environment(
            self._settings,
            self._dsn,
            port=self._port,
            http_port=self._port + 20_000,
            management_port=self._port + 10_000,
            behind_proxy="yes",
            trusted_proxies="127.0.0.1",
            drain_seconds=DRAIN_SECONDS,
            log_level="WARNING",
        )
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(child_command_line("serve"), env=environment, stdout=log, stderr=log)
        until = monotonic() + 60
        while not self._is_ready():
            if self._process.poll() is not None or monotonic() > until:
                raise RuntimeError(self._log.read_text()[-3000:])
            sleep(0.1)

    def stop(self) -> None:
        """Send SIGTERM and wait until it is gone."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._port + 10_000}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)  # noqa: PLR2004 - what ready means
        except (URLError, OSError):
            return False


class Load:
    """Requests at an even pace over kept connections, and what became of them."""

    def __init__(self, credentials: Credentials, path: str, trusted: Path) -> None:
        self.ended = False
        self.sent = 0
        self.counts: Counter[str] = Counter()
        self._credentials, self._path = credentials, path
        self._tls = ssl.create_default_context(cafile=str(trusted))
        self._began = monotonic()

    async def run(self) -> None:
        """Send until the load is ended."""
        await asyncio.gather(*(self._send_requests() for _ in range(CONNECTIONS)))

    async def _send_requests(self) -> None:
        connection = None
        while not self.ended:
            self.sent += 1
            changes = self.sent % CHANGES_EVERY == 0
            await asyncio.sleep(max(0.0, self._began + self.sent / PER_SECOND - monotonic()))
            call = Call("POST" if changes else "GET", self._path, body=NEW_POCKET if changes else "")
            try:
                connection = connection or await self._connect()
                async with asyncio.timeout(ANSWER_SECONDS):
                    head = await exchange(*connection, request_of(call, self._credentials))
            except LOST as error:
                self.counts[type(error).__name__] += 1
                connection = None
                continue
            self.counts[head[9:12].decode()] += 1
            if b"connection: close" in head.lower():
                connection[1].close()
                connection = None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1", PROXY_PORT, ssl=self._tls, server_hostname=self._credentials.host
        )


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    """Send a request and read its response; return its head."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    await reader.readexactly(int(length[1]) if length else 0)
    return head


async def restart_under_load(servers: list[Served], load: Load) -> None:
    """Restart one server after the other while requests are sent."""
    sending = asyncio.create_task(load.run())
    await asyncio.sleep(CALM_SECONDS)
    for each in servers:
        await asyncio.to_thread(each.stop)
        await asyncio.to_thread(each.start)
        await asyncio.sleep(CALM_SECONDS)
    load.ended = True
    await sending


def haproxy_config(folder: Path, pem: Path) -> Path:
    """Write the example of the documentation with the ports of this run."""
    text = _EXAMPLE.read_text().replace("bind :443", f"bind 127.0.0.1:{PROXY_PORT}")
    text = text.replace("/etc/billfold/haproxy.pem", str(pem))
    for example, port in zip((8443, 8444), PORTS, strict=True):
        text = text.replace(f":{example} port 1{example}", f":{port} port {port + 10_000}")
    config = folder / "haproxy.cfg"
    config.write_text(text)
    return config


def main() -> None:
    """Make a bank and two servers, restart them under load, and say what became of the requests."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        location = stack.enter_context(throwaway_server(folder)).location("bank")
        location.state_dir.mkdir(exist_ok=True)

        async def found() -> tuple[Credentials, str]:
            opened = await create_bank(location)
            credentials = await create_partner(opened.bank)
            own = derive(opened.bank.seed, command_id("bench", "partner"), 1)
            await opened.close()
            return credentials, f"/api/v2/customers/{own}/pockets/"

        credentials, path = asyncio.run(found())
        tls = ensure_certificates(location.state_dir / "proxy", wall_now(), domain="localhost", partners=["bench"])
        pem = folder / "both.pem"
        pem.write_text(tls.certificate.read_text() + tls.key.read_text())
        servers = [Served(location, port) for port in PORTS]
        for each in servers:
            each.start()
            stack.callback(each.stop)
        program = shutil.which("haproxy")
        if program is None:
            raise SystemExit("haproxy is not installed")
        proxy = subprocess.Popen([program, "-db", "-f", str(haproxy_config(folder, pem))], stdout=subprocess.DEVNULL)
        stack.callback(proxy.wait)
        stack.callback(proxy.terminate)
        sleep(CALM_SECONDS)
        load = Load(credentials, path, tls.authority)
        asyncio.run(restart_under_load(servers, load))
        sys.stdout.write(f"{load.sent} requests: {dict(load.counts)}\n")


if __name__ == "__main__":
    main()
