"""Three hosts behind a proxy are restarted one after the other under load: what was not answered with 2xx?

A host is a `serve` and a `worker` with a folder of their own; common are the database and the folders of files.
`python -m benchmarks.rolling_restart haproxy`, or `nginx`, and `--pooler` for requests by way of PgBouncer. It needs
these programs and the embedded PostgreSQL.
"""

from __future__ import annotations

import asyncio
import base64
import os
import pwd
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from time import sleep
from typing import Any, ClassVar
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from benchmarks.dataset import Location, create_bank
from benchmarks.load_generator import Call, Credentials, request_of
from benchmarks.partner_setup import create_partner
from benchmarks.throwaway_server import throwaway_server
from billfold.cli.serve import child_command_line
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.pool import APP_ROLE
from billfold.platform.ids import command_id, derive
from billfold.platform.network.tls import ensure_certificates
from billfold.platform.postgres.logins import ensure_login
from billfold.wiring.cli_context import Wiring

PROXY_PORT, PORTS, POOLER_PORT = 8970, (8971, 8972, 8973), 8974
PER_SECOND, CONNECTIONS, DRAIN_SECONDS = 200, 32, 6
CALM_SECONDS, ANSWER_SECONDS = 3.0, 30.0
CHANGES_EVERY = 20
NEW_POCKET = '{"pocket_name": "Under load", "trading_strategy_id": "UST-4W"}'
_EXAMPLES = Path(__file__).parents[1] / "deploy/proxies"
_EXAMPLE_PORTS = (8443, 8444)
_KEY = "encryption.key"
LOST = (OSError, asyncio.IncompleteReadError, TimeoutError)


class Served:
    """One `serve`, as an operator runs it; `common` are settings that it has besides those of the place.

    `sources` is a folder with another release than this.
    """

    commands: ClassVar[Mapping[str, int]] = {"serve": 10_000}
    """Each of its processes, and how far its management port is from the port."""

    def __init__(self, location: Location, port: int, *, sources: Path | None = None, **common: object) -> None:
        self._settings = location.settings(port=port)
        self._environ = dict(os.environ) if sources is None else {**os.environ, "PYTHONPATH": str(sources)}
        self._dsn, self._port, self._common = location.dsn, port, common
        self._log = location.state_dir / f"serve-{port}.log"

    def start(self) -> None:
        """Start all and wait until the server is ready."""
        self._processes = [self._started(command, self._port + offset) for command, offset in self.commands.items()]
        until = monotonic() + 60
        while not self._is_ready():
            if any(each.poll() is not None for each in self._processes) or monotonic() > until:
                raise RuntimeError(self._log.read_text()[-3000:])
            sleep(0.1)

    def _started(self, command: str, management_port: int) -> subprocess.Popen[bytes]:
        environment = Wiring(self._environ).environment(
            self._settings,
            self._dsn,
            port=self._port,
            http_port=self._port + 20_000,
            management_port=management_port,
            behind_proxy="yes",
            trusted_proxies="127.0.0.1",
            drain_seconds=DRAIN_SECONDS,
            log_level="WARNING",
            **self._common,
        )
        with self._log.open("ab") as log:
            return subprocess.Popen(child_command_line(command), env=environment, stdout=log, stderr=log)

    def stop(self) -> None:
        """Send SIGTERM and wait until all are gone."""
        for each in self._processes:
            each.send_signal(signal.SIGTERM)
        for each in self._processes:
            each.wait(60)

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._port + 10_000}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)  # noqa: PLR2004 - what ready means
        except (URLError, OSError):
            return False


class Host(Served):
    """One `serve` and one `worker` with a folder that is not that of other hosts."""

    commands: ClassVar[Mapping[str, int]] = {"worker": 12_000, "serve": 10_000}

    def __init__(self, location: Location, port: int, *, sources: Path | None = None, **common: object) -> None:
        folder = location.state_dir.with_name(f"host-{port}")
        folder.mkdir()
        super().__init__(Location(location.dsn, folder), port, sources=sources, **common)


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


async def restart_under_load(hosts: list[Host], load: Load) -> None:
    """Restart one host after the other while requests are sent."""
    sending = asyncio.create_task(load.run())
    await asyncio.sleep(CALM_SECONDS)
    for each in hosts:
        await asyncio.to_thread(each.stop)
        await asyncio.to_thread(each.start)
        await asyncio.sleep(CALM_SECONDS)
    load.ended = True
    await sending


def haproxy_command(folder: Path, certificate: Path, key: Path) -> list[str]:
    """Return how HAProxy runs with the example of the documentation and the ports of this run."""
    pem, config = folder / "both.pem", folder / "haproxy.cfg"
    pem.write_text(certificate.read_text() + key.read_text())
    text = (_EXAMPLES / "haproxy.cfg").read_text().replace("bind :443", f"bind 127.0.0.1:{PROXY_PORT}")
    text = text.replace("/etc/billfold/haproxy.pem", str(pem))
    kept = [line for line in text.splitlines() if not line.strip().startswith("server ")]
    servers = [f"    server {port} 127.0.0.1:{port} port {port + 10_000}" for port in PORTS]
    config.write_text("\n".join([*kept, *servers, ""]))
    return ["haproxy", "-db", "-f", str(config)]


def nginx_command(folder: Path, certificate: Path, key: Path) -> list[str]:
    """Return how nginx runs with the example of the documentation and the ports of this run."""
    text = (_EXAMPLES / "nginx.conf").read_text().replace("listen 443", f"listen 127.0.0.1:{PROXY_PORT}")
    text = text.replace("/etc/billfold/server.pem", str(certificate)).replace("/etc/billfold/server.key", str(key))
    text = text.replace(".api.bank.example", ".localhost")
    one = next(line for line in text.splitlines() if f":{_EXAMPLE_PORTS[0]}" in line)
    other = next(line for line in text.splitlines() if f":{_EXAMPLE_PORTS[1]}" in line)
    text = text.replace(f"{other}\n", "")
    text = text.replace(one, "\n".join(one.replace(str(_EXAMPLE_PORTS[0]), str(port)) for port in PORTS))
    folders = "".join(
        f"{each}_temp_path {folder}/{each};\n" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; user root;\n"
        f"events {{}}\nhttp {{ access_log off;\n{folders}{text} }}\n"
    )
    return ["nginx", "-e", f"{folder}/error.log", "-c", str(config)]


def pooler_command(folder: Path, dsn: str) -> list[str]:
    """Return how PgBouncer runs in front of the database, a transaction at a time."""
    socket_folder = Path(parse_qs(urlsplit(dsn).query)["host"][0])
    (folder / "users.txt").write_text(f'"{APP_ROLE}" ""\n')
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host={socket_folder} port=5432\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {POOLER_PORT}\nauth_type = trust\nauth_file = {folder}/users.txt\nunix_socket_dir =\n"
        "pool_mode = transaction\ndefault_pool_size = 12\nmax_client_conn = 200\n"
    )
    owner = pwd.getpwuid(socket_folder.stat().st_uid)
    return ["pgbouncer", *(("-u", owner.pw_name) if owner.pw_uid != os.getuid() else ()), str(config)]


def run_beside(stack: ExitStack, command: list[str]) -> None:
    """Run a program until the end."""
    if shutil.which(command[0]) is None:
        raise SystemExit(f"{command[0]} is not installed")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.terminate)


async def founded(location: Location) -> tuple[Credentials, str]:
    """Found a bank with a partner; return how it calls and where its Pockets are."""
    opened = await create_bank(location)
    credentials = await create_partner(opened.bank)
    own = derive(opened.bank.seed, command_id("bench", "partner"), 1)
    await opened.close()
    await ensure_login(location.dsn, APP_ROLE)
    return credentials, f"/api/v2/customers/{own}/pockets/"


def common_settings(location: Location, *, by_pooler: bool) -> dict[str, Any]:
    """Return what all hosts have in common besides the database."""
    settings = {
        "encryption_key": base64.b64encode((location.state_dir / _KEY).read_bytes()).decode(),
        "files_dir": location.state_dir / "files",
        "rails_dir": location.state_dir / "rails",
        "audit_seals": location.state_dir / "seals.txt",
    }
    if by_pooler:
        settings["database_pooler_url"] = (
            f"postgresql://{APP_ROLE}@127.0.0.1:{POOLER_PORT}{urlsplit(location.dsn).path}"
        )
    return settings


def main(proxy: str = "haproxy", *options: str) -> None:
    """Make a bank and three hosts, restart them under load, and say what became of the requests."""
    by_pooler = "--pooler" in options
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        location = stack.enter_context(throwaway_server(folder, max_connections="200")).location("bank")
        location.state_dir.mkdir(exist_ok=True)
        credentials, path = asyncio.run(founded(location))
        if by_pooler:
            run_beside(stack, pooler_command(folder, location.dsn))
        common = common_settings(location, by_pooler=by_pooler)
        hosts = [Host(location, port, **common) for port in PORTS]
        for each in hosts:
            each.start()
            stack.callback(each.stop)
        tls = ensure_certificates(location.state_dir / "proxy", wall_now(), domain="localhost", partners=["bench"])
        command_of = {"haproxy": haproxy_command, "nginx": nginx_command}[proxy]
        run_beside(stack, command_of(folder, tls.certificate, tls.key))
        sleep(CALM_SECONDS)
        load = Load(credentials, path, tls.authority)
        asyncio.run(restart_under_load(hosts, load))
        sys.stdout.write(f"{load.sent} requests: {dict(load.counts)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
