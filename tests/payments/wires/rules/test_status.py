"""A sent wire settles, or is refunded in full and invested again."""

from uuid import UUID

import msgspec
import pytest
from tests.payments.wires.rules.test_send import funded, send

from billfold.ledger.book.postings import EventEntry, JournalEntry, TransactionEntry
from billfold.payments.wires.commands import (
    CompleteWire,
    ReceiveWireReturn,
    ReferencedWire,
    RejectWire,
    SubmitWire,
    WireRow,
)
from billfold.platform import ids
from billfold.platform.errors import Refused

IMAD = "20250602BLFDQGV1000001"


def seen(teller, **changes):
    """Show the customer's book the wire that was drafted last."""
    row = msgspec.structs.replace(teller.bank.tables[WireRow][-1], **changes)
    shown = ReferencedWire(row, outstanding=row.amount, booked_journal_no=row.entry_no)
    teller.book.referenced[row.wire_id] = shown
    return row.wire_id


def events(teller):
    return [row.kind for row in teller.bank.tables[EventEntry]]


def test_a_wire_is_sent_and_settles():
    teller, pocket = funded()
    send(teller, pocket, 1_000_00)

    left = teller.do(SubmitWire, wire_id=seen(teller), imad=IMAD)
    settled = teller.do(CompleteWire, wire_id=seen(teller, status="PROCESSING"))
    again = teller.do(CompleteWire, wire_id=seen(teller, status="COMPLETED", settled_at=teller.bank.now))

    assert [left["status"], settled["status"], again["status"]] == ["PROCESSING", "COMPLETED", "COMPLETED"]
    assert events(teller)[-2:] == ["transfers.wire.out.processing", "transfers.wire.out.success"]


def test_a_rejected_wire_is_refunded_with_its_fee():
    teller, pocket = funded(wire_fee_cents=15_00)
    before = pocket.inflow
    wire_id = UUID(send(teller, pocket, 40_000_00)["wire_id"])

    rejected = teller.do(RejectWire, wire_id=seen(teller, status="PROCESSING"), code="AC04")

    assert rejected == {"wire_id": str(wire_id), "status": "REJECTED", "reason": "ACCOUNT_UNAVAILABLE"}
    assert pocket.inflow - before == 40_015_00
    assert teller.book.house["rail:wireUSD"].balance == -100_000_00
    assert pocket.cash.balance < 100_00
    journal = teller.bank.tables[JournalEntry][-1]
    assert journal.reverses == journal.entry_no - 1
    back, fee = teller.bank.tables[TransactionEntry][-2:]
    assert msgspec.json.decode(back.details)["wire_type"] == "REVERSAL"
    assert (fee.type, fee.amount) == ("CREDIT", 15_00)
    assert events(teller)[-1] == "transfers.wire.out.rejected"


def test_a_settled_wire_cannot_be_rejected():
    teller, pocket = funded()
    send(teller, pocket, 1_000_00)
    before = pocket.inflow

    late = teller.do(RejectWire, code="AC04", wire_id=seen(teller, status="COMPLETED", settled_at=teller.bank.now))

    assert late["status"] == "COMPLETED"
    assert pocket.inflow == before


def test_no_more_of_a_settled_wire_is_received_back_than_is_outstanding():
    teller, pocket = funded()
    send(teller, pocket, 1_000_00)
    wire_id = seen(teller, status="COMPLETED", settled_at=teller.bank.now)
    shown = teller.book.referenced[wire_id]._replace(outstanding=600_00)
    back = {"original_id": wire_id, "code": "AC04", "information": None, "imad": IMAD, "omad": None, "message": "{}"}

    teller.book.referenced[wire_id] = shown
    with pytest.raises(Refused, match="wire-already-returned"):
        teller.do(ReceiveWireReturn, wire_id=ids.new(), amount=600_01, **back)
    teller.book.referenced[wire_id] = shown
    assert teller.do(ReceiveWireReturn, wire_id=ids.new(), amount=600_00, **back)["status"] == "COMPLETED"
