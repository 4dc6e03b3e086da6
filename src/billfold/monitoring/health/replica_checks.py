"""Checks of the replicas that reads go to: whether each is there, one of this database, and how far behind it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import asyncpg

from billfold.monitoring.health.types import HealthCheck
from billfold.platform.clock import monotonic
from billfold.platform.database.connect import CONNECT_SECONDS, hosts_of
from billfold.platform.database.replica import CAUGHT_UP_SECONDS, FLUSHED, IDENTITY, REPLAYED
from billfold.platform.database.shortage import error_summary

if TYPE_CHECKING:
    from billfold.platform.database.connect import Host
    from billfold.platform.database.connection import (Connection)

_WHAT: Final = "replicas read"
_POLL_SECONDS: Final = 0.1
_SINCE: Final = "SELECT date_trunc('second', pg_last_xact_replay_timestamp() AT TIME ZONE 'UTC')::text"


async def check_replicas_read(conn: Connection, dsn: str) -> HealthCheck:
    """Return what is found of the servers at BILLFOLD_DATABASE_REPLICA_URL; `conn` is to the primary."""
    parts = urlsplit(dsn)
    hosts: list[Host | None] = [*hosts_of(dsn)] or [None]
    found, wrong = list[str](), False
    for host in hosts:
        name = parts.netloc.rpartition("@")[2] if host is None else f"{host[0]}:{host[1]}"
        said, is_well = await _look(conn, dsn, host)
        found.append(f"{name} {said}")
        wrong = wrong or not is_well
    step = "The primary answers meanwhile. See docs/operate/replica_reads.md."
    return HealthCheck(_WHAT, "; ".join(found), step if wrong else "")


async def _look(primary: Connection, dsn: str, host: Host | None) -> tuple[str, bool]:
    """Say how a replica is, and whether it is read from."""
    place: dict[str, Any] = {} if host is None else {"host": host[0], "port": host[1]}
    try:
        replica = await asyncpg.connect(dsn, timeout=CONNECT_SECONDS, **place)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return f"does not answer: {error_summary(error)}", False
    try:
        if await replica.fetchrow(IDENTITY) != await primary.fetchrow(IDENTITY):
            return "is another database", False
        position = await primary.fetchval(FLUSHED)
        ends_at = monotonic() + CAUGHT_UP_SECONDS
        while (replayed := await replica.fetchval(REPLAYED)) is not None:
            if replayed >= position:
                return "has everything", True
            if monotonic() > ends_at:
                since = await replica.fetchval(_SINCE)
                return f"is {position - replayed:,} bytes behind, the last commit of {since} UTC", False
            await asyncio.sleep(_POLL_SECONDS)
        return "is no replica: it takes writes", False
    finally:
        await replica.close()
