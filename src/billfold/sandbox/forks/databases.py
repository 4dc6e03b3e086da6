"""The databases of a sandbox on its server: the bank's own, those of its forks, and the next and previous of a rewind.

A copy is made by PostgreSQL from a template that nobody is connected to. One bank takes the place of another by two
renames in one transaction.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote, unquote, urlsplit

import asyncpg

from billfold.platform.database.connection import Connection
from billfold.platform.errors import Refused

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
        self._prefix = f"{self.bank}_sandbox_"  # a server may have databases of others
        self.next, self.previous = f"{self._prefix}next", f"{self._prefix}previous"
        self._application = f"forks of {self.bank}"[:_NAME_BYTES]

    def of_fork(self, name: str) -> str:
        """Return the name of a fork's database. Raises Refused when the server has no names so long."""
        found = f"{self._prefix}fork_{name}"
        if len(found.encode()) > _NAME_BYTES:
            raise Refused("fork-not-possible", f"The database {found} would have a name that is too long.")
        return found

    def address(self, database: str) -> str:
        """Return the address of a database of this server."""
        return urlsplit(self._dsn)._replace(path=f"/{quote(database)}").geturl()

    async def check(self) -> None:
        """Raise Refused unless the role of the bank's address may create databases."""
        async with self._server() as conn:
            if not await conn.fetchval(_MAY_CREATE):
                raise Refused("fork-not-possible", "The role of BILLFOLD_DATABASE_URL may not create databases.")

    async def copy(self, source: str, target: str) -> None:
        """Make `target` a copy of `source`, whose sessions are ended."""
        await self.drop(target)
        await self._alone(source, f'CREATE DATABASE "{target}" TEMPLATE "{source}" STRATEGY WAL_LOG')

    async def swap(self) -> None:
        """Let the bank be the previous one, and the next one be the bank: both or nothing."""
        await self._alone(
            self.bank,
            f'ALTER DATABASE "{self.bank}" RENAME TO "{self.previous}"',
            f'ALTER DATABASE "{self.next}" RENAME TO "{self.bank}"',
        )

    async def drop(self, *databases: str) -> None:
        """Remove databases, if they are there."""
        async with self._server() as conn:
            for each in databases:
                await conn.execute(f'DROP DATABASE IF EXISTS "{each}" WITH (FORCE)')

    async def end_orphans(self) -> None:
        """End what a killed process has left running: the server would complete its copies."""
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

    async def _alone(self, database: str, *statements: str) -> None:
        """Do what needs a database without sessions: those of tools that do not know of pauses are ended."""
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
