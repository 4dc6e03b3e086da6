"""The distribution of a bank's tables and customers on a Citus cluster."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from uuid import uuid4

import asyncpg
import pytest
from tests.support import small_bank
from tests.support.citus_cluster import (
    cluster_database,
    end_sessions,
    let_the_application_in,
    move_a_shard,
    needs_cluster,
)
from tests.support.whole_bank import VAULT, EngineCommands, close_bank, engine_beside, open_bank

from billfold.migrations import runner
from billfold.migrations.distribution import Placement, distribute, placements
from billfold.migrations.runner import MigrationError
from billfold.platform.database.distribution import is_distributed
from billfold.verify.runner import verify_bank

_NODES_OF_CUSTOMERS = (
    "SELECT count(DISTINCT nodename || nodeport) FROM citus_shards WHERE table_name::text = 'ledger_head'"
)

_TRANSFERS = "SELECT count(*) FROM command WHERE kind = 'TransferOnUs'"


async def test_tables_keyed_by_customer_are_distributed_by_customer(conn):
    places = await placements(conn)
    assert next(iter(places)) == "ledger_head"
    for table in ("account", "journal_entry", "chain_entry", "command", "transfer", "transaction", "trade", "pocket"):
        assert places[table] is Placement.TENANT
    assert places["directory"] is Placement.VALUE
    assert places["partner"] is places["security"] is places["closing_price"] is Placement.EVERYWHERE
    # Guarded by a trigger, next to such a table, with ids of transactions, with a key of its own, without customers.
    for table in ("audit_entry", "audit_chain_head", "event", "transfer_request", "session"):
        assert places[table] is Placement.COORDINATOR
    assert not await is_distributed(conn)
    with pytest.raises(MigrationError, match="no Citus"):
        await distribute(conn)


@pytest.fixture
async def cluster_bank():
    """The address of a bank with history on a cluster, and its nodes."""
    async with cluster_database(f"billfold_test_{uuid4().hex[:12]}") as (dsn, nodes):
        conn = await asyncpg.connect(dsn)
        await runner.up(conn)
        await let_the_application_in(nodes)
        await distribute(conn)
        assert await distribute(conn) == []
        assert await is_distributed(conn)
        assert await conn.fetchval(_NODES_OF_CUSTOMERS) > 1
        await conn.close()
        await small_bank.live(dsn)
        yield dsn, nodes


@needs_cluster
async def test_two_engines_stay_consistent_while_a_shard_moves_and_a_node_loses_its_sessions(cluster_bank):
    dsn, nodes = cluster_bank
    bank = await open_bank(dsn)
    before = await bank.pool.fetchval(_TRANSFERS)
    own = EngineCommands(bank)
    second = engine_beside(bank)
    other = EngineCommands(SimpleNamespace(engine=second, seed=bank.seed))
    await second.start()
    try:
        customers = [await own.new_customer(f"Customer {nth}") for nth in range(8)]
        places = [await own.new_pocket(customer) for customer in customers]
        for place in places:
            await own.receive_money(place, 100_000_00)
        pairs = list(pairwise(places))
        there, back = [own.transfer(a, b, 1_00) for a, b in pairs], [other.transfer(b, a, 1_00) for a, b in pairs]
        await asyncio.gather(*there, *back, move_a_shard(dsn))
        # The functions of the shard were there before it. Nor does a batch get lost with the sessions of a node.
        await asyncio.gather(*(own.transfer(a, b, 1_00) for a, b in pairs), end_sessions(nodes[-1], dsn))
    finally:
        await second.stop()
        await close_bank(bank)

    conn = await asyncpg.connect(dsn)
    assert await conn.fetchval(_TRANSFERS) - before == 3 * len(pairs)
    assert await conn.fetchval("SELECT count(*) FROM shard_batch") == 0
    assert await conn.fetchval("SELECT count(*) = count(DISTINCT written_no) FROM transaction")
    report = await verify_bank(conn, vault=VAULT)
    assert report.is_clean, report.findings[:5]
    await conn.close()
