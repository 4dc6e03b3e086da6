"""What a person decides about an entry that was held back."""

from uuid import UUID

import pytest
from tests.payments.ach.rules.entries import FILE_ID, Entries

from billfold.ledger.book.postings import JournalEntry
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.commands import ReviewAch
from billfold.platform.errors import NotFound, Refused


@pytest.fixture
def held_back():
    entries = Entries(ach_review_above_cents=1)
    assert entries.originate("CREDIT")["status"] == "PENDING"
    return entries


def test_an_approved_entry_waits_for_its_window(held_back):
    held_back.move(ReviewAch, decision="APPROVED")
    for decision in ("APPROVED", "REJECTED"):
        with pytest.raises(Refused, match="ach-origination-not-pending"):
            held_back.move(ReviewAch, decision=decision)
    assert (held_back.entry.status, held_back.entry.reason) == ("APPROVED", None)
    assert held_back.last(ScheduledJob).at == held_back.entry.due_at


@pytest.mark.parametrize("decision", ["REJECTED", "CANCELLED"])
def test_a_rejected_entry_is_refunded(held_back, decision):
    held_back.move(ReviewAch, decision=decision)
    assert held_back.owed_by_rail == 0
    assert held_back.last(JournalEntry).reverses == held_back.entry.entry_no
    assert held_back.entry.status == decision


def test_an_entry_is_called_back_only_while_no_file_holds_it():
    entries = Entries()
    entries.originate("DEBIT", 1_00)
    entries.move(ReviewAch, decision="CANCELLED")
    assert entries.entry.status == "CANCELLED"
    entries.originate("DEBIT", 1_00)
    entries.see(file_id=FILE_ID)
    with pytest.raises(Refused, match="ach-origination-not-pending"):
        entries.move(ReviewAch, decision="CANCELLED")


def test_a_decision_is_final(held_back):
    held_back.move(ReviewAch, decision="REJECTED")
    with pytest.raises(Refused, match="ach-origination-not-pending"):
        held_back.move(ReviewAch, decision="APPROVED")
    held_back.ach_id = UUID(int=1)
    with pytest.raises(NotFound):
        held_back.move(ReviewAch, decision="APPROVED")
