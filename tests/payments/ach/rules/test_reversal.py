"""Entries are sent the other way, or once more."""

from datetime import date

import pytest
from tests.architecture.movements_of_ach import ACH_ID, collected, originate, rich, see, sent
from tests.payments.ach.rules.test_originate import entry_of

from billfold.payments.ach.commands import ReinitiateAch, ReverseAch
from billfold.platform.errors import Refused


def test_a_payment_is_reversed_by_an_entry_of_its_own():
    world, anna, _ = sent("CREDIT")
    world.do(ReverseAch, anna, ach_id=ACH_ID)
    made = entry_of(world, anna)
    assert (made.direction, made.description, made.reverses_id) == ("DEBIT", "REVERSAL", ACH_ID)
    assert (made.status, made.held_until, made.entry_no) == ("APPROVED", None, None)


def test_the_reversal_of_a_collection_debits_the_pocket():
    world, anna, _, entry = collected()
    world.forget()
    book = world.books[anna]
    book.referenced = {ACH_ID: entry}
    world.do(ReverseAch, anna, ach_id=ACH_ID)
    assert entry_of(world, anna).direction == "CREDIT"
    assert book.house["rail:ach", "USD"].balance == 0


@pytest.mark.parametrize(("status", "day"), [("APPROVED", 4), ("FAILED", 4), ("PROCESSED", 13)])
def test_only_sent_entries_are_reversed_within_the_time_frame(status, day):
    world, anna, _ = sent("CREDIT", status)
    world.at(date(2025, 6, day))
    with pytest.raises(Refused, match="ach-origination-not-reversible"):
        world.do(ReverseAch, anna, ach_id=ACH_ID)


def test_a_debit_without_funds_is_sent_again_twice_at_most():
    world, anna, pocket = rich()
    originate(world, anna, pocket, direction="DEBIT")
    see(world, anna, status="FAILED", return_code="R01")
    world.do(ReinitiateAch, anna, ach_id=ACH_ID)
    again = entry_of(world, anna)
    assert (again.description, again.times) == ("RETRY PYMT", 1)
    with pytest.raises(Refused, match="ach-origination-not-returned"):
        world.do(ReinitiateAch, anna, ach_id=ACH_ID)
    third = see(world, anna, status="FAILED", return_code="R09", times=2)
    with pytest.raises(Refused, match="ach-origination-not-returned"):
        world.do(ReinitiateAch, anna, ach_id=third)


def test_only_returns_for_insufficient_funds_are_reinitiated():
    world, anna, _ = sent("DEBIT", "FAILED")
    with pytest.raises(Refused, match="ach-origination-not-returned"):
        world.do(ReinitiateAch, anna, ach_id=ACH_ID)
