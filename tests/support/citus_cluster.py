"""Databases on the Citus cluster whose coordinator BILLFOLD_TEST_CITUS_URL names."""

import os
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from billfold.platform.database.pool import APP_ROLE

URL = os.environ.get("BILLFOLD_TEST_CITUS_URL", "")
needs_cluster = pytest.mark.skipif(not URL, reason="BILLFOLD_TEST_CITUS_URL names no Citus cluster")
_NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_MOVE_A_SHARD = """
SELECT citus_move_shard_placement(shardid, a.nodename, a.nodeport, b.nodename, b.nodeport, 'block_writes')
  FROM citus_shards a JOIN pg_dist_node b ON b.noderole = 'primary' AND b.groupid > 0 AND b.nodeport <> a.nodeport
 WHERE a.table_name::text = 'ledger_head' ORDER BY shardid LIMIT 1
"""
_END_SESSIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name LIKE 'citus_internal%'
"""
_LET_THE_ROLE_IN = f"""
DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{APP_ROLE}') THEN ALTER ROLE {APP_ROLE} LOGIN; END IF;
END $$
"""


def _address(name, host=None, port=None):
    url = urlsplit(URL)
    who = f"{url.netloc.rpartition('@')[0]}@" if "@" in url.netloc else ""
    netloc = url.netloc if host is None else f"{who}{host}:{port}"
    return urlunsplit((url.scheme, netloc, f"/{name}", url.query, ""))


async def _run(dsn, *statements):
    conn = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await conn.execute(statement)
    finally:
        await conn.close()


async def let_the_application_in(nodes):
    """The coordinator connects to the nodes as the role of the application."""
    for host, port in nodes:
        await _run(_address("postgres", host, port), _LET_THE_ROLE_IN)


async def move_a_shard(dsn):
    """Move the customers of one shard to another node."""
    await _run(dsn, _MOVE_A_SHARD)


async def end_sessions(node, dsn):
    """End all that the coordinator does in a database on another node."""
    await _run(_address(urlsplit(dsn).path[1:], *node), _END_SESSIONS)


@asynccontextmanager
async def cluster_database(name):
    """Give the address of an empty database with all nodes of the cluster, and these; it is gone afterwards."""
    conn = await asyncpg.connect(URL)
    nodes = [tuple(row) for row in await conn.fetch(_NODES)]
    await conn.close()
    for host, port in nodes:
        await _run(_address("postgres", host, port), f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}"')
        await _run(_address(name, host, port), "CREATE EXTENSION citus")
    (host, port), *workers = nodes
    await _run(
        _address(name, host, port),
        f"SELECT citus_set_coordinator_host('{host}', {port})",
        *(f"SELECT citus_add_node('{at}', {number})" for at, number in workers),
    )
    yield _address(name, host, port), nodes
    for at, number in nodes:
        await _run(_address("postgres", at, number), f'DROP DATABASE "{name}" WITH (FORCE)')
