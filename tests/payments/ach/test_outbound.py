"""Files for the ACH windows contain every entry that can be sent."""

import asyncio
from datetime import timedelta

import pytest
from tests.support.small_rails import Customer
from tests.support.whole_bank import VAULT, expect_clean

from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import FileMasterKey
from billfold.payments.ach.commands import ReviewAch
from billfold.platform import ids
from billfold.platform.errors import Refused
from billfold.sandbox.control.clock_stepper import ClockStepper

NUMBERED = "UPDATE ach_entry SET file_id = $2, trace_number = '1' WHERE ach_id = $1"
WAITS = """
SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
                WHERE NOT granted AND datname = current_database())
"""
SENT = "SELECT customer_id FROM ach_entry WHERE file_id IS NOT NULL"


async def test_entries_wait_while_the_data_key_of_their_customer_is_damaged(bank):
    anna, bert, clock = Customer(bank, "Anna"), Customer(bank, "Bert"), ClockStepper(bank)
    for each in (anna, bert):
        await each.settle_in(500_000_00)
        await bank.ports[DataKeys].of(bank.pool, each.id)
        await each.ach("CREDIT", 100_00)
    wrapped = await bank.pool.fetchval("SELECT wrapped FROM data_key WHERE subject_id = $1", bert.id)
    for key, sent in ((b"\x01", {anna.id}), (wrapped, {anna.id, bert.id})):
        await bank.pool.execute("UPDATE data_key SET wrapped = $2 WHERE subject_id = $1", bert.id, key)
        bank.ports[DataKeys] = DataKeys(FileMasterKey(VAULT))  # as another process reads them
        await clock.advance(timedelta(days=2))
        assert {row[0] for row in await bank.pool.fetch(SENT)} == sent
    await expect_clean(bank)


@pytest.mark.one_server
async def test_an_entry_whose_customer_is_locked_for_numbering_cannot_be_cancelled(bank):
    anna = Customer(bank, "Anna")
    await anna.settle_in(500_000_00)
    entry = await anna.ach("CREDIT", 100_00)
    async with bank.pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM ledger_head WHERE customer_id = $1 FOR UPDATE", anna.id)
        cancels = asyncio.create_task(anna.move(ReviewAch, entry, decision="CANCELLED"))
        while not await conn.fetchval(WAITS):
            await asyncio.sleep(0)
        await conn.execute(NUMBERED, entry, ids.new())
    with pytest.raises(Refused, match="ach-origination-not-pending"):
        await cancels
