"""Where the tables of a bank lie on a Citus cluster, and a bank whose customers lie there."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from uuid import uuid4

import asyncpg
import pytest
from tests.support import small_bank
from tests.support.citus_cluster import cluster_database, let_the_application_in, needs_cluster
from tests.support.commands import EngineCommands
from tests.support.whole_bank import close_bank, engine_beside, open_bank

from billfold.migrations import runner
from billfold.migrations.distribution import Placement, distribute, placements
from billfold.migrations.runner import MigrationError
from billfold.platform.database.distribution import is_distributed

_BALANCES_NOT_OF_POSTINGS = """
SELECT customer_id, account_no FROM account a JOIN (
  SELECT customer_id, account_no, sum(debit) AS debits, sum(credit) AS credits FROM (
    SELECT customer_id, debit AS account_no, amount AS debit, 0 AS credit FROM posting WHERE phase = 0
     UNION ALL SELECT customer_id, credit, 0, amount FROM posting WHERE phase = 0) p
   GROUP BY customer_id, account_no) s USING (customer_id, account_no)
 WHERE (a.debits, a.credits) <> (s.debits, s.credits) AND kind NOT IN ('bank', 'on_us', 'street', 'treasury')
"""
_HEADS_NOT_OF_CHAIN = """
SELECT customer_id FROM ledger_head h JOIN (
  SELECT customer_id, count(*) AS entries, max(version) AS last FROM chain_entry GROUP BY customer_id
  ) e USING (customer_id)
 WHERE (h.version, h.version) <> (e.entries, e.last)
"""
_NODES_OF_CUSTOMERS = (
    "SELECT count(DISTINCT nodename || nodeport) FROM citus_shards WHERE table_name::text = 'ledger_head'"
)

_TRANSFERS = "SELECT count(*) FROM command WHERE kind = 'TransferOnUs'"
_MOVE_A_SHARD = """
SELECT citus_move_shard_placement(shardid, a.nodename, a.nodeport, b.nodename, b.nodeport, 'block_writes')
  FROM citus_shards a JOIN pg_dist_node b ON b.noderole = 'primary' AND b.groupid > 0 AND b.nodeport <> a.nodeport
 WHERE a.table_name::text = 'ledger_head' ORDER BY shardid LIMIT 1
"""


async def test_tables_lie_with_their_customer_where_their_keys_begin_with_it(conn):
    places = await placements(conn)
    assert next(iter(places)) == "ledger_head"
    for table in ("account", "journal_entry", "chain_entry", "command", "transfer", "transaction", "trade", "pocket"):
        assert places[table] is Placement.TENANT
    assert places["directory"] is Placement.VALUE
    assert places["partner"] is places["security"] is places["closing_price"] is Placement.EVERYWHERE
    # Guarded by a trigger, beside such a table, with ids of transactions, with a key of its own, without customers.
    for table in ("audit_entry", "audit_chain_head", "event", "transfer_request", "session"):
        assert places[table] is Placement.COORDINATOR
    assert not await is_distributed(conn)
    with pytest.raises(MigrationError, match="no Citus"):
        await distribute(conn)


@needs_cluster
async def test_a_bank_lives_on_a_cluster_where_two_engines_share_heads_and_a_shard_moves():
    async with cluster_database(f"billfold_test_{uuid4().hex[:12]}") as (dsn, nodes):
        conn = await asyncpg.connect(dsn)
        await runner.up(conn)
        await let_the_application_in(nodes)
        await distribute(conn)
        assert await distribute(conn) == []
        assert await is_distributed(conn)
        assert await conn.fetchval(_NODES_OF_CUSTOMERS) > 1

        await small_bank.live(dsn)
        bank = await open_bank(dsn)
        own = EngineCommands(bank)
        beside = engine_beside(bank)
        await beside.start()
        try:
            customers = [await own.new_customer(f"Customer {nth}") for nth in range(8)]
            places = [await own.new_pocket(customer) for customer in customers]
            for place in places:
                await own.receive_money(place, 100_000_00)
            before = await conn.fetchval(_TRANSFERS)
            other = EngineCommands(SimpleNamespace(engine=beside, seed=bank.seed))
            pairs = list(pairwise(places))
            there, back = [own.transfer(a, b, 1_00) for a, b in pairs], [other.transfer(b, a, 1_00) for a, b in pairs]
            await asyncio.gather(*there, *back, conn.execute(_MOVE_A_SHARD))
            # The functions of the shard were there before it.
            await asyncio.gather(*(own.transfer(a, b, 1_00) for a, b in pairs))
        finally:
            await beside.stop()
            await close_bank(bank)

        assert await conn.fetchval(_TRANSFERS) - before == 3 * len(pairs)
        await _expect_whole_books(conn)
        await conn.close()


async def _expect_whole_books(conn):
    assert await conn.fetchval("SELECT count(*) FROM shard_batch") == 0
    assert await conn.fetchval("SELECT count(*) = count(DISTINCT written_no) FROM transaction")
    assert await conn.fetch(_BALANCES_NOT_OF_POSTINGS) == []
    assert await conn.fetch(_HEADS_NOT_OF_CHAIN) == []
