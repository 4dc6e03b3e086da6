"""Entries that customers originate: accepted, refused, held for a person to look at."""

import msgspec
import pytest
from tests.architecture.movements_of_ach import ACH_ID, PAYEE, collected, originate, rich, see, sent

from billfold.accounts.commands import SetPocketState
from billfold.accounts.pockets.types import Hold
from billfold.ledger.book.rows import JournalEntry, Posting, TransactionEntry
from billfold.payments.ach.commands import CollectAch
from billfold.payments.ach.types import AchEntry
from billfold.platform.errors import NotFound, Refused


def entry_of(world, customer):
    """The entry that was drafted last."""
    return world.books[customer].draft.rows_of(AchEntry)[-1]


def test_a_payment_is_booked_in_full_when_it_is_accepted():
    world, anna, pocket = rich()
    outflow = world.books[anna].pockets[pocket[0]].outflow
    originate(world, anna, pocket, direction="CREDIT")
    book = world.books[anna]
    assert book.pockets[pocket[0]].outflow - outflow == 70_000_00
    assert book.house["rail:ach", "USD"].balance == 70_000_00
    journal = book.draft.rows_of(JournalEntry)[-1]
    assert (journal.kind, journal.settles_on) == ("ach", world.moment().settles_on)
    entry = entry_of(world, anna)
    assert (entry.status, entry.entry_no) == ("APPROVED", journal.entry_no)
    # Taken on Tuesday morning, sent on Wednesday; from $25,000 on it settles on the day after.
    assert str(entry.effective_on) == "2025-06-05"
    activity = book.draft.rows_of(TransactionEntry)[-1]
    assert activity.settles_at == entry.settled_at


def test_a_collection_moves_nothing_until_it_settles():
    world, anna, pocket = rich()
    originate(world, anna, pocket, direction="DEBIT", cents=700_00)
    assert world.moved().legs == []
    entry = entry_of(world, anna)
    assert str(entry.effective_on) == "2025-06-03"
    assert entry.held_until.isoformat() == "2025-06-10T12:30:00+00:00"


def test_a_payment_is_refused_when_the_pocket_cannot_raise_it():
    world, anna, pocket = rich()
    with pytest.raises(Refused, match="insufficient-funds"):
        originate(world, anna, pocket, direction="CREDIT", cents=91_000_00)


def test_a_frozen_pocket_collects_but_does_not_pay():
    world, anna, pocket = rich()
    world.do(SetPocketState, anna, pocket_id=pocket[0], status="FROZEN")
    with pytest.raises(Refused, match="pocket-frozen"):
        originate(world, anna, pocket, direction="CREDIT", cents=1_00)
    assert originate(world, anna, pocket, direction="DEBIT", cents=1_00)["status"] == "APPROVED"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"type": "wire"}, "counterparty-type-mismatch"),
        ({"verification": {"type": "unverified"}}, "counterparty-not-verified"),
    ],
)
def test_only_verified_ach_counterparties_are_paid(changes, code):
    world, anna, pocket = rich()
    payee = msgspec.structs.replace(PAYEE, **changes)
    with pytest.raises(Refused, match=code):
        originate(world, anna, pocket, direction="CREDIT", cents=1_00, payee=payee)


def test_a_foreign_counterparty_is_not_found():
    world, anna, pocket = rich()
    with pytest.raises(NotFound):
        originate(world, anna, pocket, direction="CREDIT", cents=1_00, payee=None)


def test_an_entry_above_the_daily_limit_waits_for_review():
    world, anna, pocket = rich()
    world.terms = msgspec.structs.replace(world.terms, ach_review_above_cents=69_999_99)
    assert originate(world, anna, pocket, direction="CREDIT")["status"] == "PENDING"
    entry = entry_of(world, anna)
    assert (entry.due_at, entry.entry_no is not None) == (None, True)
    assert "6999999 cents" in entry.reason
    see(world, anna)
    assert world.moved().tables == []


def test_a_collection_is_booked_on_settlement_and_held_for_five_banking_days():
    world, anna, pocket, entry = collected()
    held = world.books[anna].pockets[pocket[0]]
    assert held.liens == [(70_000_00, entry.held_until)]
    lien = world.books[anna].draft.rows_of(Hold)[-1]
    assert lien.hold_id == ACH_ID
    # Some 90,000 are its own, what was collected may not leave yet.
    with pytest.raises(Refused, match="insufficient-funds"):
        originate(world, anna, pocket, direction="CREDIT", cents=91_000_00)


def test_a_collection_is_booked_once():
    world, anna, _, _ = collected()
    legs = len(world.books[anna].draft.rows_of(Posting))
    assert world.do(CollectAch, anna, ach_id=ACH_ID) == {"status": "IN_TRANSIT"}
    assert len(world.books[anna].draft.rows_of(Posting)) == legs


def test_a_collection_returned_before_settlement_is_not_booked():
    world, anna, _ = sent("DEBIT", "FAILED")
    assert world.do(CollectAch, anna, ach_id=ACH_ID) == {"status": "FAILED"}
    assert world.moved().legs == []
