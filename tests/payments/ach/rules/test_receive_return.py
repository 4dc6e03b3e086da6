"""Entries of ours come back, in time and too late, once and twice."""

from datetime import date

import msgspec
import pytest
from tests.architecture.movements_of_ach import ACH_ID, collected, come_back, sent

from billfold.accounts.pockets.types import Hold
from billfold.ledger.book.rows import EventEntry, JournalEntry, Posting, Update
from billfold.payments.ach.commands import MarkAchTransmitted, RecordNoc
from billfold.payments.ach.types import AchWay


def test_a_returned_payment_becomes_a_deposit():
    world, anna, _ = sent("CREDIT")
    assert come_back(world, anna, "R03")["status"] == "FAILED"
    book = world.books[anna]
    entry = book.referenced[ACH_ID]
    assert (entry.status, entry.return_code) == ("FAILED", "R03")
    assert book.house["rail:ach", "USD"].balance == 0
    assert book.draft.rows_of(JournalEntry)[-1].reverses == entry.entry_no
    assert book.draft.rows_of(EventEntry)[-1].kind == "transfers.ach.out.rejected"


def test_a_second_return_is_not_accepted():
    world, anna, _ = sent("CREDIT")
    come_back(world, anna, "R03")
    legs = len(world.books[anna].draft.rows_of(Posting))
    assert come_back(world, anna, "R01") == {"status": "NOT_ACCEPTED", "code": "R67"}
    assert len(world.books[anna].draft.rows_of(Posting)) == legs


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
def test_a_return_is_accepted_until_the_time_of_its_code_is_over(code, day, hour, answer):
    world, anna, _ = sent("CREDIT", "PROCESSED")
    world.at(day, hour)
    told = come_back(world, anna, code)
    assert told["status"] == answer
    assert told.get("code") == (code if answer == "FAILED" else "R68")


@pytest.mark.parametrize(
    ("status", "file_id", "fields"),
    [
        ("IN_TRANSIT", ACH_ID, {"cents": 1}),
        ("IN_TRANSIT", ACH_ID, {"direction": "DEBIT"}),
        ("APPROVED", None, {}),
    ],
    ids=["another amount", "the other direction", "not sent"],
)
def test_a_return_that_matches_no_sent_entry_is_not_accepted(status, file_id, fields):
    world, anna, _ = sent("CREDIT", status)
    seen, draft = world.books[anna].referenced, world.books[anna].draft
    seen[ACH_ID] = msgspec.structs.replace(seen[ACH_ID], file_id=file_id)
    assert come_back(world, anna, "R03", **fields)["code"] == "R69"
    assert not draft.rows_of(Posting)


def test_an_entry_in_a_file_can_be_returned_before_it_is_confirmed():
    world, anna, _ = sent("CREDIT", "APPROVED")
    assert come_back(world, anna, "R03")["status"] == "FAILED"
    assert world.do(MarkAchTransmitted, anna, ach_ids=(ACH_ID,)) == {"moved": 0}


def test_a_returned_collection_is_debited_from_its_hold():
    world, anna, pocket, entry = collected()
    world.forget()
    world.books[anna].referenced = {ACH_ID: entry}
    come_back(world, anna, "R01")
    book = world.books[anna]
    assert book.pockets[pocket[0]].liens == []
    lien = next(change for row, _, change in book.draft.rows_of(Update) if row is Hold)
    assert lien["until"] == book.booked_at
    assert book.house["rail:ach", "USD"].balance == 0


def test_a_returned_collection_that_was_spent_becomes_an_overdraft():
    world, anna, pocket, entry = collected()
    world.forget()
    book = world.books[anna]
    small = msgspec.structs.replace(entry, amount=500_000_00, held_until=None)
    book.referenced = {ACH_ID: small}
    come_back(world, anna, "R10", cents=500_000_00)
    owed = book.pockets[pocket[0]].owed
    assert owed is not None
    assert owed.balance < 0
    assert entry.way == AchWay.ORIGINATION


def test_a_notification_of_change_is_recorded_with_its_entry():
    world, anna, _ = sent("CREDIT")
    told = world.do(RecordNoc, anna, ach_id=ACH_ID, code="C01", corrected="998877")
    entry = world.books[anna].referenced[ACH_ID]
    assert (entry.change_code, entry.corrected) == ("C01", "998877")
    assert told["counterparty_id"] == str(entry.counterparty_id)
    assert told["ach_id"] == str(ACH_ID)
