"""Returns of our entries: on time, late, once and twice."""

from datetime import date

import pytest
from tests.payments.ach.rules.entries import collected, sent

from billfold.accounts.pockets.commands import Hold
from billfold.ledger.book.postings import EventEntry, JournalEntry, Update
from billfold.payments.ach.commands import MarkAchTransmitted, RecordNoc
from billfold.platform.calendars import Calendars, DayOverride
from billfold.platform.dates import et_instant


def test_a_returned_payment_becomes_a_deposit():
    entries = sent("CREDIT")
    assert entries.come_back("R03")["status"] == "FAILED"
    assert (entries.entry.status, entries.entry.return_code) == ("FAILED", "R03")
    assert entries.owed_by_rail == 0
    assert entries.last(JournalEntry).reverses == entries.entry.entry_no
    assert entries.last(EventEntry).kind == "transfers.ach.out.rejected"


def test_a_second_return_of_an_ach_entry_is_not_accepted():
    entries = sent("CREDIT")
    entries.come_back("R03")
    posted = entries.posted()
    assert entries.come_back("R01") == {"status": "NOT_ACCEPTED", "code": "R67"}
    assert entries.posted() == posted


@pytest.mark.parametrize(
    ("code", "day", "hour", "answer"),
    [
        # It settles on Thursday 5 June; two banking days end on Monday at 8:30.
        ("R03", date(2025, 6, 9), 8, "FAILED"),
        ("R03", date(2025, 6, 9), 9, "NOT_ACCEPTED"),
        ("R10", date(2025, 8, 5), 8, "FAILED"),
        ("R10", date(2025, 8, 6), 9, "NOT_ACCEPTED"),
        ("R06", date(2025, 9, 30), 9, "FAILED"),
    ],
)
def test_a_return_is_accepted_until_the_deadline_of_its_code(code, day, hour, answer):
    entries = sent("CREDIT", "PROCESSED")
    entries.customers.until(day, hour)
    outcome = entries.come_back(code)
    assert outcome["status"] == answer
    assert outcome.get("code") == (code if answer == "FAILED" else "R68")


def test_a_return_at_the_last_instant_is_on_time():
    entries = sent("CREDIT", "PROCESSED")
    entries.bank.now = et_instant(date(2025, 6, 9), 8, 30)
    assert entries.come_back("R03")["status"] == "FAILED"


@pytest.mark.parametrize(
    ("status", "seen", "fields"),
    [
        ("IN_TRANSIT", {}, {"cents": 1}),
        ("IN_TRANSIT", {}, {"direction": "DEBIT"}),
        ("APPROVED", {"file_id": None}, {}),
        ("PROCESSED", {"way": "RECEIVING"}, {}),
    ],
    ids=["another amount", "the other direction", "not sent", "received from another bank"],
)
def test_a_return_that_matches_no_sent_entry_is_not_accepted(status, seen, fields):
    entries = sent("CREDIT", status)
    entries.see(**seen)
    posted = entries.posted()
    assert entries.come_back("R03", **fields)["code"] == "R69"
    assert entries.posted() == posted


def test_an_entry_in_a_file_can_be_returned_before_it_is_confirmed():
    entries = sent("CREDIT", "APPROVED")
    assert entries.come_back("R03")["status"] == "FAILED"
    assert entries.move(MarkAchTransmitted) == {"moved": 0}


def test_a_returned_collection_is_debited_from_its_hold():
    entries = collected()
    entries.come_back("R01")
    assert entries.held.liens == []
    lien = next(change for row, _, change in entries.bank.tables[Update] if row is Hold)
    assert lien["until"] == entries.book.booked_at
    assert entries.owed_by_rail == 0


def test_a_hold_released_on_a_declared_closure_ends_on_the_banking_day_before():
    closed = date(2025, 6, 5)
    entries = collected(calendars=Calendars({closed: DayOverride(fed_open=False)}))
    entries.customers.until(closed, 9)
    entries.come_back("R01")
    lien = next(change for row, _, change in entries.bank.tables[Update] if row is Hold)
    assert lien["until"] == et_instant(date(2025, 6, 4), 23, 59)


def test_a_returned_collection_that_was_spent_becomes_an_overdraft():
    entries = collected()
    entries.see(amount=500_000_00, held_until=None)
    entries.come_back("R10")
    owed = entries.held.owed
    assert owed is not None
    assert owed.balance < 0


def test_a_notification_of_change_is_recorded_with_its_entry():
    entries = sent("CREDIT")
    outcome = entries.move(RecordNoc, code="C01", corrected="998877")
    assert (entries.entry.change_code, entries.entry.corrected) == ("C01", "998877")
    assert outcome["counterparty_id"] == str(entries.payee_id)
    assert outcome["ach_id"] == str(entries.ach_id)
