"""Creates forks and rewinds to them, so that a kill at any moment leaves the old bank or the new one.

A fork exists once its folder has its name: the database and the files are complete before. A rewind is done once the
databases are renamed, which is one transaction; until the files have followed, the bank stays paused.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import quote, unquote, urlsplit

import asyncpg
import msgspec

from billfold.platform.clock import business_now, monotonic, wall_now
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import is_distributed
from billfold.platform.dates import iso_z
from billfold.platform.errors import NotFound, Refused
from billfold.sandbox.forks.lease import end_pause, pause_bank

_MAINTENANCE = "postgres"
_NAME_BYTES = 63
_ATTEMPTS = 20
_END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
_END_ORPHANS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
 WHERE application_name = $1 AND pid <> pg_backend_pid()
"""
_MAY_CREATE = "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
_NAMES = "SELECT datname FROM pg_database WHERE starts_with(datname, $1)"


class Databases:
    """The databases of the sandbox whose bank is at `dsn`."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.bank = unquote(urlsplit(dsn).path.lstrip("/"))
        self._prefix = f"{self.bank}_sandbox_"  # a server may have other databases
        self.next, self.previous = f"{self._prefix}next", f"{self._prefix}previous"
        self._application = f"forks of {self.bank}"[:_NAME_BYTES]

    def of_fork(self, name: str) -> str:
        """Return the name of a fork's database. Raises Refused if it is too long for the server."""
        found = f"{self._prefix}fork_{name}"
        if len(found.encode()) > _NAME_BYTES:
            raise Refused("fork-not-possible", f"The database {found} would have a name that is too long.")
        return found

    def address(self, database: str) -> str:
        """Return the address of a database of this server."""
        return urlsplit(self._dsn)._replace(path=f"/{quote(database)}").geturl()

    async def is_on_cluster(self) -> bool:
        """Tell whether the bank's customers lie in databases of other servers, too."""
        async with _connected(self._dsn) as conn:
            return await is_distributed(conn)

    async def check(self) -> None:
        """Raise Refused unless the bank lies in one database, and the role of its address may create others."""
        if await self.is_on_cluster():
            raise Refused("fork-not-possible", "A bank on a cluster is not copied. See docs/operate/distributed.md.")
        async with self._server() as conn:
            if not await conn.fetchval(_MAY_CREATE):
                raise Refused("fork-not-possible", "The role of BILLFOLD_DATABASE_URL may not create databases.")

    async def copy(self, source: str, target: str) -> None:
        """Make `target` a copy of `source`, whose sessions are ended."""
        await self.drop(target)
        await self._execute_without_sessions(source, f'CREATE DATABASE "{target}" TEMPLATE "{source}" STRATEGY WAL_LOG')

    async def swap(self) -> None:
        """Rename the bank to the previous one, and the next one to the bank: both or nothing."""
        await self._execute_without_sessions(
            self.bank,
            f'ALTER DATABASE "{self.bank}" RENAME TO "{self.previous}"',
            f'ALTER DATABASE "{self.next}" RENAME TO "{self.bank}"',
        )

    async def drop(self, *databases: str) -> None:
        """Remove databases, if they exist."""
        async with self._server() as conn:
            for each in databases:
                await conn.execute(f'DROP DATABASE IF EXISTS "{each}" WITH (FORCE)')

    async def end_orphans(self) -> None:
        """End the statements of a killed process: the server would complete its copies."""
        async with self._server() as conn:
            await conn.execute(_END_ORPHANS, self._application)

    async def list_own(self) -> set[str]:
        """Return the names of all databases of this sandbox but the bank's."""
        async with self._server() as conn:
            return {row["datname"] for row in await conn.fetch(_NAMES, self._prefix)}

    async def size(self, database: str) -> int:
        """Return the bytes of a database."""
        async with self._server() as conn:
            return int(await conn.fetchval("SELECT pg_database_size($1::text)", database))

    async def _execute_without_sessions(self, database: str, *statements: str) -> None:
        """Run an action that needs a database without sessions: those of tools that ignore pauses are ended."""
        async with self._server() as conn:
            for attempt in range(_ATTEMPTS):
                await conn.execute(_END_SESSIONS, database)
                try:
                    if len(statements) == 1:
                        await conn.execute(*statements)
                    else:
                        async with conn.transaction():
                            for each in statements:
                                await conn.execute(each)
                except asyncpg.ObjectInUseError:
                    if attempt == _ATTEMPTS - 1:
                        raise
                else:
                    return

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Connection]:
        session = {"application_name": self._application}
        conn = await asyncpg.connect(self._dsn, database=_MAINTENANCE, server_settings=session)
        try:
            yield conn
        finally:
            await conn.close()


_NEXT = ".next"
_SQLITE = ".sqlite"
_SQLITE_COMPANIONS = ("-wal", "-shm")


class BankFiles:
    """The files of one bank by the names of their copies. Missing ones are copied as empty."""

    def __init__(self, *, folders: Mapping[str, Path], files: Mapping[str, Path]) -> None:
        self._folders, self._places = frozenset(folders), {**folders, **files}

    def copy(self, target: Path) -> None:
        """Copy everything into a folder. SQLite databases may be in use."""
        target.mkdir(parents=True)
        for name, place in self._places.items():
            self._copy(name, place, target / name)

    def stage(self, copies: Path) -> None:
        """Stage the files of a folder of copies next to those they will replace."""
        self.discard()
        for name, place in self._places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            self._copy(name, copies / name, _next(place))

    def swap(self) -> None:
        """Replace the files by the staged ones. Completes an interrupted swap."""
        for place in self._places.values():
            if not _next(place).exists():
                continue
            for each in _SQLITE_COMPANIONS if place.suffix == _SQLITE else ():
                place.with_name(place.name + each).unlink(missing_ok=True)
            if place.is_dir():
                shutil.rmtree(place)
            _next(place).replace(place)

    def discard(self) -> None:
        """Remove the staged files."""
        for place in self._places.values():
            with suppress(FileNotFoundError):
                _next(place).unlink() if _next(place).is_file() else shutil.rmtree(_next(place))

    def size(self) -> int:
        """Return the total number of bytes."""
        total = 0
        for each in (each for place in self._places.values() for each in (place, *place.rglob("*"))):
            with suppress(FileNotFoundError):  # removed since: a file of a rail, the journal of a simulated peer
                total += each.stat().st_size if each.is_file() else 0
        return total

    def _copy(self, name: str, source: Path, target: Path) -> None:
        if name not in self._folders:
            _copy_file(source, target)
        elif source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            target.mkdir()


def _next(place: Path) -> Path:
    return place.with_name(place.name + _NEXT)


def _copy_file(source: Path, target: Path) -> None:
    if not source.is_file():
        target.touch(mode=0o600)
    elif source.suffix == _SQLITE:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
        target.chmod(source.stat().st_mode)
    else:
        shutil.copy2(source, target)


OPENING: Final = "opening"
"""The fork that a reset returns to: the bank after its first start."""
FORKS_MAX: Final = 20

NAME_PATTERN: Final = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*\Z"
_NAME_CHARACTERS: Final = 30

ForkName = Annotated[
    str,
    msgspec.Meta(
        pattern=NAME_PATTERN,
        max_length=_NAME_CHARACTERS,
        description="lower-case letters and digits in groups joined by hyphens, with a letter first",
    ),
]
FREE_BYTES_MIN = 256 * 1024 * 1024
"""Bytes that stay free on the disk."""
_DATABASE_GONE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
_DATABASE_SECONDS, _RETRY_SECONDS = 60.0, 0.5
_FOLDER, _RECORD, _FILES, _NEW = "forks", "fork.json", "files", ".new"
# A running clock shows the fork's time after the rewind.
_SHIFT_CLOCK = "UPDATE clock SET wall_anchor = wall_anchor + ($1::timestamptz - $2::timestamptz)"


class SandboxFork(msgspec.Struct, kw_only=True):
    """A copy of the whole bank: the time of its clock, when it was made, and its bytes on the disk."""

    name: str
    now: str
    created_at: str
    size: int
    object_type: Literal["SandboxFork"] = "SandboxFork"


class BankCopies:
    """The forks of the bank of one state directory. `obstacle`: the reason why there can be none."""

    def __init__(self, state_dir: Path, databases: Databases, files: BankFiles, *, obstacle: str | None = None) -> None:
        self._state_dir = state_dir
        self._databases = databases
        self._files = files
        self._obstacle = obstacle
        self._folder = state_dir / _FOLDER
        self._is_whole = True

    def list_forks(self) -> list[SandboxFork]:
        """Return all forks, oldest first."""
        found = [self._read(each.parent) for each in self._folder.glob(f"*/{_RECORD}") if each.parent.suffix != _NEW]
        return sorted(found, key=lambda fork: (fork.created_at, fork.name))

    def get(self, name: str) -> SandboxFork:
        """Return a fork. Raises NotFound."""
        if (
            len(name) > _NAME_CHARACTERS
            or not re.match(NAME_PATTERN, name)
            or not (self._folder / name / _RECORD).is_file()
        ):
            raise NotFound(f"There is no fork {name}.")
        return self._read(self._folder / name)

    async def check_room(self, name: str) -> None:
        """Raise Refused unless a fork with this name can be created."""
        if self._obstacle:
            raise Refused("fork-not-possible", self._obstacle)
        known = [each.name for each in self.list_forks()]
        if name in known:
            raise Refused("fork-exists", f"There is a fork {name} already.")
        if len([each for each in known if each != OPENING]) >= FORKS_MAX:
            raise Refused("too-many-forks", f"There are {FORKS_MAX} forks already.")
        await self._databases.check()
        self._databases.of_fork(name)
        await self._check_disk(await self._databases.size(self._databases.bank) + self._files.size())

    async def keep_opening(self) -> None:
        """Copy the bank for a reset, unless it is on a cluster. No process may have it open."""
        if not await self._databases.is_on_cluster():
            await self.copy(OPENING)

    async def copy(self, name: str) -> SandboxFork:
        """Copy the bank under a name. No process may have it open."""
        database, folder = self._databases.of_fork(name), self._folder / f"{name}{_NEW}"
        shutil.rmtree(folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        await self._databases.copy(self._databases.bank, database)
        await asyncio.to_thread(self._files.copy, folder / _FILES)
        wall = wall_now()
        async with _connected(self._databases.address(database)) as conn:
            now = business_now(await read_clock(conn), wall)
        size = await self._databases.size(database) + self._files.size()
        fork = SandboxFork(name=name, created_at=iso_z(wall), now=iso_z(now), size=size)
        (folder / _RECORD).write_bytes(msgspec.json.encode(fork))
        shutil.rmtree(self._folder / name, ignore_errors=True)
        folder.replace(self._folder / name)
        return fork

    async def prepare(self, name: str) -> str:
        """Prepare a copy of a fork next to the bank; return the address of its database for `replace_bank`."""
        fork = self.get(name)
        await self._check_disk(fork.size)
        await self._databases.drop(self._databases.previous)
        await self._databases.copy(self._databases.of_fork(name), self._databases.next)
        await asyncio.to_thread(self._files.stage, self._folder / name / _FILES)
        return self._databases.address(self._databases.next)

    async def replace_bank(self, name: str) -> None:
        """Make the prepared copy the bank. No process may have it open."""
        made_at = datetime.fromisoformat(self.get(name).created_at)
        async with _connected(self._databases.address(self._databases.next)) as conn:
            await conn.execute(_SHIFT_CLOCK, wall_now(), made_at)
        self._is_whole = False
        try:
            await self._databases.swap()
            self._files.swap()
            self._is_whole = True
        except _DATABASE_GONE:
            await self._recover_when_back()
            raise

    async def drop_previous(self) -> None:
        """Remove the database that a rewind has replaced."""
        await self._databases.drop(self._databases.previous)

    async def drop(self, name: str) -> None:
        """Remove a fork. Raises NotFound."""
        self.get(name)
        folder = self._folder / f"{name}{_NEW}"
        shutil.rmtree(folder, ignore_errors=True)
        (self._folder / name).replace(folder)
        await self._databases.drop(self._databases.of_fork(name))
        shutil.rmtree(folder, ignore_errors=True)

    async def recover(self) -> None:
        """Complete or undo an interrupted operation. May be repeated, also while the bank is open and intact."""
        await self._databases.end_orphans()
        databases = await self._databases.list_own()
        if self._databases.previous in databases:
            self._files.swap()
        else:
            self._files.discard()
        for each in self._folder.glob(f"*{_NEW}"):
            shutil.rmtree(each, ignore_errors=True)
        kept = {self._databases.of_fork(each.name) for each in self.list_forks()}
        await self._databases.drop(*sorted(databases - kept))
        self._is_whole = True
        end_pause(self._state_dir)

    async def _recover_when_back(self) -> None:
        """Recover as soon as the database answers, which knows whether the bank has been replaced."""
        deadline = monotonic() + _DATABASE_SECONDS
        while True:
            try:
                return await self.recover()
            except _DATABASE_GONE:
                if monotonic() > deadline:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)

    @asynccontextmanager
    async def pause(self) -> AsyncIterator[None]:
        """Keep the bank closed for the duration of the block. Raises Refused `sandbox-busy`."""
        async with pause_bank(self._state_dir, is_whole=lambda: self._is_whole):
            yield

    async def _check_disk(self, needed: int) -> None:
        free = shutil.disk_usage(self._state_dir).free
        if free < needed + FREE_BYTES_MIN:
            taken = f"A copy takes {needed:,} bytes, plus a reserve of {FREE_BYTES_MIN:,}"
            raise Refused("fork-disk-full", f"{taken}; {free:,} are free.")

    def _read(self, folder: Path) -> SandboxFork:
        return msgspec.json.decode((folder / _RECORD).read_bytes(), type=SandboxFork)


@asynccontextmanager
async def _connected(dsn: str) -> AsyncIterator[Connection]:
    conn = await asyncpg.connect(dsn)
    try:
        yield conn
    finally:
        await conn.close()
