"""The tasks of a sandbox over a database of their own, requested by the servers of a bank."""

from contextlib import asynccontextmanager

import asyncpg
from tests.support.databases import owner_of

from billfold.sandbox.control.socket import control_socket
from billfold.sandbox.control.tasks import SandboxTasks
from billfold.sandbox.forks.copies import BankCopies, BankFiles, Databases

CLOCK = """
CREATE TABLE clock (singleton boolean, business_anchor timestamptz, wall_anchor timestamptz, frozen boolean);
INSERT INTO clock VALUES (true, '2025-06-02 13:00Z', '2026-01-01Z', true)
"""


class Surroundings:
    """A sandbox without other processes."""

    @asynccontextmanager
    async def without_counterparts(self):
        yield

    async def upgrade(self, dsn):
        pass

    def after_rewind(self):
        pass

    async def play(self, name, progress):
        progress.begin("The ledger is verified")


@asynccontextmanager
async def performing_tasks(bank):
    """Do the tasks that are requested of the bank, on a database that has a clock and nothing else."""
    async with owner_of(bank) as conn:
        sockets = await conn.fetchval("SELECT current_setting('unix_socket_directories')")
        name = f"tasks_{await conn.fetchval('SELECT pg_backend_pid()')}"
    dsn = f"postgresql://postgres@/{name}?host={sockets}"
    server = await asyncpg.connect(dsn, database="postgres")
    await server.execute(f"CREATE DATABASE {name}")
    conn = await asyncpg.connect(dsn)
    await conn.execute(CLOCK)
    await conn.close()
    databases, folder = Databases(dsn), bank.settings.state_dir
    folder.mkdir(exist_ok=True)
    tasks = SandboxTasks(BankCopies(folder, databases, BankFiles(folders={}, files={})), Surroundings())
    try:
        async with control_socket(folder, tasks.answer):
            yield
    finally:
        await tasks.close()
        await databases.drop(databases.bank, *await databases.list_own())
        await server.close()
