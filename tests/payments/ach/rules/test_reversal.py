"""Entries are reversed or retried."""

from datetime import date

import pytest
from tests.payments.ach.rules.entries import collected, sent

from billfold.payments.ach.commands import ReinitiateAch, ReverseAch
from billfold.platform.errors import Refused


def test_reversing_an_ach_payment_creates_a_reversal_entry():
    entries = sent("CREDIT")
    entries.customers.until(date(2025, 6, 12))
    entries.move(ReverseAch)
    made = entries.made
    assert (made.direction, made.description, made.reverses_id) == ("DEBIT", "REVERSAL", entries.ach_id)
    assert (made.status, made.held_until, made.entry_no) == ("APPROVED", None, None)


def test_the_reversal_of_a_collection_debits_the_pocket():
    entries = collected()
    entries.move(ReverseAch)
    assert entries.made.direction == "CREDIT"
    assert entries.owed_by_rail == 0


@pytest.mark.parametrize(("status", "day"), [("APPROVED", 4), ("FAILED", 4), ("PROCESSED", 13)])
def test_reversing_an_unsent_or_too_old_entry_is_refused(status, day):
    entries = sent("CREDIT", status)
    entries.customers.until(date(2025, 6, day))
    with pytest.raises(Refused, match="ach-origination-not-reversible"):
        entries.move(ReverseAch)


def test_a_debit_returned_for_insufficient_funds_is_reinitiated_at_most_twice():
    entries = sent("DEBIT", "FAILED")
    entries.see(return_code="R01")
    entries.move(ReinitiateAch)
    again = entries.made
    assert (again.description, again.times, entries.entry.times) == ("RETRY PYMT", 1, 2)
    with pytest.raises(Refused, match="ach-origination-not-returned"):
        entries.move(ReinitiateAch)
    entries.ach_id = again.ach_id
    entries.see(status="FAILED", return_code="R09", times=2)
    with pytest.raises(Refused, match="ach-origination-not-returned"):
        entries.move(ReinitiateAch)


def test_reinitiating_a_debit_not_returned_for_insufficient_funds_is_refused():
    with pytest.raises(Refused, match="ach-origination-not-returned"):
        sent("DEBIT", "FAILED").move(ReinitiateAch)
