"""A folder for throwaway servers: in memory where there is room, as no measurement is made."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

import asyncpg
import pytest
from tests.conftest import MEMORY
from typing_extensions import override

from benchmarks.dataset import Location
from benchmarks.throwaway_server import Database, throwaway_server
from billfold.migrations import runner


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that other users may traverse, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="billfold-bench-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
def state_dir() -> Iterator[Path]:
    with _folder() as folder:
        yield folder


class SharedServer(Database):
    """The databases of one benchmark on a server of several: to make a server and to migrate takes seconds."""

    numbers = count(1)
    template = ""

    @override
    def empty_database(self, name: str) -> str:
        return super().empty_database(f"{name}_{next(self.numbers)}")

    @override
    def location(self, name: str) -> Location:
        made = f"{name}_{next(self.numbers)}"
        return Location(asyncio.run(self._server.create_database(made, template=self.template)), self.path / name)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Callable[[Path], AbstractContextManager[Database]]]:
    """Make the throwaway server of each benchmark: in truth there is one for all."""
    with _folder() as folder, throwaway_server(folder) as one:
        SharedServer.template = "migrated"
        asyncio.run(_migrate(one.empty_database(SharedServer.template)))

        @contextmanager
        def server(state_dir: Path) -> Iterator[Database]:
            path = state_dir / "bench"
            path.mkdir(mode=0o755)
            yield SharedServer(one._server, path)
            shutil.rmtree(path)

        yield server


async def _migrate(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    await runner.up(conn)
    await conn.close()
