"""The distribution of a bank's tables and customers on a Citus cluster."""

import asyncpg
import pytest
from tests.support.whole_bank import PARTNER, EngineCommands

from billfold.migrations import runner
from billfold.migrations.distribution import Placement, distribute, placements
from billfold.migrations.runner import MigrationError
from billfold.platform.database.distribution import is_distributed


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
    if await is_distributed(conn):
        assert places["partner_pocket"] is Placement.PARTNER
        await conn.execute("COMMENT ON TABLE shard_batch IS '1'")
        assert await runner.pending(conn)  # so that no process of this release starts
        assert await distribute(conn) == []  # as an upgrade does
        assert not await runner.pending(conn)
        return
    with pytest.raises(MigrationError, match="no Citus"):
        await distribute(conn)


LISTED = "SELECT customer_id, pocket_id, opened_at, status FROM {} WHERE partner_id = $1 ORDER BY opened_at, written_no"


async def test_the_list_of_a_partner_in_use_is_filled_when_it_becomes_a_table(bank, bank_dsn):
    if not await is_distributed(bank.pool):
        pytest.skip("on one server it is a view")
    conn = await asyncpg.connect(bank_dsn)
    teller = EngineCommands(bank, "pockets")
    for n in range(4):
        await teller.new_pocket(await teller.new_customer(f"Customer {n}"))
    up = next(step.up for step in runner.read_migrations() if step.name == "0027_pockets_of_partners")
    await conn.execute("DROP TABLE partner_pocket")
    await conn.execute(up)
    await distribute(conn)
    pockets = await conn.fetch(LISTED.format("pocket"), PARTNER)
    assert len(pockets) == 4
    assert await conn.fetch(LISTED.format("partner_pocket"), PARTNER) == pockets
    await conn.close()
