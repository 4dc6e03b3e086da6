"""A sent wire settles, or is refunded in full and invested again."""

from uuid import UUID

import msgspec
import pytest
from tests.payments.wires.iso20022.wires import a_credit_transfer
from tests.payments.wires.rules.test_send import funded, send

from billfold.ledger.book.postings import EventEntry, JournalEntry, TransactionEntry, Update
from billfold.payments.wires.commands import (
    CompleteWire,
    ReceiveWireReturn,
    ReferencedWire,
    RejectWire,
    ReturnWire,
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


@pytest.mark.parametrize(
    ("cents", "charges", "said"),
    [
        (600_01, 0, "wire-already-returned"),
        (600_00, 0, "AC04"),
        (590_00, 10_00, "AC04, less $10.00 in charges"),
        (500_00, 10_00, "AC04, less $10.00 in charges, $90.00 stays claimed"),
        (599_99, 0, "AC04, $0.01 stays claimed"),
    ],
)
def test_no_more_of_a_settled_wire_is_received_back_than_is_outstanding(cents, charges, said):
    teller, pocket = funded()
    send(teller, pocket, 1_000_00)
    wire_id = seen(teller, status="COMPLETED", settled_at=teller.bank.now)
    teller.book.referenced[wire_id] = teller.book.referenced[wire_id]._replace(outstanding=600_00)
    if cents > 600_00:
        with pytest.raises(Refused, match=said):
            receive_back(teller, wire_id, cents)
        return
    assert receive_back(teller, wire_id, cents, charges=charges)["status"] == "COMPLETED"
    assert teller.bank.tables[TransactionEntry][-1].description.endswith(f": {said}")


def receive_back(teller, wire_id, cents, **fields):
    back = {"code": "AC04", "information": None, "imad": IMAD, "omad": None, "message": "{}"}
    return teller.do(ReceiveWireReturn, wire_id=ids.new(), original_id=wire_id, amount=cents, **back, **fields)


@pytest.mark.parametrize("changes", [{"status": "PROCESSING"}, {"status": "COMPLETED", "entry_no": None}])
def test_only_a_booked_and_settled_wire_comes_back(changes):
    teller, pocket = funded()
    send(teller, pocket, 1_000_00)
    with pytest.raises(Refused, match="wire-not-completed"):
        receive_back(teller, seen(teller, **changes), 1_000_00)


PAYMENT = {
    "direction": "INCOMING",
    "status": "COMPLETED",
    "message": msgspec.json.encode(a_credit_transfer()).decode(),
}


@pytest.mark.parametrize(
    ("changes", "outstanding", "code"),
    [
        ({}, 1_000_00, None),
        ({}, 999_99, "wire-already-returned"),
        ({"direction": "OUTGOING"}, 1_000_00, "wire-not-completed"),
        ({"wire_type": "REVERSAL"}, 1_000_00, "wire-not-completed"),
        ({"status": "REJECTED"}, 1_000_00, "wire-not-completed"),
        ({"message": None}, 1_000_00, "wire-not-completed"),
    ],
)
def test_only_a_received_payment_is_returned_by_us_and_once(changes, outstanding, code):
    teller, pocket = funded()
    send(teller, pocket, 1_000_00)
    wire_id = seen(teller, **PAYMENT | changes, portal_id=UUID(int=7))
    teller.book.referenced[wire_id] = teller.book.referenced[wire_id]._replace(outstanding=outstanding)
    if code:
        with pytest.raises(Refused, match=code):
            teller.do(ReturnWire, original_id=wire_id, code="NARR")
        return
    before = pocket.outflow
    teller.do(ReturnWire, original_id=wire_id, code="NARR")
    assert pocket.outflow - before == 1_000_00
    details = msgspec.json.decode(teller.bank.tables[TransactionEntry][-1].details)
    assert (details["original_wire_id"], details["portal_id"]) == (str(wire_id), str(UUID(int=7)))


@pytest.mark.parametrize("omad", [None, "20250602MMQFMP0A000124"])
def test_the_acknowledgement_of_a_settled_wire_is_kept(omad):
    teller, pocket = funded()
    send(teller, pocket, 1_000_00)
    teller.do(CompleteWire, wire_id=seen(teller, status="PROCESSING"), omad=omad)
    columns = teller.bank.tables[Update][-1].columns
    assert columns.get("omad", "none") == (omad or "none")
