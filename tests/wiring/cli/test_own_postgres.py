"""The statements of docs/operate/install.md, run on a server whose users are no superusers."""

import asyncio
import os
import re
import subprocess
from pathlib import Path

import asyncpg
import pytest

from billfold.migrations import runner
from billfold.migrations.runner import Migration
from billfold.platform.database import embedded
from billfold.platform.database.embedded_programs import _bin_dir
from billfold.wiring.cli.app import run
from billfold.wiring.cli_context import Wiring

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "install.md"
NEWEST = len(runner.read_migrations())


@pytest.fixture
def server(tmp_path):
    found = embedded.start(tmp_path / "server", settings=embedded.THROWAWAY_SETTINGS)
    yield found
    embedded.stop(found)


async def administer(server, *statements):
    conn = await asyncpg.connect(server.dsn)
    for statement in statements:
        await conn.execute(statement)
    await conn.close()


def address(server, user, database="billfold"):
    return server.dsn_for(database).replace("//postgres@", f"//{user}@")


def test_a_bank_on_an_own_postgres_runs_under_a_role_without_ownership(server, tmp_path, capsys, monkeypatch):
    def billfold(user, *words, role=None):
        environ = {"BILLFOLD_STATE_DIR": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
        dsn = address(server, user) + (f"&role={role}" if role else "")
        status = run(Wiring(environ | {"BILLFOLD_DATABASE_URL": dsn}), arguments=words)
        said = capsys.readouterr()
        return status, " ".join((said.out + said.err).split())

    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    owner, application, grant, database, stricter = re.findall(r"[^;]+;", "".join(blocks))
    asyncio.run(administer(server, owner, database))
    for missing in (application, grant):  # missing rights are reported, statement by statement
        status, said = billfold("billfold", "migrate", "up")
        assert (status, "Traceback" in said) == (1, False)
        assert "CREATE ROLE billfold_app NOLOGIN; GRANT billfold_app TO" in said
        asyncio.run(administer(server, missing))
    assert billfold("billfold", "migrate", "up")[0] == 0
    asyncio.run(administer(server, stricter))
    assert billfold("billfold_serve", "partner", "create", "acme")[0] == 0
    assert billfold("billfold_serve", "verify")[0] == 0
    reader = "CREATE ROLE reader LOGIN IN ROLE pg_read_all_data"
    asyncio.run(administer(server, reader, "CREATE ROLE heir LOGIN IN ROLE billfold"))
    status, said = billfold("reader", "verify")
    assert (status, "every row is as it was written" in said, "may only read" in said) == (0, True, True), said
    dump = [str(_bin_dir() / "pg_dump"), "--format=custom", f"--file={tmp_path / 'bank.dump'}"]
    for user in ("billfold", "billfold_serve"):
        subprocess.run([*dump, address(server, user)], check=True, timeout=60)
    status, said = billfold("billfold_serve", "migrate", "down", "--yes")
    assert (status, "The database refuses" in said) == (1, True), said
    assert billfold("heir", "migrate", "up")[0] == 0  # nothing is pending
    steps = [*runner.read_migrations(), Migration(NEWEST + 1, "a_new_table", "CREATE TABLE a_new_one ();", down="")]
    monkeypatch.setattr(runner, "read_migrations", lambda _=None: steps)
    status, said = billfold("heir", "migrate", "up")
    assert (status, "The tables belong to billfold" in said) == (1, True), said
    assert billfold("heir", "migrate", "up", role="billfold")[0] == 0


def test_a_database_that_is_not_utf8_is_refused(server, tmp_path, capsys):
    asyncio.run(
        administer(
            server, "CREATE DATABASE old TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C'"
        )
    )
    environ = {"BILLFOLD_STATE_DIR": str(tmp_path), "BILLFOLD_DATABASE_URL": address(server, "postgres", "old")}
    assert run(Wiring(environ), arguments=["migrate", "up"]) == 1
    assert "SQL_ASCII, not UTF8" in " ".join(capsys.readouterr().err.split())
