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
