"""Checks of the database server and of its replicas."""

import asyncio
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg

from billfold.monitoring.health import HealthCheck, failed_check
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.connection import CONNECT_SECONDS, Connection, Host, hosts_of
from billfold.platform.database.replica import CAUGHT_UP_SECONDS, FLUSHED, IDENTITY, REPLAYED
from billfold.platform.database.shortage import error_summary

_WHAT: Final = "replicas read"
_POLL_SECONDS: Final = 0.1
_SINCE: Final = "SELECT date_trunc('second', pg_last_xact_replay_timestamp() AT TIME ZONE 'UTC')::text"


async def check_replicas_read(conn: Connection, dsn: str) -> HealthCheck:
    """Return the findings about the servers at BILLFOLD_DATABASE_REPLICA_URL; `conn` is to the primary."""
    parts = urlsplit(dsn)
    hosts: list[Host | None] = [*hosts_of(dsn)] or [None]
    found, wrong = list[str](), False
    for host in hosts:
        name = parts.netloc.rpartition("@")[2] if host is None else f"{host[0]}:{host[1]}"
        said, is_well = await _replica_state(conn, dsn, host)
        found.append(f"{name} {said}")
        wrong = wrong or not is_well
    step = "Reports are read from the primary until then. See docs/operate/replica_reads.md."
    return HealthCheck(_WHAT, "; ".join(found), step if wrong else "")


async def _replica_state(primary: Connection, dsn: str, host: Host | None) -> tuple[str, bool]:
    """Return the state of a replica, and whether it is read from."""
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
        return "is not a replica: it accepts writes", False
    finally:
        await replica.close()


SKEW_LIMIT = timedelta(seconds=2)
LAG_LIMIT = timedelta(seconds=30)
_REPLICAS = """
SELECT application_name, sync_state, state, coalesce(replay_lag, '0') AS lag FROM pg_stat_replication
 ORDER BY replay_lag DESC NULLS LAST
"""
_ARCHIVER = """
SELECT current_setting('archive_mode') <> 'off' AND current_setting('archive_command') <> 'true' AS archives,
       last_failed_time > coalesce(last_archived_time, '-infinity') AS fails, last_failed_wal, last_archived_time
  FROM pg_stat_archiver
"""


async def check_server(conn: Connection) -> list[HealthCheck]:
    """Return the findings about the database server."""
    checks = []
    for what, look in {"machine clock": _skew, "replicas": _replicas, "archived log": _archiver}.items():
        try:
            checks.append(await look(conn))
        except Exception as error:  # noqa: BLE001 - a check that fails is a finding, not the end of the others
            checks.append(failed_check(what, error))
    return checks


async def _skew(conn: Connection) -> HealthCheck:
    """Tokens of another machine are refused when clocks differ."""
    before = wall_now()
    theirs = await conn.fetchval("SELECT clock_timestamp()")
    skew = max(before - theirs, theirs - wall_now(), timedelta(0))
    found = f"{skew.total_seconds():.1f} s from the database's"
    step = "Have both machines follow a time server: `timedatectl set-ntp true`, `chronyc makestep`."
    return HealthCheck("machine clock", found, step if skew > SKEW_LIMIT else "")


async def _replicas(conn: Connection) -> HealthCheck:
    rows = await conn.fetch(_REPLICAS)
    if not rows:
        wanted = await conn.fetchval("SHOW synchronous_standby_names")
        step = "Start the replica; no command is acknowledged until then." if wanted else ""
        return HealthCheck("replicas", f"none, and {wanted} is waited for" if wanted else "none", step)
    if any(row["state"] is None for row in rows):
        return HealthCheck("replicas", f"{len(rows)}; only pg_monitor may read their positions")
    slowest = rows[0]
    found = ", ".join(
        f"{row['application_name']} {row['sync_state']} {row['lag'].total_seconds():.1f} s" for row in rows
    )
    step = f"See what holds {slowest['application_name']} back: docs/operate/incident_runbook.md."
    return HealthCheck("replicas", found, step if slowest["lag"] > LAG_LIMIT else "")


async def _archiver(conn: Connection) -> HealthCheck:
    row = await conn.fetchrow(_ARCHIVER)
    assert row is not None
    if not row["archives"]:
        return HealthCheck("archived log", "none: only the moments of backups can be restored")
    if row["fails"]:
        step = "Fix its folder before the log fills the disk, or stop it: `billfold backup DIR --no-continuous`."
        return HealthCheck("archived log", f"{row['last_failed_wal']} cannot be archived", step)
    return HealthCheck("archived log", "nothing fails")
