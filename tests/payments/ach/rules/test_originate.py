"""Entries that customers originate: accepted, refused, or held for review."""

from uuid import UUID

import msgspec
import pytest
from tests.payments.ach.rules.entries import Entries, collected, sent

from billfold.accounts.pockets.commands import Hold, SetPocketState
from billfold.ledger.book.postings import JournalEntry, TransactionEntry
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.commands import CollectAch
from billfold.platform.errors import NotFound, Refused


@pytest.fixture
def entries():
    return Entries()


def test_an_ach_payment_is_booked_in_full_when_accepted(entries):
    outflow = entries.held.outflow
    entries.originate("CREDIT")
    assert entries.held.outflow - outflow == 70_000_00
    assert entries.owed_by_rail == 70_000_00
    journal = entries.last(JournalEntry)
    assert (journal.kind, str(journal.settles_on)) == ("ach", "2025-06-04")
    entry = entries.made
    assert (entry.status, entry.entry_no) == ("APPROVED", journal.entry_no)
    # Taken on Tuesday morning, sent on Wednesday; from $25,000 on it settles on the day after.
    assert str(entry.effective_on) == "2025-06-05"
    assert entries.last(TransactionEntry).settles_at == entry.settled_at


def test_an_ach_collection_moves_no_money_before_settlement(entries):
    entries.originate("DEBIT", 700_00)
    assert entries.posted() == 0
    assert str(entries.made.effective_on) == "2025-06-03"
    assert entries.made.held_until.isoformat() == "2025-06-10T12:30:00+00:00"


def test_an_ach_payment_over_the_pocket_balance_is_refused(entries):
    with pytest.raises(Refused, match="insufficient-funds"):
        entries.originate("CREDIT", 91_000_00)


def test_a_frozen_pocket_can_collect_but_not_pay_by_ach(entries):
    entries.customers.submit(SetPocketState, entries.anna, pocket_id=entries.pocket.id, status="FROZEN")
    with pytest.raises(Refused, match="pocket-frozen"):
        entries.originate("CREDIT", 1_00)
    assert entries.originate("DEBIT", 1_00)["status"] == "APPROVED"
    entries.held.status = "CLOSED"
    with pytest.raises(Refused, match="pocket-not-open"):
        entries.originate("DEBIT", 1_00)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"type": "wire"}, "counterparty-type-mismatch"),
        ({"verification": {"type": "unverified"}}, "counterparty-not-verified"),
    ],
)
def test_an_ach_payment_to_an_unverified_or_wrong_type_counterparty_is_refused(entries, changes, code):
    seen, payee_id = entries.bank.seen, entries.payee_id
    seen.put(entries.anna, payee_id, msgspec.structs.replace(seen.of(entries.anna)[payee_id], **changes))
    with pytest.raises(Refused, match=code):
        entries.originate("CREDIT", 1_00)


def test_an_ach_payment_to_a_foreign_counterparty_is_not_found(entries):
    with pytest.raises(NotFound):
        entries.originate("CREDIT", 1_00, payee_id=UUID(int=1))


def test_an_ach_entry_over_the_daily_limit_goes_to_review():
    entries = Entries(ach_review_above_cents=69_999_99)
    assert entries.originate("CREDIT")["status"] == "PENDING"
    assert (entries.made.due_at, entries.made.entry_no is not None) == (None, True)
    assert "6999999 cents" in entries.made.reason
    assert ScheduledJob not in entries.bank.tables


def test_an_ach_collection_is_booked_at_settlement_and_held_for_five_banking_days():
    entries = collected()
    assert entries.held.liens == [(70_000_00, entries.entry.held_until)]
    assert entries.last(Hold).hold_id == entries.ach_id
    # Some 90,000 are its own, what was collected may not leave yet.
    with pytest.raises(Refused, match="insufficient-funds"):
        entries.originate("CREDIT", 91_000_00)


def test_a_settled_ach_collection_is_booked_once():
    entries = collected()
    posted = entries.posted()
    assert entries.move(CollectAch) == {"status": "IN_TRANSIT"}
    assert entries.posted() == posted


def test_an_ach_collection_returned_before_settlement_is_not_booked():
    entries = sent("DEBIT", "FAILED")
    assert entries.move(CollectAch) == {"status": "FAILED"}
    assert entries.posted() == 0
