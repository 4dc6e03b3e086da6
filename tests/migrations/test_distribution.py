"""The distribution of a bank's tables and customers on a Citus cluster."""

import pytest

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
        await conn.execute("COMMENT ON TABLE shard_batch IS '1'")
        assert await runner.pending(conn)  # so that no process of this release starts
        assert await distribute(conn) == []  # as an upgrade does
        assert not await runner.pending(conn)
        return
    with pytest.raises(MigrationError, match="no Citus"):
        await distribute(conn)
