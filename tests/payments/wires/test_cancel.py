"""A wire is cancelled until its message is in a file: the customer gets the money back, or the payee, never both."""

import asyncio
import random

import pytest
from tests.support.small_rails import Customer
from tests.support.whole_bank import expect_clean

from billfold.payments.fedwire.outbound import FedwireSender
from billfold.payments.wires.commands import CancelWire
from billfold.payments.wires.store import claim_pending
from billfold.platform.errors import Refused

WAITS = """
SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
                WHERE NOT granted AND datname = current_database())
"""
STATES = """
WITH w AS MATERIALIZED (
  SELECT w.wire_id, w.status, count(t.customer_id) AS refunds
    FROM wire w LEFT JOIN transaction t ON t.customer_id = w.customer_id AND t.details->>'wire_id' = w.wire_id::text
     AND t.details->>'wire_type' = 'REVERSAL'
   GROUP BY w.customer_id, w.wire_id, w.status)
SELECT w.wire_id, w.status, m.file_id IS NOT NULL AS is_sent, w.refunds FROM wire_message m JOIN w USING (wire_id)
"""


@pytest.fixture
async def anna(bank):
    customer = Customer(bank, "Anna")
    await customer.settle_in(500_000_00)
    return customer


async def cancel(customer, wire_id):
    """Cancel a wire; return whether that was accepted."""
    try:
        answer = await customer.do(CancelWire, wire_id, wire_id=wire_id)
    except Refused as refusal:
        assert refusal.code == "wire-not-pending"
        return False
    assert (answer["status"], answer["reason"]) == ("REJECTED", "CANCELED")
    return True


@pytest.mark.one_server
async def test_a_wire_whose_message_is_being_written_into_a_file_is_not_cancelled(bank, anna):
    wire_id = await anna.wire(1_000_10)
    async with bank.pool.acquire() as conn, conn.transaction():
        (claimed,) = await claim_pending(conn, await bank.now(), 10)
        late = asyncio.create_task(cancel(anna, wire_id))
        while not (late.done() or await conn.fetchval(WAITS)):
            await asyncio.sleep(0)
        await conn.execute(
            "UPDATE wire_message SET file_id = gen_random_uuid(), imad = '1', sent_at = now() WHERE message_id = $1",
            claimed.message_id,
        )
    assert not await late


async def test_a_cancelled_wire_is_refunded_once_with_its_fee_and_never_sent(bank, anna):
    wire_id = await anna.wire(1_000_10)
    assert await cancel(anna, wire_id)
    assert not await cancel(anna, wire_id)
    assert await FedwireSender().send(bank) == 0
    assert [tuple(row)[1:] for row in await bank.pool.fetch(STATES)] == [("REJECTED", False, 1)]
    await expect_clean(bank)


async def test_of_a_sender_and_a_cancellation_at_once_exactly_one_wins(bank, anna):
    chance = random.Random(7)

    async def later(work):
        for _ in range(chance.randrange(400)):
            await asyncio.sleep(0)
        return await work

    for _ in range(8):
        wires = [await anna.wire(1_000_10 + n) for n in range(3)]
        cancels = asyncio.gather(*(later(cancel(anna, each)) for each in wires * 2))
        await asyncio.gather(cancels, *(later(FedwireSender().send(bank)) for _ in range(2)))
        rows = await bank.pool.fetch("SELECT status FROM wire WHERE wire_id = ANY($1)", wires)
        assert sum(cancels.result()) == sum(row["status"] == "REJECTED" for row in rows)
    states = await bank.pool.fetch(STATES)
    assert len(states) == 24
    assert {(each["status"] == "REJECTED", each["is_sent"], each["refunds"]) for each in states} <= {
        (True, False, 1),
        (False, True, 0),
    }
    await expect_clean(bank)
