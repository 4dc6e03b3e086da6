"""The nodes of a distributed bank; needs BILLFOLD_TEST_CITUS_URL (docs/operate/distributed.md)."""

import os
from datetime import timedelta

import asyncpg
import pytest

from billfold.backup.restore_points import make_restore_point
from billfold.migrations.cluster_requirements import list_shortfalls
from billfold.monitoring import node_health
from billfold.monitoring.node_health import check_nodes, measure_nodes
from billfold.platform.clock import wall_now

ADMINISTRATOR = """
CREATE FUNCTION create_restore_point(name text) RETURNS pg_lsn LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog AS 'SELECT citus_create_restore_point(name)'
"""


@pytest.mark.skipif("BILLFOLD_TEST_CITUS_URL" not in os.environ, reason="no Citus cluster is named")
async def test_a_distributed_bank_is_checked_by_node_and_has_restore_points(bank, bank_dsn, monkeypatch):
    conn = await asyncpg.connect(bank_dsn)

    async def wrong():
        return {each.what: each.next_step for each in await check_nodes(conn) if each.next_step}

    async def measured():
        return {each.gauge.name: dict(each.values) for each in await measure_nodes(conn, wall_now())}

    points = "restore points"
    assert set(await wrong()) == {points}
    await conn.execute(ADMINISTRATOR)
    assert [await make_restore_point(bank) for _ in range(2)] == [1, 0], "five minutes apart"
    assert not await wrong()
    nodes = [name for (name,) in (await measured())["billfold_node_shards"]]
    assert (await measured())["billfold_node_up"] == {(name,): 1 for name in nodes}
    assert {each.partition(": ")[0] for each in await list_shortfalls(conn)} <= set(nodes)

    await conn.execute("UPDATE restore_point SET made_at = $1", wall_now() - timedelta(hours=1))
    assert (await measured())["billfold_restore_point_age_seconds"][()] > 3_599
    assert set(await wrong()) == {points}
    await conn.execute("UPDATE pg_dist_node SET nodeport = 1 WHERE nodename || ':' || nodeport = $1", nodes[-1])
    assert set(await wrong()) == {points, f"node {nodes[-1].partition(':')[0]}:1"}, "a node that does not answer"
    monkeypatch.setattr(node_health, "PREPARED_SECONDS", -1)
    assert len(await wrong()) == 1 + len(nodes), "transactions that are left prepared"
    await conn.close()
