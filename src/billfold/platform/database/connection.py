"""The types of a connection, of a pool, and of either: functions that run one statement take `Db`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
    Db: TypeAlias = Connection | Pool
else:
    Connection, Pool = asyncpg.Connection, asyncpg.Pool  # take no parameters at run time
    Db = Connection | Pool


CONNECT_SECONDS = 5.0
_PORT = 5432
_READ_ONLY = "default_transaction_read_only"
_TARGET = "target_session_attrs"
_NOT_THERE = (
    OSError,  # timeouts included
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.ConnectionDoesNotExistError,  # it accepts and hangs up, as a proxy without a server does
)
"""Errors for which the next host is tried. A refused login is not one: the next host would refuse it too."""
_SOCKET_OPTIONS: Mapping[str, int] = {
    "TCP_KEEPIDLE": 5,
    "TCP_KEEPINTVL": 3,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 14_000,
}
"""After 14 seconds of silence the other machine is considered gone; the system would wait for a quarter of an hour."""

Host = tuple[str, int]
if TYPE_CHECKING:
    _DriverConnection = asyncpg.Connection[asyncpg.Record]
else:  # it has a parameter for type checkers only
    _DriverConnection = asyncpg.Connection


class WatchedConnection(_DriverConnection):
    """A connection that ends when the machine at its other end disappears silently."""

    __slots__ = ()

    def __init__(self, protocol: Any, transport: asyncio.Transport, *rest: Any) -> None:  # noqa: ANN401 - the driver's
        super().__init__(protocol, transport, *rest)
        wire = transport.get_extra_info("socket")
        if wire is None or wire.family not in {socket.AF_INET, socket.AF_INET6}:
            return
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _SOCKET_OPTIONS.items():
            if hasattr(socket, name):  # Linux has them all
                wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Connector:
    """Connects to the primary, or to the requested kind of host; the last one used is tried first."""

    def __init__(self) -> None:
        self._last: Host | None = None

    async def connect(
        self, dsn: str, *, timeout: float = CONNECT_SECONDS, **options: Any
    ) -> asyncpg.Connection[asyncpg.Record]:
        """Return a connection. Raises the driver's error; with several hosts that of the last one tried."""
        options = {"connection_class": WatchedConnection, **options, "timeout": timeout}
        reads_only = _READ_ONLY in options.get("server_settings", {})
        if _TARGET not in options and (reads_only or _TARGET not in parse_qs(urlsplit(dsn).query)):
            # A session that is read-only by its own setting would look like a server that accepts no writes.
            options[_TARGET] = "primary" if reads_only else "read-write"
        hosts = sorted(hosts_of(dsn), key=lambda host: host != self._last)
        for host in hosts[:-1]:
            try:
                return await self._connect_to(host, dsn, options)
            except _NOT_THERE:
                continue
        if hosts:
            return await self._connect_to(hosts[-1], dsn, options)
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(dsn, **options)
        return connection

    async def _connect_to(self, host: Host, dsn: str, options: Mapping[str, Any]) -> asyncpg.Connection[asyncpg.Record]:
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(
            dsn, host=host[0], port=host[1], **options
        )
        self._last = host
        return connection


async def connect(dsn: str, **options: Any) -> asyncpg.Connection[asyncpg.Record]:
    """Return a connection to the primary of a database. Raises the driver's error."""
    return await Connector().connect(dsn, **options)


def hosts_of(dsn: str) -> list[Host]:
    """Return the hosts of an address with several, and none of an address with one."""
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    if "host" in query:
        ports = query.get("port", [""])[-1].split(",")
        names = query["host"][-1].split(",")
        named = [(name, ports[nth] if len(ports) > 1 else ports[0]) for nth, name in enumerate(names)]
    else:
        places = [urlsplit(f"//{each}") for each in parts.netloc.rpartition("@")[2].split(",")]
        named = [(each.hostname or "", str(each.port or "")) for each in places]
    if len(named) == 1:
        return []
    return [(unquote(name), int(port or _PORT)) for name, port in named]


_MAY_BECOME_OWNER = """
SELECT session_user, pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = to_regclass($1)), 'MEMBER')
"""


async def find_owner(conn: Connection, table: str) -> str | None:
    """Return the login role if it owns a table or can become its owner, else None."""
    row = await conn.fetchrow(_MAY_BECOME_OWNER, table)
    return row[0] if row and row[1] else None


_LOCK = 0x6C6F6769  # "logi"
_FIND = "SELECT rolcanlogin FROM pg_roles WHERE rolname = $1"


async def ensure_login(dsn: str, role: str) -> None:
    """Create a role that may log in, and may do nothing else until it is granted something."""
    conn = await connect(dsn)
    try:
        async with conn.transaction():
            await conn.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)  # others start at the same time
            may_login = await conn.fetchval(_FIND, role)
            if not may_login:
                await conn.execute(f'{"CREATE" if may_login is None else "ALTER"} ROLE "{role}" LOGIN')
    finally:
        await conn.close()
