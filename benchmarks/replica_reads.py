"""What reads cost the primary with a replica beside it: CPU time of both servers' processes, and of ours.

`python -m benchmarks.replica_reads` makes two servers of the embedded PostgreSQL, and reads a customer's transactions
as pages of the Partner API and as a CSV file, by the primary alone and by the replica.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from benchmarks import dataset
from benchmarks.dataset import Location, customer_of, pocket_of
from benchmarks.partner_setup import create_partner
from benchmarks.replicated_servers import ReplicatedServers
from billfold.accounts.transactions.schemas import render_transaction
from billfold.accounts.transactions.store import Activity, TransactionFilters, TransactionRow
from billfold.http.csv_export import ROWS_PER_PAGE, csv_stream
from billfold.ledger.bank import Bank
from billfold.migrations import runner
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import sign_request
from billfold.platform.csv_text import Separators
from billfold.platform.database.connect import connect
from billfold.wiring.server import make_partner_app

ROWS: Final = 100_000
REQUESTS: Final = 1_500
_PATH: Final = f"/api/v2/customers/{customer_of(0)}/transactions/"
_OK: Final = 200


def main() -> None:
    """Measure both kinds of reads by both servers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        servers = ReplicatedServers(folder)
        stack.callback(servers.stop)
        servers.start(synchronous=False)
        asyncio.run(_measure(servers, Location(servers.address("billfold", "one"), folder / "bank")))


async def _measure(servers: ReplicatedServers, location: Location) -> None:
    location.state_dir.mkdir()
    conn = await connect(location.dsn)
    await runner.up(conn)
    await conn.close()
    opened = await dataset.create_bank(location)
    credentials = await create_partner(opened.bank)
    portals = await dataset.create_customers(opened.bank, [0])
    deposits = [dataset.deposit(0, portals[0], 10_000, str(nth)) for nth in range(ROWS)]
    await dataset.submit_commands(opened.bank, deposits)
    await opened.close()
    for name, replica in (("primary", None), ("replica", servers.address("billfold", "two"))):
        opened = await dataset.open_bank(location, database_replica_url=replica)
        while opened.bank.replica is not None and await opened.bank.replica.current() is None:
            await asyncio.sleep(1)
        app: Any = make_partner_app(opened.bank)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url=f"https://{credentials.host}"
        ) as client:
            headers = {"authorization": f"Bearer {credentials.token}", "cache-control": "max-stale=30"}
            pages = partial(_read_pages, client, headers, credentials.secret, has_age=replica is not None)
            await pages(count=100)
            await _count(servers, f"{name}: {REQUESTS} pages of 30", partial(pages, count=REQUESTS))
            await _count(servers, f"{name}: a file of {ROWS} rows", partial(_read_file, opened.bank))
        await app.close()
        await opened.close()


async def _read_pages(
    client: httpx.AsyncClient, headers: dict[str, str], secret: str, *, has_age: bool, count: int
) -> None:
    for _ in range(count):
        key = str(ids.new())
        signed = {"x-service-idempotency": key, "x-service-signature": sign_request(secret, key, _PATH, body=b"")}
        answer = await client.get(_PATH, headers=headers | signed)
        assert (answer.status_code, "age" in answer.headers) == (_OK, has_age)


async def _read_file(bank: Bank) -> None:
    now = wall_now()
    activity = Activity.of_customer(customer_of(0), [pocket_of(0)])

    async def fetch(reading: Bank, last: TransactionRow | None) -> list[TransactionRow]:
        after = None if last is None else (last.entry_no, last.posting_no)
        return await activity.rows(
            reading.pool, TransactionFilters(), now=now, calendars=bank.calendars, after=after, limit=ROWS_PER_PAGE
        )

    def cells_of(row: TransactionRow) -> list[Any]:
        return [render_transaction(row, now, bank.calendars).id, row.amount, row.description]

    chunks = csv_stream("n.csv", ("id",), fetch, cells_of=cells_of, separators=Separators.COMMA, bank=bank).chunks
    lines = sum([each.count(b"\n") async for each in chunks])
    assert lines == ROWS + 1, lines


async def _count(servers: ReplicatedServers, what: str, work: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(2)  # what the server does of itself, such as a vacuum, is over
    began = {name: _cpu_of(pid) for name, pid in servers.processes().items()} | {"ours": _cpu_of(os.getpid())}
    await work()
    spent = {name: _cpu_of(pid) - began[name] for name, pid in (servers.processes() | {"ours": os.getpid()}).items()}
    sys.stdout.write(f"{what}: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in spent.items()) + "\n")


def _cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process and of its children, those that have ended included."""
    process = psutil.Process(pid)
    times = [process.cpu_times(), *(each.cpu_times() for each in process.children())]
    ended = times[0]
    return sum(each.user + each.system for each in times) + ended.children_user + ended.children_system


if __name__ == "__main__":
    main()
