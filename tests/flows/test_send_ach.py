"""Entries move together: their file has gone, their time is over."""

from tests.architecture.movements_of_ach import ACH_ID, sent

from billfold.flows.send_ach import CountAchSettled, SendAch


def test_everybody_is_told_once_that_his_entries_have_gone():
    world, anna, _ = sent("CREDIT", "APPROVED")
    assert world.do(SendAch, anna, ach_ids=(ACH_ID,)) == {"moved": 1}
    assert world.do(SendAch, anna, ach_ids=(ACH_ID,)) == {"moved": 0}
    draft = world.books[anna].draft
    assert [event[3] for event in draft.events] == ["transfers.ach.out.sent"]
    assert [(table, what["status"]) for table, _, what in draft.updates] == [
        ("ach_entry", "IN_TRANSIT")
    ]


def test_what_came_back_does_not_count_as_settled():
    world, anna, _ = sent("CREDIT", "FAILED")
    assert world.do(CountAchSettled, anna, ach_ids=(ACH_ID,)) == {"moved": 0}
    world, anna, _ = sent("CREDIT")
    assert world.do(CountAchSettled, anna, ach_ids=(ACH_ID,)) == {"moved": 1}
    assert world.books[anna].seen[ACH_ID].status == "PROCESSED"
