"""Forks and rewinds of a bank reduced to one number in its database and the same number in a file."""

import asyncio
import fcntl
import os
import signal
import time
from datetime import datetime
from pathlib import Path

import asyncpg
import pytest
from tests.support.sandbox_process import CLOCK

from billfold.platform.errors import NotFound, Refused
from billfold.sandbox.forks import copies
from billfold.sandbox.forks.copies import BankCopies, BankFiles, Databases
from billfold.sandbox.forks.lease import SANDBOX_LOCK, bank_lease, is_paused


class Number:
    """A bank that is a number, in a folder."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder, self.dsn = folder, dsn
        files = BankFiles(folders={"rails": folder / "rails"}, files={"seals": folder / "seals.txt"})
        self.databases = Databases(dsn)
        self.copies = BankCopies(folder, self.databases, files)

    async def execute(self, statement):
        conn = await asyncpg.connect(self.dsn)
        try:
            return await conn.fetchval(statement)
        finally:
            await conn.close()

    async def set(self, value):
        await self.execute(f"UPDATE number SET n = {value}")
        (self.folder / "rails").mkdir(exist_ok=True)
        for name in ("rails/one", "seals.txt"):
            (self.folder / name).write_text(str(value))

    async def read(self):
        """Return the number, which all places agree about."""
        places = {(self.folder / name).read_text() for name in ("rails/one", "seals.txt")}
        (value,) = places | {str(await self.execute("SELECT n FROM number"))}
        return int(value)

    async def fork(self, name):
        async with self.copies.pause():
            return await self.copies.copy(name)

    async def rewind(self, name):
        await self.copies.prepare(name)
        async with self.copies.pause():
            await self.copies.replace_bank(name)
        await self.copies.drop_previous()


@pytest.fixture
async def number(tmp_path, empty_database_dsn):
    made = Number(tmp_path, empty_database_dsn)
    await made.execute("CREATE TABLE number AS SELECT 0 AS n")
    conn = await asyncpg.connect(made.dsn)
    await conn.execute(CLOCK)
    await conn.close()
    with (tmp_path / SANDBOX_LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as the sandbox that makes copies
        yield made
    await made.databases.drop(*await made.databases.list_own())


def killed(work, after):
    """Run something in a process that is killed after so many seconds; return how long it ran."""
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        asyncio.run(work())
        os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return time.monotonic() - began


async def test_a_killed_fork_or_rewind_leaves_the_old_bank_or_the_new_one(number):
    await number.set(1)
    # The first of each is left to end, and says how long the others have before they are killed.
    whole_fork = await asyncio.to_thread(killed, lambda: number.fork("one"), None)
    await number.set(2)
    whole_rewind = await asyncio.to_thread(killed, lambda: number.rewind("one"), None)
    await number.copies.recover()
    found = {await number.read()}
    for nth in range(6):
        await number.set(2)
        await asyncio.to_thread(killed, lambda: number.fork("two"), nth / 5 * whole_fork)
        await number.copies.recover()
        names = [each.name for each in number.copies.list_forks()]
        assert names in (["one"], ["one", "two"])
        own = {number.databases.of_fork(each) for each in names}
        assert await number.databases.list_own() == own
        await asyncio.to_thread(killed, lambda: number.rewind("one"), nth / 5 * whole_rewind)
        await number.copies.recover()
        assert not is_paused(number.folder)
        found.add(await number.read())
        if "two" in names:
            await number.rewind("two")
            assert await number.read() == 2
            await number.copies.drop("two")
    assert found == {1, 2}


async def test_a_rewind_waits_for_open_processes_and_restores_a_running_clock(number):
    await number.set(1)
    await number.execute("UPDATE clock SET frozen = false, wall_anchor = now() - interval '1 minute'")
    opened = asyncio.Event()
    found = []

    async def hold():
        async with bank_lease(number.folder):
            opened.set()
            while not is_paused(number.folder):
                await asyncio.sleep(0.01)
        async with bank_lease(number.folder):
            found.append([each.name for each in number.copies.list_forks()])

    task = asyncio.create_task(hold())
    await opened.wait()
    fork = await number.fork("one")
    await task
    assert found == [["one"]]
    assert "T13:01:0" in fork.now
    await number.execute("UPDATE clock SET business_anchor = business_anchor + interval '9 days'")
    await number.rewind("one")
    shown = await number.execute("SELECT business_anchor + (now() - wall_anchor) FROM clock")
    assert 0 <= (shown - datetime.fromisoformat(fork.now)).total_seconds() < 5


async def test_forks_are_limited_in_number_and_have_valid_names(number, monkeypatch):
    await number.set(1)
    await number.fork("one")
    for name in ("two", "../one", "", "one/../one"):
        with pytest.raises(NotFound):
            number.copies.get(name)
    with pytest.raises(Refused, match="fork-exists"):
        await number.copies.check_room("one")
    monkeypatch.setattr(copies, "FREE_BYTES_MIN", 1 << 62)
    with pytest.raises(Refused, match="fork-disk-full"):
        await number.copies.check_room("two")
    monkeypatch.setattr(copies, "FORKS_MAX", 1)
    with pytest.raises(Refused, match="too-many-forks"):
        await number.copies.check_room("two")
    await number.execute("CREATE TABLE shard_batch ()")  # as if customers lay elsewhere
    with pytest.raises(Refused, match="fork-not-possible"):
        await number.databases.check()
    await number.copies.keep_opening()
    assert [each.name for each in number.copies.list_forks()] == ["one"]
