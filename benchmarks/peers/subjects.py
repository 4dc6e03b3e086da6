"""What is measured: the bank with its signed transfers over HTTPS, and each ledger with its plain ones over HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from random import Random
from typing import Protocol
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import psutil

from benchmarks.counterparties import counterparty_process
from benchmarks.load_generator import Credentials, LoadTask
from benchmarks.measurements import cpu_seconds
from benchmarks.peers.ledgers import Ledger
from benchmarks.server import Server
from benchmarks.throwaway_server import Database
from benchmarks.transfers import transfer_calls

POSTGRESQL_PORT = 5432
REDIS_PORT = 6379
_PORTS = {"postgres": POSTGRESQL_PORT, "postgresql": POSTGRESQL_PORT, "redis": REDIS_PORT, "http": 80}
_LOCAL = {"127.0.0.1", "::1", "localhost"}


class Subject(Protocol):
    """One ledger under load."""

    name: str
    postings: int

    def task(self, count: int, connections: int, per_second: float | None = None) -> LoadTask:
        """Return so many transfers to send over so many connections."""

    def new_day(self) -> None:
        """Do what a ledger does between runs, outside what is measured."""

    def cpu_seconds(self) -> float | None:
        """Return what all its processes have spent; None where they cannot be seen."""

    def bytes_stored(self) -> int | None:
        """Return the size of its database; None where it is not known."""


class Billfold:
    """The bank: its own server, each customer with one payee."""

    name = "billfold"
    postings = 8

    def __init__(self, database: Database, customers: int, stack: ExitStack) -> None:
        location = database.location("peers")
        self._setup = counterparty_process(location)
        stack.callback(self._setup.close)
        self._known: list[tuple[int, UUID]] = self._setup.prepare(("create", customers))
        self._credentials: Credentials = self._setup.prepare(("partner", 0))
        self._server = Server(location, workers=len(os.sched_getaffinity(0)))
        stack.callback(self._server.close)
        self._server.open()
        self._dsn = location.dsn
        self._draw = Random(3)
        self._postgres = database.pid
        self.ca = self._server.ca

    def task(self, count: int, connections: int, per_second: float | None = None) -> LoadTask:
        """Return signed transfers of customers drawn at random."""
        return LoadTask(
            calls=transfer_calls(self._known, count, self._draw),
            port=self._server.port,
            credentials=self._credentials,
            connections=connections,
            per_second=per_second,
        )

    def new_day(self) -> None:
        """Close the day: what was bought today is sold from tomorrow's lots."""
        self._setup.prepare(("morning", 0))

    def cpu_seconds(self) -> float:
        """Return what the server and PostgreSQL have spent."""
        return cpu_seconds(self._server.pid, self._postgres)

    def bytes_stored(self) -> int:
        """Return the size of its database."""
        return database_size(self._dsn)


class Peer:
    """A ledger that somebody started beside the bank."""

    postings = 2

    def __init__(self, ledger: Ledger, accounts: int) -> None:
        self.name = ledger.name
        self._ledger = ledger
        ledger.open_accounts(accounts)
        address = ledger.address
        self._pids = listeners(url for url in (address.url, address.database, address.redis) if url)

    def task(self, count: int, connections: int, per_second: float | None = None) -> LoadTask:
        """Return plain transfers between accounts drawn at random."""
        return LoadTask(
            calls=self._ledger.transfers(count),
            port=self._ledger.address.port,
            credentials=self._ledger.headers(),
            connections=connections,
            per_second=per_second,
        )

    def new_day(self) -> None:
        """Do nothing: a plain ledger has no days."""

    def cpu_seconds(self) -> float | None:
        """Return what everything spent that listens at its addresses, with children."""
        return cpu_seconds(*self._pids) if self._pids else None

    def bytes_stored(self) -> int | None:
        """Return the size of its database, if that was given."""
        database = self._ledger.address.database
        return database_size(database) if database else None


def listeners(urls: Iterable[str]) -> list[int]:
    """Return the processes that listen at addresses of this machine; none when one of them cannot be found.

    Half of the processes would be a wrong figure. A server in a container is not seen.
    """
    found: list[int] = []
    for url in urls:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
        pids = _listening(port) if parts.hostname in _LOCAL else set()
        if not pids:
            return []
        found += [pid for pid in pids if pid not in found]
    return found


def _listening(port: int) -> set[int]:
    """Return the parents of those that listen at a port: workers that share it are counted with their parent."""
    pids = {
        each.pid
        for each in psutil.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port and each.pid
    }
    children: set[int] = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            children |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
    return pids - children


def database_size(dsn: str) -> int:
    """Return the bytes of a database's files."""

    async def size() -> int:
        conn = await asyncpg.connect(dsn)
        try:
            found: int = await conn.fetchval("SELECT pg_database_size(current_database())")
            return found
        finally:
            await conn.close()

    return asyncio.run(size())
