"""Two releases over one schema: an older one serves, the schema is migrated under it, this one takes over.

`python -m benchmarks.side_by_side --old REF` needs git and the embedded PostgreSQL. Between the commit REF and this
release no migration may need a stop. The commit is unpacked into a temporary folder, and founds the bank.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

import msgspec

from benchmarks.dataset import Location, customer_of, pocket_of
from benchmarks.load_generator import Call, Credentials, request_of
from benchmarks.rolling_restart import DRAIN_SECONDS, LOST, Host, common_settings, exchange
from benchmarks.throwaway_server import throwaway_server
from billfold.cli.serve import child_command_line
from billfold.platform.clock import monotonic
from billfold.wiring.cli_context import Wiring

_ROOT: Final = Path(__file__).parents[1]
_PORTS: Final = {"old": 8981, "new": 8982}
_PER_SECOND, _CLIENTS = 100, 16
_CALM_SECONDS, _ANSWER_SECONDS = 5.0, 30.0
_READS_PER_TRANSFER: Final = 2
_TRANSFERS: Final = "/api/v1/transfers/on-us/"
_FORWARDED: Final = b"X-Forwarded-Proto: https\r\nX-Forwarded-For: 127.0.0.1\r\n"
_FOUND = """
import asyncio, sys
from pathlib import Path
import msgspec
from benchmarks.dataset import Location
from benchmarks.failover import prepare
print(msgspec.json.encode(asyncio.run(prepare(Location(sys.argv[1], Path(sys.argv[2]))))).decode())
"""
_Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Load:
    """Clients of all servers that are open at the moment; each keeps a connection to each server."""

    def __init__(self, credentials: Credentials, payees: list[tuple[int, str]]) -> None:
        self.open = {_PORTS["old"]}
        self.ended = False
        self.counts: Counter[tuple[int, str]] = Counter()
        self._credentials, self._payees, self._draw = credentials, payees, Random(1)
        self._began, self._sent = monotonic(), 0

    async def run(self) -> None:
        """Send until the load is ended."""
        await asyncio.gather(*(self._send() for _ in range(_CLIENTS)))

    async def _send(self) -> None:
        kept: dict[int, _Streams] = {}
        while not self.ended:
            self._sent += 1
            await asyncio.sleep(max(0.0, self._began + self._sent / _PER_SECOND - monotonic()))
            port = self._draw.choice(sorted(self.open))
            try:
                if port not in kept:
                    kept[port] = await asyncio.open_connection("127.0.0.1", port)
                async with asyncio.timeout(_ANSWER_SECONDS):
                    head = await exchange(*kept[port], self._request())
            except LOST as error:
                kept.pop(port, None)
                self.counts[port, type(error).__name__] += 1
            else:
                self.counts[port, head[9:12].decode()] += 1

    def _request(self) -> bytes:
        payer, counterparty = self._draw.choice(self._payees)
        reads = [
            Call("GET", f"/api/v2/customers/{customer_of(payer)}/transactions/"),
            Call("GET", f"/api/v2/customers/{customer_of(payer)}/pockets/"),
            Call("GET", "/api/v2/transactions/"),
            *(Call("GET", f"/api/v1/{listed}/") for listed in ("cards", "ach-originating", "wires", "events")),
        ]
        transfer = {
            "type": "PEER_TO_PEER",
            "from_account": {"id": str(pocket_of(payer)), "type": "SERVICE_ACCOUNT"},
            "counterparty_id": counterparty,
            "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": self._draw.randrange(100, 900)},
            "description": "Invoice",
        }
        moves = self._sent % (1 + _READS_PER_TRANSFER) == 0
        call = Call("POST", _TRANSFERS, body=msgspec.json.encode(transfer).decode()) if moves else None
        line, _, rest = request_of(call or self._draw.choice(reads), self._credentials).partition(b"\r\n")
        return line + b"\r\n" + _FORWARDED + rest


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SystemExit(f"{name} is not installed")
    return path


def unpack(ref: str, folder: Path) -> None:
    """Write the files of a commit into a folder."""
    packed = subprocess.run([_program("git"), "archive", ref], cwd=_ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")


def found(old: Path, location: Location) -> tuple[Credentials, list[tuple[int, str]]]:
    """Migrate the database and found its bank as the older release."""
    environment = os.environ | {"PYTHONPATH": f"{old / 'src'}{os.pathsep}{old}"}
    command = [sys.executable, "-c", _FOUND, location.dsn, str(location.state_dir)]
    printed = subprocess.run(command, cwd=old, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return msgspec.json.decode(printed.splitlines()[-1], type=tuple[Credentials, list[tuple[int, str]]])


async def take_over(old: Host, new: Host, load: Load, run_command: Any) -> None:
    """Migrate under the older release, put this one beside it, and end the older one, all under load."""
    sending = asyncio.create_task(load.run())
    await asyncio.sleep(_CALM_SECONDS)
    await asyncio.to_thread(run_command, "migrate", "up")
    await asyncio.sleep(_CALM_SECONDS)
    await asyncio.to_thread(new.start)
    load.open = {*_PORTS.values()}
    await asyncio.sleep(_CALM_SECONDS)
    stopping = asyncio.create_task(asyncio.to_thread(old.stop))
    await asyncio.sleep(DRAIN_SECONDS / 2)
    load.open = {_PORTS["new"]}  # as a proxy does that has seen `/readyz`
    await stopping
    await asyncio.sleep(_CALM_SECONDS)
    load.ended = True
    await sending


def main() -> None:
    """Run the older release and this one over one database, and say what was answered."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--old", required=True, help="the older release, as git names it")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        unpack(arguments.parse_args().old, folder / "old")
        database = stack.enter_context(throwaway_server(folder, max_connections="200"))
        location = Location(database.empty_database("bank"), folder / "bank")
        location.state_dir.mkdir()
        credentials, payees = found(folder / "old", location)
        common = common_settings(location, by_pooler=False)
        environment = Wiring(dict(os.environ)).environment(location.settings(), location.dsn, **common)

        def run_command(*command: str) -> None:
            began = monotonic()
            done = subprocess.run(child_command_line(*command), env=environment, check=False, capture_output=True)
            said = (done.stdout + done.stderr).decode().splitlines()
            say(f"{' '.join(command)}: {done.returncode}, {monotonic() - began:.1f} s, {said[-1] if said else ''}")

        old = Host(location, _PORTS["old"], sources=folder / "old/src", **common)
        new = Host(location, _PORTS["new"], **common)
        old.start()
        stack.callback(new.stop)
        load = Load(credentials, payees)
        asyncio.run(take_over(old, new, load, run_command))
        for name, port in _PORTS.items():
            say(f"{name}: { ({what: count for (at, what), count in load.counts.items() if at == port}) }")
        run_command("verify")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
