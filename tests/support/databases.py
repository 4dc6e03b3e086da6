"""Databases that are filled once per run, and their clones, which belong to one test each."""

import os
from contextlib import asynccontextmanager
from itertools import count

import asyncpg

_numbers = count(1)


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
            await conn.execute(f"ALTER DATABASE {unfinished} RENAME TO {name}")
    finally:
        await conn.close()
    return name


@asynccontextmanager
async def fresh_database(server, template):
    """The address of a clone that is gone afterwards."""
    name = f"test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{next(_numbers)}"
    yield await server.create_database(name, template=template)
    conn = await asyncpg.connect(server.dsn)
    try:
        await conn.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        await conn.close()
