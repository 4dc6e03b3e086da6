"""Debits settle."""

import pytest
from tests.architecture.movements_of_ach import ACH_ID, collected, originate, sent

from billfold.accounts.pockets.types import Hold
from billfold.ledger.book.rows import Posting
from billfold.payments.ach.commands import CollectAch
from billfold.platform.errors import Refused


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
