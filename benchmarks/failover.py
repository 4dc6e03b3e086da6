"""The primary is killed under signed transfers and its replica promoted: is every acknowledged transfer there, once?

`python -m benchmarks.failover` replicates synchronously, with `--asynchronous` it does not; it needs the embedded
PostgreSQL. Two processes of Billfold, `serve` and `worker`, find the new primary by themselves. A client sends a
request again under its key until it is answered with 201, as the guides say.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from time import sleep
from urllib.error import URLError
from urllib.request import urlopen
from uuid import UUID

from benchmarks.bank_workload import BankWorkload
from benchmarks.dataset import Location, create_bank
from benchmarks.load_generator import Call, Credentials, request_of
from benchmarks.replicated_servers import ReplicatedServers
from benchmarks.throwaway_server import migrate
from benchmarks.transfers import transfer_calls
from benchmarks.worker_processes import WorkloadError
from billfold.platform import ids
from billfold.platform.clock import monotonic
from billfold.platform.database.connection import connect
from billfold.platform.settings.validation import PREFIX
from billfold.wiring.cli.serve import child_command_line
from billfold.wiring.cli_context import Wiring

PORT, MANAGEMENT_PORT = 8978, 18_978
CUSTOMERS, CONNECTIONS, PER_SECOND = 20, 24, 150
CALM_SECONDS, AWAY_SECONDS = 4.0, 3.0
START_SECONDS, ANSWER_SECONDS, AGAIN_SECONDS = 60.0, 30.0, 0.3
LOST = (OSError, asyncio.IncompleteReadError, TimeoutError)
_READY, _CREATED = 200, 201
_WRONG = (400, 401, 403, 404, 422)
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_ONCE = "SELECT count(*), count(DISTINCT transfer_id) FROM transfer WHERE transfer_id = ANY($1::uuid[])"


class Transfers:
    """Clients that transfer at an even pace, each request until it is acknowledged."""

    def __init__(self, credentials: Credentials, payees: list[tuple[int, UUID]]) -> None:
        self.ended = False
        self.acknowledged: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.longest = 0.0
        self.ports = [PORT]
        self._credentials, self._payees, self._draw = credentials, payees, Random(1)
        self._calls: dict[str, Call] = {}
        self._began, self._sent = monotonic(), 0
        self._last = monotonic()

    async def run(self) -> None:
        """Transfer until the load is ended."""
        await asyncio.gather(*(self._send() for _ in range(CONNECTIONS)))

    async def resend(self) -> dict[str, str]:
        """Send everything again that was acknowledged; return what is acknowledged now, transfers by key."""
        keys, self.acknowledged = list(self.acknowledged), {}
        connection = None
        for key in keys:
            connection = await self._until_acknowledged(key, self._calls[key], connection)
        return self.acknowledged

    async def _send(self) -> None:
        connection = None
        while not self.ended:
            self._sent += 1
            await asyncio.sleep(max(0.0, self._began + self._sent / PER_SECOND - monotonic()))
            key = str(ids.new())
            self._calls[key] = call = transfer_calls(self._payees, 1, self._draw)[0]
            connection = await self._until_acknowledged(key, call, connection if len(self.ports) == 1 else None)

    async def _until_acknowledged(self, key: str, call: Call, connection: Streams | None) -> Streams | None:
        request = request_of(call, self._credentials, key=key, forwarded=True)
        while True:
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", self._draw.choice(self.ports))
                async with asyncio.timeout(ANSWER_SECONDS):
                    status, answer = await exchange(*connection, request)
            except LOST as error:
                self.counts[type(error).__name__] += 1
                connection = None
            else:
                self.counts[str(status)] += 1
                if status == _CREATED:
                    now = monotonic()
                    self.longest, self._last = max(self.longest, now - self._last), now
                    self.acknowledged[key] = json.loads(answer)["id"]
                    return connection
                if status in _WRONG:
                    raise WorkloadError(answer.decode())
            await asyncio.sleep(AGAIN_SECONDS)


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, bytes]:
    """Send a request; return the status and the body of its response."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return int(head[9:12]), await reader.readexactly(int(length[1]) if length else 0)


async def prepare(location: Location) -> tuple[Credentials, list[tuple[int, UUID]]]:
    """Found a bank whose customers may pay each other."""
    await migrate(location.dsn)
    workload = BankWorkload(await create_bank(location))
    await workload.create(CUSTOMERS)
    prepared = await workload.partner(), await workload.counterparties()
    await workload.close()
    return prepared


def start(stack: ExitStack, command: str, environment: Mapping[str, str]) -> None:
    """Run `serve` or `worker` until the end."""
    process = subprocess.Popen(child_command_line(command), env=environment)
    stack.callback(process.wait)
    stack.callback(process.terminate)


def await_ready(port: int = MANAGEMENT_PORT) -> None:
    """Return when the server is ready. Raises WorkloadError when that takes too long."""
    until = monotonic() + START_SECONDS
    while monotonic() < until:
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                if answer.status == _READY:
                    return
        except (URLError, OSError):
            sleep(0.1)
    raise WorkloadError("the server is not ready")


async def fail_over(servers: ReplicatedServers, load: Transfers, *, lagging: bool) -> None:
    """Kill the primary under load, its replica behind it or not, and promote that a little later."""
    sending = asyncio.create_task(load.run())
    await asyncio.sleep(CALM_SECONDS)
    if lagging:
        await servers.hold_replication()
        await asyncio.sleep(1)
    servers.kill_primary()
    await asyncio.sleep(AWAY_SECONDS)
    await asyncio.to_thread(servers.promote_replica)
    await asyncio.sleep(CALM_SECONDS)
    load.ended = True
    await sending


async def compare(dsn: str, acknowledged: Mapping[str, str]) -> str:
    """Say how many of the transfers are there, and in how many rows."""
    conn = await connect(dsn)
    try:
        row = await conn.fetchrow(_ONCE, list(acknowledged.values()))
        assert row is not None
        return f"there: {row[1]}, rows: {row[0]}, lost: {len(acknowledged) - row[1]}"
    finally:
        await conn.close()


def main() -> None:
    """Make a bank on two servers, fail over under load, and compare what was acknowledged with what is there."""
    synchronous = "--asynchronous" not in sys.argv
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        servers = ReplicatedServers(folder)
        stack.callback(servers.stop)
        servers.start(synchronous=synchronous)
        location = Location(servers.address("billfold"), folder / "bank")
        location.state_dir.mkdir()
        credentials, payees = asyncio.run(prepare(location))
        environment = Wiring(dict(os.environ)).environment(
            location.settings(),
            location.dsn,
            log_level="WARNING",
            port=PORT,
            http_port=PORT + 20_000,
            behind_proxy="yes",
            trusted_proxies="127.0.0.1",
        )
        served = environment | {f"{PREFIX}MANAGEMENT_PORT": str(MANAGEMENT_PORT)}
        start(stack, "serve", served)
        start(stack, "worker", environment)
        await_ready()
        sleep(1)
        load = Transfers(credentials, payees)
        asyncio.run(fail_over(servers, load, lagging=not synchronous))
        say(f"{'synchronous' if synchronous else 'asynchronous'}: {len(load.acknowledged)} transfers acknowledged")
        say(f"{asyncio.run(compare(location.dsn, load.acknowledged))}; answers {dict(load.counts)}")
        if not synchronous:
            again = asyncio.run(load.resend())
            say(f"sent again under their keys: {asyncio.run(compare(location.dsn, again))}")
        say(f"longest without an acknowledged transfer: {load.longest:.1f} s, of it {AWAY_SECONDS} without a primary")
        verified = subprocess.run(child_command_line("verify"), env=environment, check=False, capture_output=True)
        say(f"verify: {verified.stdout.decode().splitlines()[-1:]} {verified.stderr.decode()[-500:]}")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
