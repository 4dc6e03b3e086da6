"""What becomes of wires and ACH entries: those we send and those that reach us."""

from uuid import UUID

import msgspec
from tests.architecture.stage import LATER
from tests.payments.ach.rules.entries import Entries
from tests.payments.wires.iso20022.wires import a_credit_transfer

from billfold.accounts.commands import UpdatePortal
from billfold.payments.ach.commands import (
    CollectAch,
    MarkAchTransmitted,
    RecordNoc,
    ReinitiateAch,
    RescheduleAch,
    ReturnAchEntry,
    ReverseAch,
    ReviewAch,
    SettleAch,
)
from billfold.payments.wires.commands import (
    CompleteWire,
    ReceiveWireReturn,
    RejectWire,
    ReturnWire,
    SendWire,
    SubmitWire,
)
from billfold.payments.wires.types import IncomingWireFields

IMAD = "20250603BLFDQGV1000001"
ARRIVED = IncomingWireFields(
    uetr="8a562c67-ca16-48ba-b074-65581be6f011",
    imad="20250529SIMFED01000001",
    omad=None,
    sender_name="Acme",
    reference_number="W000000000001",
    instructions=None,
    end_to_end=None,
    message=msgspec.json.encode(a_credit_transfer()).decode(),
)


def play_wires(new_stage):
    stage = new_stage()
    anna, pocket = stage.rich()
    payee = {"counterparty_id": UUID(stage.add_counterparty(anna, "wire")["counterparty_id"])}

    def send():
        sent = stage.about(SendWire, anna, payee, wire_id=None, pocket_id=pocket.id, amount=40_000_00)
        return {"wire_id": UUID(sent["wire_id"])}

    with stage.row("A wire is accepted"):
        wire = send()
    with stage.row("A wire leaves"):
        stage.about(SubmitWire, anna, wire, imad=IMAD)
    with stage.row("A wire settles"):
        stage.about(CompleteWire, anna, wire)
    with stage.row("A wire comes back"):
        stage.about(
            ReceiveWireReturn,
            anna,
            {"original_id": wire["wire_id"]},
            wire_id=stage.number(),
            amount=40_000_00,
            code="AC04",
            information=None,
            imad=IMAD,
            omad=None,
            message="{}",
        )
    wire = send()
    with stage.row("A wire is rejected"):
        stage.about(RejectWire, anna, wire, code="AC04")
    stage = new_stage()
    anna = stage.new_customer("Anna")
    pocket = stage.new_pocket(anna)
    with stage.row("A wire arrives by a message"):
        arrived = stage.receive_money(pocket, 50_000_00, wire=ARRIVED)
    with stage.row("A wire is paid back"):
        stage.about(ReturnWire, anna, {"original_id": UUID(arrived["wire_id"])}, code="DUPL")


def play_ach(new_stage):
    stage = new_stage()
    entries = Entries(stage)
    for title, move in (
        ("A customer pays by ACH", lambda: entries.originate("CREDIT", 5_000_00)),
        ("ACH entries leave in a file", lambda: entries.move(MarkAchTransmitted)),
        ("A bank corrects an entry", lambda: entries.move(RecordNoc, code="C01", corrected="998877")),
        ("An ACH payment is reversed", lambda: entries.move(ReverseAch)),
        ("ACH entries count as settled", lambda: entries.move(SettleAch)),
        ("An ACH payment comes back", lambda: entries.come_back("R03")),
        ("A customer collects by ACH", lambda: entries.originate("DEBIT", 5_000_00)),
    ):
        with stage.row(title):
            move()
    entries.move(MarkAchTransmitted)
    with stage.row("A collection settles and is held"):
        entries.move(CollectAch)
    with stage.row("A collection comes back"):
        entries.come_back("R01")
    with stage.row("A collection is sent again"):
        entries.move(ReinitiateAch)
    entries.originate("CREDIT", 5_000_00)
    stage.until(LATER)
    with stage.row("ACH entries miss their window"):
        entries.move(RescheduleAch)


def play_reviews(new_stage):
    stage = new_stage(ach_review_above_cents=1)
    entries = Entries(stage)
    for title, decision in (("An entry is let through", "APPROVED"), ("An entry is not let through", "REJECTED")):
        assert entries.originate("CREDIT", 5_000_00)["status"] == "PENDING"
        with stage.row(title):
            entries.move(ReviewAch, decision=decision)


def play_incoming_ach(new_stage):
    stage = new_stage()
    entries = Entries(stage)
    with stage.row("An ACH debit takes money"):
        assert entries.receive(code="27", amount=40_000_00)["status"] == "COMPLETED"
    with stage.row("An ACH debit is given back"):
        entries.move(ReturnAchEntry, code="R10")
    with stage.row("A file brings an ACH credit"):
        assert entries.receive(amount=40_000_00)["status"] == "COMPLETED"
    with stage.row("An ACH credit is given back"):
        entries.move(ReturnAchEntry, code="R23")
    stage.submit(UpdatePortal, entries.anna, portal_id=entries.pocket.portal, close=True)
    with stage.row("An ACH entry goes back"):
        assert entries.receive()["code"] == "R02"
