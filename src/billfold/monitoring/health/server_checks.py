"""Checks of the database server: its clock beside ours, its replicas, and whether its log is archived."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from billfold.monitoring.health.types import HealthCheck
from billfold.platform.clock import wall_now
from billfold.platform.database.shortage import error_summary

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection)

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
    """Return what is found of the server of the database."""
    checks = []
    for what, look in {"machine clock": _skew, "replicas": _replicas, "archived log": _archiver}.items():
        try:
            checks.append(await look(conn))
        except Exception as error:  # noqa: BLE001 - a check that fails is a finding, not the end of the others
            checks.append(HealthCheck(what, error_summary(error), "See the log of the database."))
    return checks


async def _skew(conn: Connection) -> HealthCheck:
    """A token of another machine is refused when clocks differ."""
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
        return HealthCheck("replicas", f"{len(rows)}; how far they are only pg_monitor may read")
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
        step = "Mend its folder before the log fills the disk, or end it: `billfold backup DIR --no-continuous`."
        return HealthCheck("archived log", f"{row['last_failed_wal']} cannot be archived", step)
    return HealthCheck("archived log", "nothing fails")
