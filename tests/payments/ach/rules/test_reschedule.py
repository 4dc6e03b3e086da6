"""What has missed its window goes with the next one, as if it had been asked for then."""

from datetime import date

import pytest
from tests.architecture.movements_of_ach import ACH_ID, originate, rich, see

from billfold.ledger.book.rows import Update
from billfold.ledger.jobs.types import ScheduledJob
from billfold.payments.ach.commands import RescheduleAch


def waiting(direction, **changes):
    """An entry that is accepted on 3 June, seen on 16 June."""
    world, anna, pocket = rich()
    originate(world, anna, pocket, direction=direction)
    see(world, anna, **changes)
    world.at(date(2025, 6, 16))
    return world, anna


@pytest.mark.parametrize("direction", ["CREDIT", "DEBIT"])
def test_an_entry_that_missed_its_window_takes_the_next_with_days_of_its_own(direction):
    world, anna = waiting(direction)
    assert world.do(RescheduleAch, anna, ach_ids=(ACH_ID,)) == {"postponed": 1}
    entry = world.books[anna].referenced[ACH_ID]
    assert entry.status == "APPROVED"
    assert world.now < entry.due_at < entry.settles_at < entry.settled_at
    assert (entry.held_until is not None) == (direction == "DEBIT")
    assert world.books[anna].draft.rows_of(ScheduledJob)[-1].at == entry.due_at
    assert world.do(RescheduleAch, anna, ach_ids=(ACH_ID,)) == {"postponed": 0}


@pytest.mark.parametrize("changes", [{"status": "IN_TRANSIT"}, {"file_id": ACH_ID}])
def test_entries_in_a_file_are_not_rescheduled(changes):
    world, anna = waiting("CREDIT", **changes)
    assert world.do(RescheduleAch, anna, ach_ids=(ACH_ID,)) == {"postponed": 0}
    assert not world.books[anna].draft.rows_of(Update)
