"""Incoming ACH entries: accepted, or returned with their codes."""

from datetime import date

import msgspec
import pytest
from tests.payments.ach.rules.entries import Entries

from billfold.accounts.customers.commands import SetCustomerState
from billfold.accounts.pockets.commands import SetPocketState
from billfold.ledger.book.postings import EventEntry, JournalEntry, TransactionEntry
from billfold.payments.ach.commands import ReturnAchEntry
from billfold.platform.dates import et_instant
from billfold.platform.errors import NotFound, Refused


@pytest.fixture
def entries():
    return Entries()


def test_an_incoming_ach_credit_is_a_deposit(entries):
    outcome = entries.receive()
    assert (outcome["status"], outcome["code"], outcome["ach_id"]) == ("COMPLETED", None, str(entries.ach_id))
    assert entries.last(TransactionEntry).amount == 700_00
    assert entries.last(EventEntry).kind == "transfers.ach.in.success"
    assert entries.made.status == "PROCESSED"


def test_a_covered_ach_debit_is_paid(entries):
    assert entries.receive(code="27", amount=70_000_00)["status"] == "COMPLETED"
    assert entries.owed_by_rail == 70_000_00
    assert entries.last(TransactionEntry).direction == "DEBIT"


def test_an_uncovered_ach_debit_is_returned(entries):
    booked = list(entries.bank.tables[JournalEntry])
    outcome = entries.receive(code="27", amount=900_000_00)
    assert (outcome["status"], outcome["code"], outcome["ach_id"]) == ("REJECTED", "R01", str(entries.ach_id))
    assert entries.bank.tables[JournalEntry] == booked
    back = entries.answer
    assert (back.reason, back.code, back.routing_number) == ("R01", "26", "091000019")
    assert (back.original_trace, back.original_bank) == ("091000010000007", "09100001")
    assert entries.last(EventEntry).kind == "transfers.ach.in.rejected"


@pytest.mark.parametrize("frozen", ["pocket", "customer"])
def test_a_frozen_customer_or_pocket_accepts_credits_and_returns_debits(entries, frozen):
    if frozen == "pocket":
        entries.customers.submit(SetPocketState, entries.anna, pocket_id=entries.pocket.id, status="FROZEN")
    else:
        entries.customers.submit(SetCustomerState, entries.anna, status="FROZEN", reason="Court order")
    assert entries.receive()["status"] == "COMPLETED"
    assert entries.receive(code="27")["code"] == "R16"


def test_a_duplicate_entry_and_an_entry_for_a_wire_only_portal_are_returned(entries):
    entries.receive()
    assert entries.receive(ach_id=entries.ach_id)["code"] == "R24"
    portal = entries.book.portals[entries.pocket.portal]
    entries.book.portals[portal.portal_id] = msgspec.structs.replace(portal, payment_rails=("WIRE",))
    assert entries.receive()["code"] == "R20"
    assert entries.receive(code="23", amount=0)["code"] == entries.answer.reason == "R20"
    assert entries.answer.amount == 0
    entries.book.portals[portal.portal_id] = msgspec.structs.replace(portal, status="CLOSED")
    assert entries.receive()["code"] == "R02"


def test_an_incoming_ach_credit_is_held_for_the_configured_days():
    entries = Entries(ach_credit_hold_days=2)
    entries.receive()
    entries.receive(code="27", amount=100_00)
    assert entries.held.liens == [(700_00, et_instant(date(2025, 6, 5), 8, 30))]


def test_returning_an_entry_that_was_not_received_is_refused(entries):
    entries.originate("CREDIT")
    entries.see(status="PROCESSED")
    with pytest.raises(NotFound):
        entries.move(ReturnAchEntry, code="R10")


def test_a_prenote_moves_no_money(entries):
    assert entries.receive(code="23", amount=0)["status"] == "COMPLETED"
    assert entries.receive(code="23", amount=0, entry_class="DNE")["status"] == "COMPLETED"
    assert entries.last(EventEntry).kind == "transfers.ach.in.success"
    assert entries.posted() == 0


def test_an_unauthorized_debit_is_returned_within_sixty_days(entries):
    entries.receive(code="27", amount=70_000_00)
    entries.customers.until(date(2025, 7, 31))
    entries.move(ReturnAchEntry, code="R10")
    assert entries.owed_by_rail == 0
    assert entries.answer.reason == "R10"
    assert entries.last(EventEntry).kind == "transfers.ach.in.rejected"
    with pytest.raises(Refused, match="ach-entry-not-returnable"):
        entries.move(ReturnAchEntry, code="R10")


def test_returning_a_debit_after_its_time_frame_is_refused(entries):
    entries.receive(code="27", amount=70_000_00)
    entries.customers.until(date(2025, 6, 10))
    with pytest.raises(Refused, match="ach-entry-not-returnable"):
        entries.move(ReturnAchEntry, code="R01")


@pytest.mark.parametrize("named", [date(1999, 12, 31), date(2025, 5, 1), date(2068, 1, 1), None])
def test_the_return_deadline_of_a_debit_counts_from_settlement_and_not_its_effective_date(entries, named):
    entries.receive(code="27", amount=70_000_00, effective_on=named)
    entries.customers.until(date(2025, 7, 31))
    with pytest.raises(Refused, match="had to go by 2025-06-0"):
        entries.move(ReturnAchEntry, code="R01")
    entries.move(ReturnAchEntry, code="R10")
    assert entries.answer.reason == "R10"


def test_a_credit_refused_by_its_receiver_is_returned(entries):
    entries.receive()
    entries.move(ReturnAchEntry, code="R23")
    assert entries.owed_by_rail == 0
    assert entries.entry.status == "FAILED"
