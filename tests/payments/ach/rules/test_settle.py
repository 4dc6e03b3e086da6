"""Entries move together: their file has gone, their time is over."""

from tests.architecture.movements_of_ach import ACH_ID, sent

from billfold.ledger.book.rows import EventEntry, Update
from billfold.payments.ach.commands import MarkAchTransmitted, SettleAch
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
