"""Databases that are filled once per run, and a clone of them for each test."""

import os
from contextlib import asynccontextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any

import asyncpg
from tests.support.citus_cluster import Cluster

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

    The first worker makes it; nobody can clone it while another looks whether it is complete.
    """
    conn = await asyncpg.connect(server.dsn)
    try:
        await conn.execute("SELECT pg_advisory_lock(1)")
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


@asynccontextmanager
async def fresh_database(server, template):
    """The address of a clone that is gone afterwards."""
    kind = "test_" if template == "template1" else CLONE
    name = f"{kind}{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{next(_numbers)}"
    yield await server.create_database(name, template=template)
    drop = f'DROP DATABASE "{name}" WITH (FORCE)'
    if isinstance(server, Cluster):
        await server.everywhere(drop)
        return
    conn = await asyncpg.connect(server.dsn)
    try:
        await conn.execute(drop)
    finally:
        await conn.close()
