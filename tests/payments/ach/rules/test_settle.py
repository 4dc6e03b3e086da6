"""Entries move together: their file is transmitted, it has settled, or they missed it."""

from datetime import date

import pytest
from tests.architecture.movements_of_ach import ACH_ID, originate, rich, see, sent

from billfold.ledger.book.rows import EventEntry, Update
from billfold.ledger.jobs.types import ScheduledJob
from billfold.payments.ach.commands import MarkAchTransmitted, RescheduleAch, SettleAch
from billfold.payments.ach.types import AchEntry


def test_each_customer_is_notified_once_of_transmitted_entries():
    world, anna, _ = sent("CREDIT", "APPROVED")
    assert world.do(MarkAchTransmitted, anna, ach_ids=(ACH_ID,)) == {"moved": 1}
    assert world.do(MarkAchTransmitted, anna, ach_ids=(ACH_ID,)) == {"moved": 0}
    draft = world.books[anna].draft
    assert [event.kind for event in draft.rows_of(EventEntry)] == ["transfers.ach.out.sent"]
    assert [(row, what["status"]) for row, _, what in draft.rows_of(Update)] == [(AchEntry, "IN_TRANSIT")]


def test_a_returned_entry_does_not_count_as_settled():
    world, anna, _ = sent("CREDIT", "FAILED")
    assert world.do(SettleAch, anna, ach_ids=(ACH_ID,)) == {"moved": 0}
    world, anna, _ = sent("CREDIT")
    assert world.do(SettleAch, anna, ach_ids=(ACH_ID,)) == {"moved": 1}
    assert world.books[anna].referenced[ACH_ID].status == "PROCESSED"


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
