"""Decisions about entries in review."""

from uuid import UUID

import pytest
from tests.payments.ach.rules.entries import FILE_ID, Entries

from billfold.ledger.book.postings import JournalEntry, TransactionEntry
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.commands import OriginationHistory, ReviewAch
from billfold.payments.ach.rules.review import review_reason
from billfold.platform.errors import NotFound, Refused


@pytest.fixture
def entries_in_review():
    entries = Entries(ach_review_above_cents=1)
    assert entries.originate("CREDIT")["status"] == "PENDING"
    return entries


def test_an_approved_ach_entry_is_scheduled_for_its_window(entries_in_review):
    entries_in_review.move(ReviewAch, decision="APPROVED")
    for decision in ("APPROVED", "REJECTED"):
        with pytest.raises(Refused, match="ach-origination-not-pending"):
            entries_in_review.move(ReviewAch, decision=decision)
    assert (entries_in_review.entry.status, entries_in_review.entry.reason) == ("APPROVED", None)
    assert entries_in_review.last(ScheduledJob).at == entries_in_review.entry.due_at


@pytest.mark.parametrize("decision", ["REJECTED", "CANCELLED"])
def test_a_rejected_ach_entry_is_refunded(entries_in_review, decision):
    entries_in_review.move(ReviewAch, decision=decision)
    assert entries_in_review.owed_by_rail == 0
    assert entries_in_review.last(JournalEntry).reverses == entries_in_review.entry.entry_no
    assert entries_in_review.last(TransactionEntry).direction == "CREDIT"
    assert entries_in_review.entry.status == decision
    posted = entries_in_review.posted()
    entries_in_review.originate("DEBIT")
    entries_in_review.move(ReviewAch, decision=decision)
    assert (entries_in_review.entry.status, entries_in_review.posted()) == (decision, posted)


def test_an_entry_can_be_cancelled_only_before_it_is_in_a_file():
    entries = Entries()
    entries.originate("DEBIT", 1_00)
    entries.move(ReviewAch, decision="CANCELLED")
    assert entries.entry.status == "CANCELLED"
    entries.originate("DEBIT", 1_00)
    entries.see(file_id=FILE_ID)
    with pytest.raises(Refused, match="ach-origination-not-pending"):
        entries.move(ReviewAch, decision="CANCELLED")


def test_an_ach_review_decision_is_final(entries_in_review):
    entries_in_review.move(ReviewAch, decision="REJECTED")
    with pytest.raises(Refused, match="ach-origination-not-pending"):
        entries_in_review.move(ReviewAch, decision="APPROVED")
    entries_in_review.ach_id = UUID(int=1)
    with pytest.raises(NotFound):
        entries_in_review.move(ReviewAch, decision="APPROVED")


@pytest.mark.parametrize(
    ("history", "amount", "said"),
    [
        ({"today_cents": 40}, 60, None),
        ({"today_cents": 40}, 61, "more than 100 cents"),
        ({"debits": 200, "unauthorised": 1, "administrative": 6, "returned": 30}, 1, None),
        ({"debits": 200, "unauthorised": 2}, 1, "unauthorised debits is above 0.5 %"),
        ({"debits": 200, "administrative": 7}, 1, "administrative debits is above 3 %"),
        ({"debits": 200, "returned": 31}, 1, "returned debits is above 15 %"),
        ({"debits": 20, "unauthorised": 1}, 1, "unauthorised"),
        ({"debits": 19, "unauthorised": 19, "administrative": 19, "returned": 19}, 1, None),
    ],
)
def test_an_entry_waits_for_review_only_above_the_daily_limit_or_a_return_rate(history, amount, said):
    reason = review_reason(amount, OriginationHistory(**history), above_cents=100)
    assert reason is said is None or said in str(reason)
