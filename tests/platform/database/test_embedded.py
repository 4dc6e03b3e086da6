"""The embedded server as its callers see it: started, shared, killed, stopped."""

import os
import signal
import subprocess
import sys
import time

import asyncpg
import psutil
import pytest

from billfold.platform.database import embedded
from billfold.platform.database.embedded import THROWAWAY_SETTINGS
from billfold.platform.database.embedded_programs import EmbeddedPostgresError, ServerUser

_started: list[embedded.Server] = []


@pytest.fixture
def state_dir(tmp_path):
    yield tmp_path / "state"
    while _started:  # to stop a server again does nothing
        embedded.stop(_started.pop())


def start(state_dir, *, progress=None, **settings):
    return start_durable(state_dir, progress=progress, **{**THROWAWAY_SETTINGS, **settings})


def start_durable(state_dir, *, progress=None, **settings):
    server = embedded.start(state_dir, settings=settings, progress=progress)
    _started.append(server)
    return server


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    assert has_ended(pid)


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # nobody may be there to reap it
    except psutil.NoSuchProcess:
        return False


def has_ended(pid):
    """The server removes its lock file a moment before it ends."""
    for _ in range(500):
        if not is_running(pid):
            return True
        time.sleep(0.01)
    return False


async def fetch_value(dsn, sql):
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def test_a_new_embedded_server_listens_only_on_a_socket(state_dir):
    said: list[str] = []
    server = start(state_dir, progress=said.append)

    assert (await fetch_value(server.dsn, "SHOW server_version")).startswith("18")
    assert await fetch_value(server.dsn, "SHOW listen_addresses") == ""
    assert await fetch_value(server.dsn, "SHOW TimeZone") == "UTC"
    assert not psutil.Process(server.pid).net_connections("tcp")
    assert said[-2:] == ["Creating the database cluster", "Starting PostgreSQL"]


def test_a_second_start_attaches_to_the_running_server(state_dir):
    first = start(state_dir)
    second = start(state_dir)
    assert second.pid == first.pid

    embedded.stop(first)
    assert is_running(second.pid)

    embedded.stop(second)
    assert has_ended(second.pid)
    embedded.stop(second)


def test_a_server_used_by_a_second_process_keeps_running(state_dir):
    mine = start(state_dir)
    program = (
        "import pathlib, sys\n"
        "from billfold.platform.database import embedded as embedded_postgres\n"
        "server = embedded_postgres.start(pathlib.Path(sys.argv[1]))\n"
        "print(server.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(state_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout
    assert int(other.stdout.readline()) == mine.pid

    embedded.stop(mine)
    assert is_running(mine.pid)

    other.kill()  # it never gets to let go
    other.communicate()
    again = start(state_dir)
    assert again.pid == mine.pid
    embedded.stop(again)
    assert has_ended(again.pid)


async def test_commits_survive_a_killed_server(state_dir):
    server = start_durable(state_dir)
    for setting in ("fsync", "synchronous_commit"):
        assert await fetch_value(server.dsn, f"SHOW {setting}") == "on"
    connection = await asyncpg.connect(await server.create_database("kept"))
    await connection.execute("CREATE TABLE word AS SELECT 'still here' AS said")

    kill(server.pid)
    connection.terminate()
    again = start_durable(state_dir)

    assert again.pid != server.pid
    assert await fetch_value(again.dsn_for("kept"), "SELECT said FROM word") == "still here"
    embedded.stop(server)
    embedded.stop(again)
    assert has_ended(again.pid)


def test_start_recovers_from_a_stale_pid_of_a_different_program(state_dir):
    server = start(state_dir)
    kill(server.pid)
    stranger = subprocess.Popen(["sleep", "60"], user=server.data_dir.stat().st_uid)
    for lock_file in (server.data_dir / "postmaster.pid", server.socket_dir / ".s.PGSQL.5432.lock"):
        lock_file.write_text(lock_file.read_text().replace(str(server.pid), str(stranger.pid), 1))

    again = start(state_dir)

    assert again.pid not in {server.pid, stranger.pid}
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_start_repeats_an_interrupted_initialization(state_dir):
    unfinished = state_dir / "postgres.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")

    embedded.stop(start(state_dir))

    assert not unfinished.exists()


async def test_the_socket_is_placed_elsewhere_when_its_path_is_too_long(state_dir):
    server = start(state_dir / ("long, " * 20))

    assert server.socket_dir != server.data_dir
    assert await fetch_value(server.dsn, "SELECT 1") == 1
    embedded.stop(server)
    assert not server.socket_dir.exists()


def test_start_reports_a_setting_that_the_server_refuses(state_dir):
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        start(state_dir, no_such_setting="1")

    embedded.stop(start(state_dir))


def test_starting_a_cluster_of_a_different_postgres_release_is_refused(state_dir):
    embedded.stop(start(state_dir))
    (state_dir / "postgres" / "PG_VERSION").write_text("17\n")

    with pytest.raises(EmbeddedPostgresError, match="made by PostgreSQL 17"):
        start(state_dir)


async def test_create_database_is_idempotent(state_dir):
    server = start(state_dir)

    assert await server.create_database("one") == await server.create_database("one")
    with pytest.raises(ValueError, match="not a database name"):
        await server.create_database('one"; DROP DATABASE one; --')


def test_an_interrupted_start_leaves_no_server_running(state_dir, monkeypatch):
    run = ServerUser.run

    def interrupted(owner, program, *words, **limit):
        run(owner, program, *words, **limit)
        if words[0] == "start":
            raise KeyboardInterrupt

    monkeypatch.setattr(ServerUser, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start(state_dir)
    assert not (state_dir / "postgres" / "postmaster.pid").exists()
