"""Databases that are filled once per run, and a clone of them for each test."""

import asyncio
import os
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from itertools import count
from threading import Thread
from types import SimpleNamespace
from typing import Any

import asyncpg
from tests.support.citus_cluster import Cluster

from billfold.migrations.distribution import SETTINGS
from billfold.platform.database.pool import APP_ROLE

CLONE = "test_clone_"
_numbers = count(1)
_known: dict[tuple[int, ...], Any] = {}


def look_up_types_once():
    """Keep what the driver asks for about types, as arrays of numbers: in all clones of a template they are the same.

    It asks again on each connection, by the slowest statement of most tests, and tests open thousands.
    """
    driver: Any = asyncpg.Connection
    look_up = driver._introspect_types

    async def known(connection, types, timeout):
        if not connection._params.database.startswith(CLONE):
            return await look_up(connection, types, timeout)
        key = tuple(sorted(types))
        if key not in _known:
            _known[key], _ = await look_up(connection, types, timeout)
        # A statement with a name: the anonymous one of the caller is still prepared.
        return _known[key], SimpleNamespace(name="known")

    driver._introspect_types = known


async def make_template(server, name, fill, *, base="template1"):
    """Have a database of this name that `fill` was given the address of; nobody is connected to it.

    The first worker makes it; nobody can clone it while another looks whether it is complete. A cluster keeps the
    migrated one for later runs; the others have their folders with the run, and a later run drops them.
    """
    conn = await asyncpg.connect(server.dsn)
    try:
        await conn.execute("SELECT pg_advisory_lock(1)")
        if isinstance(server, Cluster) and base != "template1":
            await server.drop_left_behind(name)
            name = f"{name}_{os.getppid() if 'PYTEST_XDIST_WORKER' in os.environ else os.getpid()}"
        if not await conn.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name):
            unfinished = f"{name}_unfinished"
            await fill(await server.create_database(unfinished, template=base))
            if isinstance(server, Cluster):
                await server.finish_template(unfinished, name)
            else:
                await conn.execute(f"ALTER DATABASE {unfinished} RENAME TO {name}")
    finally:
        await conn.close()
    return name


def as_application(dsn):
    """The address of a database for whom the bank serves and works as; what it was is its owner's."""
    return dsn.replace("//postgres@", f"//{APP_ROLE}@")


@asynccontextmanager
async def owner_of(bank):
    """A connection to a bank's database with the rights of its owner."""
    conn = await asyncpg.connect(bank.pool._connect_args[0].replace(f"//{APP_ROLE}@", "//postgres@"))
    try:
        yield conn
    finally:
        await conn.close()


async def as_owner(bank, statement, *values):
    """Run a statement on a bank's database with the rights of its owner."""
    async with owner_of(bank) as conn:
        await conn.execute(statement, *values)


class Clerk:
    """Makes and drops the databases of tests, on a connection and a thread of its own.

    No test waits for either: the next clone of a template is made while a test has the last one.
    Each is on every node of a cluster, which several runs may share: it is left without databases of this one.
    """

    def __init__(self, server):
        self._cluster = isinstance(server, Cluster)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._spare: dict[str, Future[str]] = {}
        self._connected = asyncio.run_coroutine_threadsafe(_connect(server), self._loop)
        self._turn = asyncio.Lock()
        self._dropping: list[Future[str]] = []

    @classmethod
    def of(cls, server):
        return _at_work.get(server.data_dir) or _at_work.setdefault(server.data_dir, cls(server))

    @classmethod
    def dismiss(cls, server):
        """Have everything done, before the server stops."""
        if clerk := _at_work.pop(server.data_dir, None):
            if clerk._cluster:
                for spare in clerk._spare.values():
                    clerk.drop(spare.result())
            for each in clerk._dropping:
                each.result()
            for conn in clerk._connected.result():
                asyncio.run_coroutine_threadsafe(conn.close(), clerk._loop).result()
            clerk._loop.call_soon_threadsafe(clerk._loop.stop)
            clerk._thread.join()
            clerk._loop.close()

    def take(self, template):
        """Return the future of the name of a clone."""
        taken = self._spare.get(template) or self._make(template)
        self._spare[template] = self._make(template)
        return taken

    def drop(self, name):
        self._dropping.append(self._have_done(f'DROP DATABASE "{name}" WITH (FORCE)'))

    def _make(self, template):
        kind = "test_" if template == "template1" else CLONE
        name = f"{kind}{os.getpid()}_{next(_numbers)}"
        statement = f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY'
        settings = SETTINGS if self._cluster else ()
        return self._have_done(statement, name, *(f'ALTER DATABASE "{name}" SET {setting}' for setting in settings))

    def _have_done(self, statement, result="", *more):
        return asyncio.run_coroutine_threadsafe(self._do(statement, result, more), self._loop)

    async def _do(self, statement, result, more):
        async with self._turn:
            nodes = await asyncio.wrap_future(self._connected)
            await asyncio.gather(*(_repeat_while_in_use(conn, statement) for conn in nodes))
            for each in more:
                await nodes[0].execute(each)
        return result


async def _repeat_while_in_use(conn, statement, tries=3):
    """A node opens connections to the others by itself."""
    for _ in range(tries):
        with suppress(asyncpg.ObjectInUseError):
            return await conn.execute(statement)
    raise AssertionError(f"in use: {statement}")


async def _connect(server):
    """Connect to each node, the coordinator first."""
    nodes = server.nodes if isinstance(server, Cluster) else [server.dsn]
    return [await asyncpg.connect(dsn) for dsn in nodes]


_at_work: dict[Any, Clerk] = {}


@asynccontextmanager
async def fresh_database(server, template):
    """The address of a clone that is gone afterwards."""
    clerk = Clerk.of(server)
    name = await asyncio.wrap_future(clerk.take(template))
    if isinstance(server, Cluster) and template == "template1":
        await server.join_nodes(name)
    try:
        yield server.dsn_for(name)
    finally:
        clerk.drop(name)
