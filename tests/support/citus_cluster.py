"""A Citus cluster in place of the embedded server: BILLFOLD_TEST_CITUS_URL names a database of its coordinator."""

import asyncio
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from billfold.migrations.distribution import SETTINGS, distribute
from billfold.platform.database.connection import ensure_login
from billfold.platform.database.pool import APP_ROLE

ONE_SERVER = "looks into one server: its plans, locks, round trips or files, or rows damaged as its owner"
_NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_OF_RUNS = "SELECT datname FROM pg_database WHERE starts_with(datname, $1 || '_')"
_END_SESSIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()
"""


class Cluster:
    """The nodes of a cluster: a database is made, cloned, renamed and dropped on each. `data_dir` is for tests."""

    def __init__(self, url: str, data_dir: Path) -> None:
        self.data_dir = data_dir
        data_dir.mkdir(parents=True, exist_ok=True)
        self._nodes = asyncio.run(_nodes_of(url))
        self._created: list[str] = []
        for node in reversed(range(len(self._nodes))):
            asyncio.run(ensure_login(self.dsn_for("postgres", node=node), APP_ROLE))

    @property
    def dsn(self) -> str:
        """The address of the maintenance database of the coordinator."""
        return self.dsn_for("postgres")

    @property
    def nodes(self) -> list[str]:
        """The addresses of the maintenance databases, the coordinator's first."""
        return [self.dsn_for("postgres", node=node) for node in range(len(self._nodes))]

    def dsn_for(self, database: str, user: str = "postgres", *, node: int = 0) -> str:
        """Return the address of a database on the coordinator, or on another node."""
        return f"postgresql://{user}@{self._nodes[node]}/{database}"

    async def everywhere(self, *statements: str, database: str = "postgres") -> None:
        """Run statements on each node, the coordinator last."""
        coordinator, *workers = (self.dsn_for(database, node=node) for node in range(len(self._nodes)))
        await asyncio.gather(*(_run(dsn, *statements) for dsn in workers))
        await _run(coordinator, *statements)

    async def create_database(self, name: str, *, template: str = "template1") -> str:
        """Create a database on each node unless it exists, as a copy of `template`; return its address."""
        self._created.append(name)
        with suppress(asyncpg.DuplicateDatabaseError):
            await self.everywhere(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        if template == "template1":
            await self.join_nodes(name)
        await _run(self.dsn, *(f'ALTER DATABASE "{name}" SET {setting}' for setting in SETTINGS))
        return self.dsn_for(name)

    async def join_nodes(self, name: str) -> None:
        """Make one cluster of the databases of this name."""
        await self.everywhere("CREATE EXTENSION IF NOT EXISTS citus", database=name)
        (host, port), *workers = (node.split(":") for node in self._nodes)
        await _run(
            self.dsn_for(name),
            f"SELECT citus_set_coordinator_host('{host}', {port})",
            *(f"SELECT citus_add_node('{at}', {number})" for at, number in workers),
        )

    async def drop_created(self) -> None:
        """Drop the databases that this process created; a template has another name by then."""
        await self.everywhere(*(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)' for name in self._created))

    async def drop_left_behind(self, prefix: str) -> None:
        """Drop the databases of this prefix and the process of a run that has ended."""
        conn = await asyncpg.connect(self.dsn)
        for (name,) in await conn.fetch(_OF_RUNS, prefix):
            if not Path("/proc", name.removeprefix(f"{prefix}_").partition("_")[0]).exists():
                await self.everywhere(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        await conn.close()

    async def finish_template(self, unfinished: str, name: str) -> None:
        """Distribute a migrated database and give it its name; nothing connects to it any more."""
        conn = await asyncpg.connect(self.dsn_for(unfinished))
        await conn.execute(f"SET citus.shard_count = {len(self._nodes) - 1}")  # each new connection looks at all
        await distribute(conn)
        await conn.close()
        await self.everywhere(f'ALTER DATABASE "{unfinished}" ALLOW_CONNECTIONS false')
        for node in range(len(self._nodes)):
            conn = await asyncpg.connect(self.dsn_for("postgres", node=node))
            while await conn.fetch(_END_SESSIONS, unfinished):
                await asyncio.sleep(0.1)
            await conn.close()
        await self.everywhere(f'ALTER DATABASE "{unfinished}" RENAME TO "{name}"')


async def _nodes_of(url: str) -> list[str]:
    conn = await asyncpg.connect(url)
    nodes = [f"{host}:{port}" for host, port in await conn.fetch(_NODES)]
    await conn.close()
    assert nodes, f"{urlsplit(url).path[1:]} has no nodes: SELECT citus_set_coordinator_host(..), citus_add_node(..)"
    return nodes


async def _run(dsn: str, *statements: str) -> None:
    conn = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await conn.execute(statement)
    finally:
        await conn.close()
