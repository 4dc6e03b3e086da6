"""Entries move together: their file has gone, their time is over."""

from tests.payments.ach.rules.entries import sent

from billfold.ledger.book.rows import EventEntry, Update
from billfold.payments.ach.commands import MarkAchTransmitted, SettleAch
from billfold.payments.ach.types import AchEntry


def test_each_customer_is_notified_once_of_transmitted_entries():
    entries = sent("CREDIT", "APPROVED")
    assert entries.move(MarkAchTransmitted) == {"moved": 1}
    assert entries.move(MarkAchTransmitted) == {"moved": 0}
    events = [event.kind for event in entries.bank.tables[EventEntry]]
    assert events.count("transfers.ach.out.sent") == 1
    changes = [what["status"] for row, _, what in entries.bank.tables[Update] if row is AchEntry]
    assert changes == ["IN_TRANSIT"]


def test_a_returned_entry_does_not_count_as_settled():
    assert sent("CREDIT", "FAILED").move(SettleAch) == {"moved": 0}
    entries = sent("CREDIT")
    assert entries.move(SettleAch) == {"moved": 1}
    assert entries.entry.status == "PROCESSED"
