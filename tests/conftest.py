"""A real PostgreSQL for every test that asks: one server per run, one fresh database per test.

The server lives in memory where the machine allows it: cloning the migrated template takes about
15 ms there and 300 ms on a disk.
"""

import asyncio
import gc
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import asyncpg
import hypothesis
import pytest
from tests.support.citus_cluster import ONE_SERVER, Cluster
from tests.support.databases import Clerk, fresh_database, look_up_types_once, make_template

from billfold.cli.python_process import tune_garbage_collector
from billfold.migrations import runner
from billfold.platform.database import embedded
from billfold.platform.database.connection import ensure_login
from billfold.platform.database.pool import APP_ROLE
from billfold.wiring.open_bank import load_rules

gc.disable()  # until all tests are collected: what is loaded stays
load_rules()

pytest_plugins = [
    "tests.support.whole_bank",
    "tests.support.approvals",
    *(f"tests.fixtures.{path.stem}" for path in (Path(__file__).parent / "fixtures").glob("[!_]*.py")),
]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give each run its own folder: runs delete files in pytest's shared folder that other runs still use."""
    if config.option.basetemp is None:
        config.option.basetemp = tempfile.mkdtemp(prefix="billfold-tests-")
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was made out of every later collection of garbage, which are rare as in a server."""
    tune_garbage_collector()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first to balance the processes."""
    items.sort(key=lambda item: next((n for n, name in enumerate(LONGEST) if name in item.nodeid), len(LONGEST)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that cannot run here. Done here so that one line counts all of one reason."""
    if item.get_closest_marker("browser") and shutil.which("chromium") is None:
        pytest.skip("chromium is not on the path")
    if item.get_closest_marker("one_server") and "BILLFOLD_TEST_CITUS_URL" in os.environ:
        pytest.skip(ONE_SERVER)


# A busy machine draws examples slowly, which says nothing of the code.
hypothesis.settings.register_profile("busy", suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")
LONGEST = (
    "tests/journeys/test_browser.py",
    "tests/sandbox/scenarios/",
    "tests/benchmarks/test_cli.py",
    "tests/wiring/cli/test_sandbox.py",
    "tests/deploy/test_wheel.py",
    "tests/journeys/test_examples.py",
    "tests/simulation/",
    "tests/reference/test_examples.py",
    "tests/journeys/test_treasury_in_the_browser.py",
    "tests/journeys/test_samples.py",
    "tests/verify/test_damage.py",
    "tests/http/test_openapi_generators.py",
    "tests/wiring/",
    "tests/payments/crypto/",
    "tests/trading/fix/",
    "tests/platform/database/",
    "tests/backup/",
)
MEMORY = Path("/dev/shm")
MEMORY_WANTED = 2 * 1024**3
LONGEST_RUN_SECONDS = 6 * 3600

look_up_types_once()


@pytest.fixture(scope="session")
def pg_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.Server]:
    """The Postgres server shared by all processes of this run; nothing on it is durable."""
    state_dir = _run_dir(tmp_path_factory) / "state"
    if url := os.environ.get("BILLFOLD_TEST_CITUS_URL"):
        yield cast("embedded.Server", cluster := Cluster(url, state_dir))
        Clerk.dismiss(cluster)
        asyncio.run(cluster.drop_created())
        return
    server = embedded.start(state_dir, settings={**embedded.THROWAWAY_SETTINGS, "max_connections": "200"})
    asyncio.run(ensure_login(server.dsn, APP_ROLE))
    yield server
    Clerk.dismiss(server)
    if embedded.stop(server):
        shutil.rmtree(state_dir.parent)


@pytest.fixture(scope="module")
def memory_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the sandboxes of a module: in memory, where there is room, as their databases wait for a disk."""
    if not _has_room(2 * MEMORY_WANTED):
        yield tmp_path_factory.mktemp("sandbox")
        return
    with tempfile.TemporaryDirectory(prefix="billfold-test-sandbox-", dir=MEMORY, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _has_room(wanted: int) -> bool:
    """Tell whether so many bytes of memory are free for files."""
    return MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > wanted


def _run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder shared by all processes of this run and by no other run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    if _has_room(MEMORY_WANTED):
        for left_behind in MEMORY.glob("billfold-test-*"):
            # Of a run that was killed. Its server ends when it finds its files gone.
            if time.time() - left_behind.stat().st_mtime > LONGEST_RUN_SECONDS:
                shutil.rmtree(left_behind, ignore_errors=True)
        return MEMORY / f"billfold-test-{run}"
    return tmp_path_factory.getbasetemp().parent / f"billfold-test-{run}"


@pytest.fixture(scope="session")
def database_template(pg_server: embedded.Server) -> str:
    """The name of a migrated database without connections."""
    template: str = asyncio.run(make_template(pg_server, "billfold_template", _migrate))
    return template


async def _migrate(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    await runner.up(conn)
    await conn.close()


@pytest.fixture
def own_template(request: pytest.FixtureRequest, database_template: str) -> str:
    """The template of the test's database: an initialized one for those that want it `founded`."""
    if "founded" not in request.fixturenames:
        return database_template
    template: str = request.getfixturevalue("cli_bank")[0]
    return template


@pytest.fixture
async def database_dsn(pg_server: embedded.Server, own_template: str) -> AsyncIterator[str]:
    """The address of a migrated database for one test, dropped after it."""
    async with fresh_database(pg_server, own_template) as dsn:
        yield dsn


@pytest.fixture
async def empty_database_dsn(pg_server: embedded.Server) -> AsyncIterator[str]:
    """The address of a database for one test, without migrations."""
    async with fresh_database(pg_server, "template1") as dsn:
        yield dsn


@pytest.fixture
async def conn(database_dsn: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection to the test's own migrated database."""
    connection = await asyncpg.connect(database_dsn)
    yield connection
    await connection.close()
