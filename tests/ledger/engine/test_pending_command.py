"""The rows a command depends on are read under its customers' locks, not before."""

import asyncio
from uuid import UUID

from tests.payments.on_us.test_routes import PATH, account, payee, requested_amount

CHANGE = "UPDATE counterparty SET status = $2 WHERE counterparty_id = $1"


async def test_a_transfer_to_a_counterparty_unlinked_while_it_waits_is_refused(partner_desk):
    pocket, target = await partner_desk.funded(5_000_00), await partner_desk.pocket()
    linked = await payee(partner_desk, pocket, target)
    body = {
        "type": "PEER_TO_PEER",
        "from_account": account(pocket),
        "amount": requested_amount(100_00),
        "counterparty_id": linked,
    }
    async with partner_desk.bank.pool.acquire() as conn, conn.transaction():
        # The unlink holds the lock of the customer: the transfer has read the portal, and waits for the lock.
        await conn.execute("SELECT 1 FROM ledger_head WHERE customer_id = $1 FOR UPDATE", UUID(pocket.customer))
        asking = asyncio.create_task(
            partner_desk.refused("POST", PATH, body, status=422, code="counterparty-not-verified")
        )
        while not await waits_for_a_lock(partner_desk.bank.pool):
            await asyncio.sleep(0)
        await conn.execute(CHANGE, UUID(linked), "UNLINKED")
    await asking
    await partner_desk.bank.pool.execute(CHANGE, UUID(linked), "LINKED")  # no command has said so
    assert (await partner_desk.counts())["transfer"] == 0


async def waits_for_a_lock(pool):
    return await pool.fetchval(
        "SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE NOT l.granted AND a.datname = current_database())"
    )
