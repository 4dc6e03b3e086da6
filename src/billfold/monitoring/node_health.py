"""Checks and metrics of the nodes of a distributed bank; a bank on one server has none (ADR 0165).

The coordinator asks each node by a statement with a time limit of its own: one that hangs hides no other.
"""

from collections.abc import Callable
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
SELECT json_build_object(
  'bytes', pg_database_size(current_database()),
  'standbys', (SELECT count(*) FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup'),
  'lag_seconds', (SELECT CASE WHEN bool_and(state IS NOT NULL)
                         THEN coalesce(extract(epoch FROM max(replay_lag)), 0) END FROM pg_stat_replication),
  'archive_fails', (SELECT last_failed_time > coalesce(last_archived_time, '-infinity') FROM pg_stat_archiver) IS TRUE,
  'prepared_seconds', (SELECT coalesce(extract(epoch FROM now() - min(prepared)), 0) FROM pg_prepared_xacts
                        WHERE database = current_database()))
"""
_POINT = "SELECT name, extract(epoch FROM $1 - made_at)::float8 FROM restore_point ORDER BY made_at DESC LIMIT 1"


class NodeState(msgspec.Struct, frozen=True):
    """What a node says of itself; the lag is None without a standby, or if its user may not read it."""

    bytes: int
    standbys: int
    lag_seconds: float | None
    archive_fails: bool
    prepared_seconds: float


class Node(NamedTuple):
    """A node of the cluster; its state is a text if it does not answer."""

    name: str
    holds_shards: bool
    shards: int
    state: NodeState | str


async def read_nodes(conn: Connection) -> list[Node]:
    """Return the nodes, the coordinator first; none if the bank is on one server."""
    rows = await conn.fetch(_NODES) if await is_distributed(conn) else []
    return [
        Node(f"{host}:{port}", holds_shards, shards, await _ask(conn, host, port))
        for host, port, holds_shards, shards in rows
    ]


async def _ask(conn: Connection, host: str, port: int) -> NodeState | str:
    try:
        async with conn.transaction(readonly=True):
            await conn.execute(_LIMITS)
            succeeded, result = await conn.fetchrow(_ASK, host, port, _STATE) or (False, "")
    except asyncpg.PostgresError as error:
        return error_summary(error)
    return msgspec.json.decode(result, type=NodeState) if succeeded else " ".join(result.split())


async def check_nodes(conn: Connection) -> list[HealthCheck]:
    """Return the findings about each node and about restore points; none if the bank is on one server."""
    nodes = await read_nodes(conn)
    if not nodes:
        return []
    sizes = [each.state.bytes for each in nodes if each.holds_shards and isinstance(each.state, NodeState)]
    checks = [_check(each, 2 * min(sizes, default=0) + BYTES_DIFFER) for each in nodes]
    name, age = await conn.fetchrow(_POINT, wall_now()) or ("none yet", POINT_SECONDS + 1)
    step = "Start a worker, and create the function that docs/operate/distributed.md shows."
    return [*checks, HealthCheck("restore points", name, step if age > POINT_SECONDS else "")]


def _check(node: Node, bytes_max: int) -> HealthCheck:
    what, state = f"node {node.name}", node.state
    if isinstance(state, str):
        step = "Commands of its customers wait: start it, or promote its standby (docs/operate/distributed.md)."
        return HealthCheck(what, f"does not answer: {state}", step)
    lag = "" if state.lag_seconds is None else f", {state.lag_seconds:.1f} s behind"
    found = f"{node.shards} shards, {state.bytes / 2**20:,.0f} MiB, {state.standbys or 'no'} standby{lag}"
    steps = {
        "Run `SELECT recover_prepared_transactions()` on the coordinator as its administrator: the oldest is prepared"
        f" since {state.prepared_seconds:.0f} s.": state.prepared_seconds > PREPARED_SECONDS,
        "Fix its archive, which fails: no restore point can be restored without it.": state.archive_fails,
        "See what holds its standby back: docs/operate/incident_runbook.md.": (state.lag_seconds or 0)
        > LAG_LIMIT.total_seconds(),
        "Run `SELECT citus_rebalance_start()` on the coordinator as its administrator.": node.holds_shards
        and (node.shards == 0 or state.bytes > bytes_max),
    }
    return HealthCheck(what, found, next((step for step, is_wrong in steps.items() if is_wrong), ""))


_PER_NODE: dict[DatabaseGauge, Callable[[NodeState], float | None]] = {
    DatabaseGauge(f"billfold_node_{name}", about, ("node",), ""): value
    for name, about, value in (
        ("bytes", "Size of a node's part of the database.", lambda state: state.bytes),
        ("standbys", "Standbys that follow a node.", lambda state: state.standbys),
        ("standby_lag_seconds", "Lag of a node's slowest standby.", lambda state: state.lag_seconds),
        (
            "prepared_seconds",
            "Age of the oldest prepared transaction.",
            lambda state: state.prepared_seconds,
        ),
    )
}
_UP = DatabaseGauge("billfold_node_up", "1 while a node of a distributed bank answers.", ("node",), "")
_SHARDS = DatabaseGauge("billfold_node_shards", "Groups of shards of customers on a node.", ("node",), "")
_POINT_AGE = DatabaseGauge("billfold_restore_point_age_seconds", "Age of the newest restore point.", (), "")
NODE_GAUGES = (_UP, _SHARDS, *_PER_NODE, _POINT_AGE)


async def measure_nodes(conn: Connection, wall: datetime) -> list[MetricSample]:
    """Return the metrics of each node; none if the bank is on one server."""
    nodes = await read_nodes(conn)
    if not nodes:
        return []
    states = {each.name: each.state for each in nodes if isinstance(each.state, NodeState)}
    measured = [MetricSample(_UP, [((each.name,), float(each.name in states)) for each in nodes])]
    measured.append(MetricSample(_SHARDS, [((each.name,), each.shards) for each in nodes]))
    for gauge, value in _PER_NODE.items():
        values = {name: value(state) for name, state in states.items()}
        measured.append(MetricSample(gauge, [((name,), each) for name, each in values.items() if each is not None]))
    point = await conn.fetchrow(_POINT, wall)
    return [*measured, MetricSample(_POINT_AGE, [((), point[1])] if point else [])]
