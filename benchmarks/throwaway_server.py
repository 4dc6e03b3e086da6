"""The throwaway database server of one benchmark: made, used and removed.

Its settings are those of a default installation, so every commit reaches the disk.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from benchmarks.dataset import Location
from billfold.migrations import distribution, runner
from billfold.platform.database import embedded

_PREFIX = "bench-"


class Database:
    """A running server with its own databases."""

    def __init__(self, server: embedded.Server, path: Path) -> None:
        self.path = path
        self.pid = server.pid
        self._server = server

    def empty_database(self, name: str) -> str:
        """Return the address of a new database without tables."""
        return asyncio.run(self._server.create_database(name))

    def location(self, name: str) -> Location:
        """Return the place for a new bank: a database with Billfold's tables, and a folder."""
        dsn = self.empty_database(name)
        asyncio.run(migrate(dsn))
        return Location(dsn, self.path / name)


@contextmanager
def throwaway_server(state_dir: Path, **settings: str) -> Iterator[Database]:
    """Start a server in a new folder below `state_dir`, with other settings; stop it and remove the folder after."""
    state_dir = state_dir.expanduser().resolve()
    state_dir.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(state_dir)
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=state_dir))
    path.chmod(0o755)  # the server may run as another user
    try:
        server = embedded.start(path, settings=settings)
        try:
            yield Database(server, path)
        finally:
            embedded.stop(server)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _remove_leftovers(state_dir: Path) -> None:
    """Stop and remove the remains of a killed benchmark. A running one is not touched."""
    for path in state_dir.glob(f"{_PREFIX}*"):
        if (path / "postgres").exists() and not embedded.stop(embedded.start(path)):
            continue
        shutil.rmtree(path, ignore_errors=True)


async def migrate(dsn: str, *, is_distributed: bool = False) -> None:
    """Make the tables of a bank, on the nodes of a cluster if it is distributed."""
    conn = await asyncpg.connect(dsn)
    try:
        await runner.up(conn)
        if is_distributed:
            await distribution.distribute(conn)
    finally:
        await conn.close()
