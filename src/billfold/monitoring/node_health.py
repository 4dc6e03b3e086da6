"""Checks and metrics of the nodes of a distributed bank; a bank on one server has none (ADR 0165).

The coordinator asks each node by a statement with a time limit of its own: one that hangs hides no other.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

import asyncpg
import msgspec

from billfold.monitoring.database_health import LAG_LIMIT
from billfold.monitoring.health import HealthCheck
from billfold.monitoring.samples import DatabaseGauge, MetricSample
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import is_distributed
from billfold.platform.database.shortage import error_summary

PREPARED_SECONDS: Final = 180
"""Citus ends what a node has prepared within two minutes of its return."""
POINT_SECONDS: Final = 900
BYTES_DIFFER: Final = 1 << 30
"""The largest node may exceed twice the smallest by this."""
_NODES = """
SELECT n.nodename, n.nodeport, n.shouldhaveshards,
       (SELECT count(*) FROM pg_dist_placement p JOIN pg_dist_shard s USING (shardid)
         WHERE p.groupid = n.groupid AND s.logicalrelid = 'ledger_head'::regclass)
  FROM pg_dist_node n WHERE n.noderole = 'primary' ORDER BY n.groupid
"""
_LIMITS = """
SELECT set_config(limited, '1000', true)
  FROM unnest('{statement_timeout,citus.node_connection_timeout}'::text[]) AS limited
"""
_ASK = "SELECT success, result FROM master_run_on_worker(ARRAY[$1::text], ARRAY[$2::int], ARRAY[$3::text], true)"
_STATE = """
SELECT json_strip_nulls(json_build_object(
  'bytes', pg_database_size(current_database()),
  'standbys', (SELECT count(*) FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup'),
  'standby_missing', (current_setting('synchronous_standby_names') <> ''
                      AND NOT EXISTS (SELECT 1 FROM pg_stat_replication))::int,
  'standby_lag_seconds', (SELECT CASE WHEN bool_and(state IS NOT NULL)
                                 THEN coalesce(extract(epoch FROM max(replay_lag)), 0) END FROM pg_stat_replication),
  'archive_failing', ((SELECT last_failed_time > coalesce(last_archived_time, '-infinity') FROM pg_stat_archiver)
                      IS TRUE)::int,
  'prepared_seconds', (SELECT coalesce(extract(epoch FROM now() - min(prepared)), 0) FROM pg_prepared_xacts
                        WHERE database = current_database())))
"""
_POINT = "SELECT name, extract(epoch FROM $1 - made_at)::float8 FROM restore_point ORDER BY made_at DESC LIMIT 1"
_GAUGES = {
    name: DatabaseGauge(f"billfold_node_{name}", about, labels=("node",))
    for name, about in {
        "up": "1 while a node of a distributed bank answers.",
        "shards": "Groups of shards of customers on a node.",
        "bytes": "Size of a node's part of the database.",
        "standbys": "Standbys that follow a node.",
        "standby_missing": "1 while a node waits for a standby that does not follow it.",
        "standby_lag_seconds": "Lag of a node's slowest standby.",
        "archive_failing": "1 while a node cannot archive its log.",
        "prepared_seconds": "Age of a node's oldest prepared transaction.",
    }.items()
}
_POINT_AGE = DatabaseGauge("billfold_restore_point_age_seconds", "Age of the newest restore point.")
NODE_GAUGES = (*_GAUGES.values(), _POINT_AGE)


class Node(NamedTuple):
    """A node of the cluster, and what is measured of it, by the names of gauges; `problem` if it does not answer."""

    name: str
    holds_shards: bool
    measured: Mapping[str, float]
    problem: str = ""


async def _read_nodes(conn: Connection) -> list[Node]:
    """Return the nodes, the coordinator first; none if the bank is on one server."""
    rows = await conn.fetch(_NODES) if await is_distributed(conn) else []
    return [await _read_node(conn, *row) for row in rows]


async def _read_node(conn: Connection, host: str, port: int, holds_shards: bool, shards: int) -> Node:  # noqa: FBT001 - a row
    name = f"{host}:{port}"
    try:
        async with conn.transaction(readonly=True):
            await conn.execute(_LIMITS)
            succeeded, result = await conn.fetchrow(_ASK, host, port, _STATE) or (False, "")
    except asyncpg.PostgresError as error:
        succeeded, result = False, error_summary(error)
    if not succeeded:
        return Node(name, holds_shards, {"up": 0, "shards": shards}, " ".join(result.split()))
    return Node(name, holds_shards, {"up": 1, "shards": shards, **msgspec.json.decode(result, type=dict[str, float])})


async def check_nodes(conn: Connection) -> list[HealthCheck]:
    """Return the findings about each node and about restore points; none if the bank is on one server."""
    nodes = await _read_nodes(conn)
    if not nodes:
        return []
    smallest = min((each.measured["bytes"] for each in nodes if each.holds_shards and not each.problem), default=0)
    checks = [_check(each, 2 * smallest + BYTES_DIFFER) for each in nodes]
    name, age = await conn.fetchrow(_POINT, wall_now()) or ("none yet", POINT_SECONDS + 1)
    step = "Start a worker, and create the function that docs/operate/distributed.md shows."
    return [*checks, HealthCheck("restore points", name, step if age > POINT_SECONDS else "")]


def _check(node: Node, bytes_max: float) -> HealthCheck:
    what, measured = f"node {node.name}", node.measured
    if node.problem:
        step = "Commands of its customers wait: start it, or promote its standby (docs/operate/distributed.md)."
        return HealthCheck(what, f"does not answer: {node.problem}", step)
    lag, prepared = measured.get("standby_lag_seconds"), measured["prepared_seconds"]
    behind = "" if lag is None else f", {lag:.1f} s behind"
    found = (
        f"{measured['shards']} shards, {measured['bytes'] / 2**20:,.0f} MiB, {measured['standbys']:g} standbys{behind}"
    )
    is_uneven = node.holds_shards and (measured["shards"] == 0 or measured["bytes"] > bytes_max)
    steps = {
        f"Prepared for {prepared:.0f} s: run `SELECT recover_prepared_transactions()` on the coordinator.": (
            prepared > PREPARED_SECONDS
        ),
        "Start its standby: no command of its customers is acknowledged until then.": measured["standby_missing"],
        "Fix its archive, which fails: without it no restore point can be restored.": measured["archive_failing"],
        "See what holds its standby back: docs/operate/incident_runbook.md.": (lag or 0) > LAG_LIMIT.total_seconds(),
        "Run `SELECT citus_rebalance_start()` on the coordinator, as its administrator.": is_uneven,
    }
    return HealthCheck(what, found, next((step for step, is_wrong in steps.items() if is_wrong), ""))


async def measure_nodes(conn: Connection, wall: datetime) -> list[MetricSample]:
    """Return the metrics of each node; none if the bank is on one server."""
    nodes = await _read_nodes(conn)
    if not nodes:
        return []
    point = await conn.fetchrow(_POINT, wall)
    return [
        *(
            MetricSample(gauge, [((each.name,), each.measured[name]) for each in nodes if name in each.measured])
            for name, gauge in _GAUGES.items()
        ),
        MetricSample(_POINT_AGE, [((), point[1])] if point else []),
    ]
