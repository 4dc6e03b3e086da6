"""Entries change status together: transmitted, settled, or late for their window."""

from datetime import date

import pytest
from tests.payments.ach.rules.entries import FILE_ID, Entries, sent

from billfold.ledger.book.postings import EventEntry, Update
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.commands import AchEntry, MarkAchTransmitted, RescheduleAch, SettleAch


def test_a_customer_is_notified_once_of_a_transmitted_entry():
    entries = sent("CREDIT", "APPROVED")
    assert entries.move(MarkAchTransmitted) == {"moved": 1}
    assert entries.move(MarkAchTransmitted) == {"moved": 0}
    events = [event.kind for event in entries.bank.tables[EventEntry]]
    assert events.count("transfers.ach.out.sent") == 1
    changes = [what["status"] for row, _, what in entries.bank.tables[Update] if row is AchEntry]
    assert changes == ["IN_TRANSIT"]


def test_a_returned_ach_entry_does_not_count_as_settled():
    assert sent("CREDIT", "FAILED").move(SettleAch) == {"moved": 0}
    entries = sent("CREDIT")
    assert entries.move(SettleAch) == {"moved": 1}
    assert entries.entry.status == "PROCESSED"


def accepted_entry(direction, **changes):
    """An entry accepted on June 3, as of June 16."""
    entries = Entries()
    entries.originate(direction)
    entries.see(**changes)
    entries.customers.until(date(2025, 6, 16))
    return entries


@pytest.mark.parametrize("direction", ["CREDIT", "DEBIT"])
def test_an_entry_that_missed_its_window_is_rescheduled_with_new_dates(direction):
    entries = accepted_entry(direction)
    assert entries.move(RescheduleAch)["postponed"] == 1
    entry = entries.entry
    assert entry.status == "APPROVED"
    assert entries.bank.now < entry.due_at < entry.settles_at < entry.settled_at
    assert (entry.held_until is not None) == (direction == "DEBIT")
    assert entries.last(ScheduledJob).at == entry.due_at
    assert entries.move(RescheduleAch)["postponed"] == 0


@pytest.mark.parametrize("changes", [{"status": "IN_TRANSIT"}, {"file_id": FILE_ID}])
def test_ach_entries_in_a_file_are_not_rescheduled(changes):
    entries = accepted_entry("CREDIT", **changes)
    assert entries.move(RescheduleAch) == {"postponed": 0}
    assert AchEntry not in {row for row, *_ in entries.bank.tables[Update]}
