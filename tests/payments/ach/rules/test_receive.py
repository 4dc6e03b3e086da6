"""Entries reach portals: what is taken, what goes back and under which code."""

from datetime import date

import msgspec
import pytest
from tests.architecture.movements_of_ach import ACH_ID, receive, rich, see
from tests.payments.ach.rules.test_originate import entry_of

from billfold.accounts.commands import SetPocketState
from billfold.ledger.book.rows import EventEntry, TransactionEntry
from billfold.payments.ach.commands import ReturnAchEntry
from billfold.payments.ach.types import PendingReturn, ReturnEntry
from billfold.platform.errors import Refused


def answer_of(world, anna):
    """The answer that was drafted last."""
    return msgspec.json.decode(world.books[anna].draft.rows_of(PendingReturn)[-1].payload, type=ReturnEntry)


def test_a_credit_of_a_file_is_a_deposit():
    world, anna, pocket = rich()
    assert receive(world, anna, pocket) == {"status": "COMPLETED", "code": None, "ach_id": str(ACH_ID)}
    book = world.books[anna]
    assert book.draft.rows_of(TransactionEntry)[-1].amount == 700_00
    assert book.draft.rows_of(EventEntry)[-1].kind == "transfers.ach.in.success"
    assert entry_of(world, anna).status == "PROCESSED"


def test_a_debit_that_is_covered_is_paid():
    world, anna, pocket = rich()
    assert receive(world, anna, pocket, code="27", amount=70_000_00)["status"] == "COMPLETED"
    book = world.books[anna]
    assert book.house["rail:ach", "USD"].balance == 70_000_00
    assert book.draft.rows_of(TransactionEntry)[-1].direction == "DEBIT"


def test_an_uncovered_debit_is_returned():
    world, anna, pocket = rich()
    told = receive(world, anna, pocket, code="27", amount=900_000_00)
    assert told == {"status": "REJECTED", "code": "R01", "ach_id": str(ACH_ID)}
    assert world.moved().legs == []
    back = answer_of(world, anna)
    assert (back.reason, back.code, back.routing_number) == ("R01", "26", "091000019")
    assert (back.original_trace, back.original_bank) == ("091000010000007", "06119999")
    assert world.books[anna].draft.rows_of(EventEntry)[-1].kind == "transfers.ach.in.rejected"


def test_a_frozen_pocket_takes_credits_and_returns_debits():
    world, anna, pocket = rich()
    world.do(SetPocketState, anna, pocket_id=pocket[0], status="FROZEN")
    assert receive(world, anna, pocket)["status"] == "COMPLETED"
    world.books[anna].referenced = {}
    assert receive(world, anna, pocket, code="27")["code"] == "R16"


def test_a_duplicate_entry_is_returned():
    world, anna, pocket = rich()
    receive(world, anna, pocket)
    assert receive(world, anna, pocket)["code"] == "R24"


def test_a_prenote_moves_nothing():
    world, anna, pocket = rich()
    assert receive(world, anna, pocket, code="23", amount=0)["status"] == "COMPLETED"
    assert world.moved().tables == []


def give_back(world, anna, code):
    return world.do(ReturnAchEntry, anna, ach_id=ACH_ID, code=code)


def test_an_unauthorised_debit_is_returned_within_sixty_days():
    world, anna, pocket = rich()
    receive(world, anna, pocket, code="27", amount=70_000_00)
    see(world, anna)
    world.at(date(2025, 7, 31))
    give_back(world, anna, "R10")
    book = world.books[anna]
    assert book.house["rail:ach", "USD"].balance == 0
    assert answer_of(world, anna).reason == "R10"
    assert book.draft.rows_of(EventEntry)[-1].kind == "transfers.ach.in.rejected"
    with pytest.raises(Refused, match="ach-entry-not-returnable"):
        give_back(world, anna, "R10")


def test_a_debit_is_not_returned_after_its_time_frame():
    world, anna, pocket = rich()
    receive(world, anna, pocket, code="27", amount=70_000_00)
    see(world, anna)
    world.at(date(2025, 6, 10))
    with pytest.raises(Refused, match="ach-entry-not-returnable"):
        give_back(world, anna, "R01")


def test_a_credit_its_receiver_refuses_is_paid_back():
    world, anna, pocket = rich()
    receive(world, anna, pocket)
    see(world, anna)
    give_back(world, anna, "R23")
    assert world.books[anna].house["rail:ach", "USD"].balance == 0
    assert world.books[anna].referenced[ACH_ID].status == "FAILED"
