"""The primary is killed under signed transfers and its replica promoted: is every acknowledged transfer there, once?

`python -m benchmarks.failover` replicates synchronously, with `--asynchronous` it does not; it needs the embedded
PostgreSQL. Two processes of Billfold, `serve` and `worker`, find the new primary by themselves. A client sends a
request again under its key until it is answered with 201, as the guides say.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from time import sleep

import msgspec

from benchmarks.dataset import Location, create_bank, create_customers, deposit, pocket_of, submit_commands
from benchmarks.load_generator import Credentials
from benchmarks.partner_setup import add_counterparties, create_partner
from benchmarks.replicated_servers import ReplicatedServers
from benchmarks.rolling_restart import LOST, Served
from benchmarks.worker_processes import WorkloadError
from billfold.cli.serve import child_command_line
from billfold.migrations import runner
from billfold.platform import ids
from billfold.platform.clock import monotonic
from billfold.platform.crypto import sign_request
from billfold.platform.database.connect import connect
from billfold.wiring.cli_context import Wiring

PORT = 8978
PATH = "/api/v1/transfers/on-us/"
CUSTOMERS, CONNECTIONS, PER_SECOND = 20, 24, 150
CALM_SECONDS, AWAY_SECONDS = 4.0, 3.0
ANSWER_SECONDS, AGAIN_SECONDS = 30.0, 0.3
_CREATED = 201
_WRONG = (400, 401, 403, 404, 422)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_ONCE = "SELECT count(*), count(DISTINCT transfer_id) FROM transfer WHERE transfer_id = ANY($1::uuid[])"


class Transfers:
    """Clients that transfer at an even pace, each request until it is acknowledged."""

    def __init__(self, credentials: Credentials, payees: list[tuple[int, str]]) -> None:
        self.ended = False
        self.acknowledged: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.longest = 0.0
        self._credentials, self._payees, self._draw = credentials, payees, Random(1)
        self._bodies: dict[str, bytes] = {}
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
            connection = await self._until_acknowledged(key, self._bodies[key], connection)
        return self.acknowledged

    async def _send(self) -> None:
        connection = None
        while not self.ended:
            self._sent += 1
            await asyncio.sleep(max(0.0, self._began + self._sent / PER_SECOND - monotonic()))
            key = str(ids.new())
            payer, counterparty = self._draw.choice(self._payees)
            self._bodies[key] = body = msgspec.json.encode(
                {
                    "type": "PEER_TO_PEER",
                    "from_account": {"id": str(pocket_of(payer)), "type": "SERVICE_ACCOUNT"},
                    "counterparty_id": counterparty,
                    "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": self._draw.randrange(100, 900)},
                    "description": "Invoice",
                }
            )
            connection = await self._until_acknowledged(key, body, connection)

    async def _until_acknowledged(self, key: str, body: bytes, connection: Streams | None) -> Streams | None:
        while True:
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", PORT)
                async with asyncio.timeout(ANSWER_SECONDS):
                    status, answer = await self._exchange(*connection, key=key, body=body)
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

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, key: str, body: bytes
    ) -> tuple[int, bytes]:
        who = self._credentials
        lines = [
            f"POST {PATH} HTTP/1.1",
            f"Host: {who.host}",
            "X-Forwarded-Proto: https",
            "X-Forwarded-For: 127.0.0.1",
            f"Authorization: Bearer {who.token}",
            f"x-service-idempotency: {key}",
            f"x-service-signature: {sign_request(who.secret, key, PATH, body=body)}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(head[9:12]), await reader.readexactly(length)


async def prepare(location: Location) -> tuple[Credentials, list[tuple[int, str]]]:
    """Found a bank whose customers may pay each other."""
    conn = await connect(location.dsn)
    await runner.up(conn)
    await conn.close()
    opened = await create_bank(location)
    credentials = await create_partner(opened.bank)
    portals = await create_customers(opened.bank, range(CUSTOMERS))
    await submit_commands(opened.bank, [deposit(nth, portal, 400_000_00, "1") for nth, portal in portals.items()])
    pairs = [(nth, (nth + 1) % CUSTOMERS) for nth in range(CUSTOMERS)]
    counterparties = await add_counterparties(opened.bank, pairs)
    await opened.close()
    return credentials, [(payer, str(each)) for (payer, _), each in zip(pairs, counterparties, strict=True)]


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
        environment = Wiring(dict(os.environ)).environment(location.settings(), location.dsn, log_level="WARNING")
        served = Served(location, PORT)
        served.start()
        stack.callback(served.stop)
        worker = subprocess.Popen(child_command_line("worker"), env=environment)
        stack.callback(worker.wait)
        stack.callback(worker.terminate)
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
