"""What a person decides about an entry that was held back."""

import msgspec
import pytest
from tests.architecture.movements_of_ach import ACH_ID, held_back, originate, rich, see

from billfold.ledger.book.rows import JournalEntry
from billfold.ledger.jobs.types import ScheduledJob
from billfold.payments.ach.commands import ReviewAch
from billfold.platform.errors import NotFound, Refused


def decide(world, anna, decision):
    return world.do(ReviewAch, anna, ach_id=ACH_ID, decision=decision)


def test_an_approved_entry_waits_for_its_window():
    world, anna = held_back()
    decide(world, anna, "APPROVED")
    entry = world.books[anna].referenced[ACH_ID]
    assert (entry.status, entry.reason) == ("APPROVED", None)
    assert world.books[anna].draft.rows_of(ScheduledJob)[-1].at == entry.due_at


@pytest.mark.parametrize("decision", ["REJECTED", "CANCELLED"])
def test_a_rejected_entry_is_refunded(decision):
    world, anna = held_back()
    decide(world, anna, decision)
    book = world.books[anna]
    assert book.house["rail:ach", "USD"].balance == 0
    assert book.draft.rows_of(JournalEntry)[-1].reverses == book.referenced[ACH_ID].entry_no
    assert book.referenced[ACH_ID].status == decision


def test_an_entry_is_called_back_only_while_no_file_holds_it():
    world, anna, pocket = rich()
    originate(world, anna, pocket, direction="DEBIT", cents=1_00)
    see(world, anna, file_id=None)
    waiting = world.books[anna].referenced[ACH_ID]
    decide(world, anna, "CANCELLED")
    world.books[anna].referenced = {ACH_ID: msgspec.structs.replace(waiting, file_id=ACH_ID)}
    with pytest.raises(Refused, match="ach-origination-not-pending"):
        decide(world, anna, "CANCELLED")


def test_a_decision_is_final():
    world, anna = held_back()
    decide(world, anna, "REJECTED")
    with pytest.raises(Refused, match="ach-origination-not-pending"):
        decide(world, anna, "APPROVED")
    world.books[anna].referenced = {}
    with pytest.raises(NotFound):
        decide(world, anna, "APPROVED")
