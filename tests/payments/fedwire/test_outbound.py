"""Due wires leave in files, which the job of one of them writes for all."""

import asyncio

from tests.support.small_rails import Customer

from billfold.payments.fedwire import outbound
from billfold.payments.liquidity.worker import admit_due as admitted


async def test_jobs_of_one_instant_look_for_due_wires_at_most_twice_and_again_after_a_failure(bank, monkeypatch):
    anna, looks = Customer(bank, "Anna"), []

    async def admit_due(bank):
        looks.append(bank)
        if len(looks) == 1:
            raise ConnectionError
        return await admitted(bank)

    monkeypatch.setattr(outbound, "admit_due", admit_due)
    await anna.settle_in(500_000_00)
    for cents in range(8):
        await anna.wire(1_000_10 + cents)
    sender = outbound.FedwireSender()
    done = await asyncio.gather(*(sender.send(bank) for _ in range(8)), return_exceptions=True)
    assert isinstance(done[0], ConnectionError)
    assert (done[1:], len(looks)) == ([1, 0, 0, 0, 0, 0, 0], 2)
    assert await bank.pool.fetchval("SELECT count(*) FROM wire_message WHERE file_id IS NULL") == 0
