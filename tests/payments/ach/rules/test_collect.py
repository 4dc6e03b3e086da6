"""Debits settle."""

import pytest
from tests.payments.ach.rules.entries import collected, sent

from billfold.accounts.pockets.types import Hold
from billfold.payments.ach.commands import CollectAch
from billfold.platform.errors import Refused


def test_a_collection_is_booked_on_settlement_and_held_for_five_banking_days():
    entries = collected()
    assert entries.held.liens == [(70_000_00, entries.entry.held_until)]
    assert entries.last(Hold).hold_id == entries.ach_id
    # Some 90,000 are its own, what was collected may not leave yet.
    with pytest.raises(Refused, match="insufficient-funds"):
        entries.originate("CREDIT", 91_000_00)


def test_a_collection_is_booked_once():
    entries = collected()
    posted = entries.posted()
    assert entries.move(CollectAch) == {"status": "IN_TRANSIT"}
    assert entries.posted() == posted


def test_a_collection_returned_before_settlement_is_not_booked():
    entries = sent("DEBIT", "FAILED")
    assert entries.move(CollectAch) == {"status": "FAILED"}
    assert entries.posted() == 0
