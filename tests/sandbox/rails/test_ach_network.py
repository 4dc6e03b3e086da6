"""The simulated banks of the ACH network."""

from datetime import timedelta

from tests.support.small_rails import Customer

from billfold.ledger.types import ScheduledJob
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.rails.ach_network import SIMULATED_ANSWER, SimulatedAchNetwork


async def test_answering_a_sandbox_ach_file_twice_returns_entries_once(bank):
    anna, clock = Customer(bank, "Anna"), ClockStepper(bank)
    await anna.settle_in(500_000_00)
    await anna.ach("DEBIT", 100_03)
    await clock.advance(timedelta(hours=8))
    row = await bank.pool.fetchrow("SELECT object_id, due_at FROM scheduled_job WHERE kind = $1", SIMULATED_ANSWER)
    await clock.advance(timedelta(days=3))
    again = ScheduledJob(SIMULATED_ANSWER, row["object_id"], None, at=row["due_at"])
    await SimulatedAchNetwork().answer(bank, again)
    arrived = await bank.pool.fetch("SELECT state FROM rail_file WHERE direction = 'IN'")
    assert [each["state"] for each in arrived] == ["PROCESSED"]
    assert await bank.pool.fetchval("SELECT status FROM ach_entry") == "FAILED"
    # A return of the return would say that it came twice.
    assert await bank.pool.fetchval("SELECT count(*) FROM ach_return_entry") == 0


async def test_a_return_requested_again_under_its_key_at_another_time_is_sent_once(bank):
    anna, clock, network = Customer(bank, "Anna"), ClockStepper(bank), SimulatedAchNetwork()
    await anna.settle_in(500_000_00)
    await anna.ach("DEBIT", 100_00)
    await clock.advance(timedelta(days=1))
    ach_id = await bank.pool.fetchval("SELECT ach_id FROM ach_entry")
    for _ in range(2):
        await network.return_entry(bank, ach_id, ach_id, code="R03")
        await clock.advance(timedelta(minutes=1))
    assert await bank.pool.fetchval("SELECT status FROM ach_entry") == "FAILED"
    assert await bank.pool.fetchval("SELECT count(*) FROM suspense_item") == 0
