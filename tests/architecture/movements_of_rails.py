"""Movements of wires and ACH entries, outgoing and incoming."""

from uuid import UUID

import msgspec
from tests.architecture.stage import LATER
from tests.payments.ach.rules.entries import Entries
from tests.payments.wires.iso20022.wires import a_credit_transfer

from billfold.accounts.portals.commands import UpdatePortal
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
from billfold.payments.crypto.withdrawals.rules import CompleteWithdrawal, RejectWithdrawal, SendUsdc, SubmitWithdrawal
from billfold.payments.wires.commands import (
    CancelWire,
    CompleteWire,
    HoldWire,
    IncomingWireFields,
    ReceiveWireReturn,
    RejectWire,
    ReleaseWire,
    ReturnWire,
    SendWire,
    SubmitWire,
)

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

    with stage.row("Outgoing wire accepted"):
        wire = send()
    with stage.row("Wire waits for funds of the bank"):
        stage.about(HoldWire, anna, wire)
    with stage.row("Waiting wire released"):
        stage.about(ReleaseWire, anna, wire)
    with stage.row("Outgoing wire submitted"):
        stage.about(SubmitWire, anna, wire, imad=IMAD)
    with stage.row("Outgoing wire completed"):
        stage.about(CompleteWire, anna, wire)
    with stage.row("Outgoing wire returned"):
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
    with stage.row("Outgoing wire rejected"):
        stage.about(RejectWire, anna, wire, code="AC04")
    wire = send()
    with stage.row("Outgoing wire cancelled"):
        stage.about(CancelWire, anna, wire)
    stage = new_stage()
    anna = stage.new_customer("Anna")
    pocket = stage.new_pocket(anna)
    with stage.row("Incoming wire from a Fedwire message"):
        arrived = stage.receive_money(pocket, 50_000_00, wire=ARRIVED)
    with stage.row("Incoming wire returned"):
        stage.about(ReturnWire, anna, {"original_id": UUID(arrived["wire_id"])}, code="DUPL")


def play_withdrawals(new_stage):
    stage = new_stage()
    anna, pocket = stage.rich()
    wallet = {"chain": "ETHEREUM", "wallet_address": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "asset": "USDC"}
    linked = stage.add_counterparty(anna, "crypto_wallet_address", verification="linking_provider", details=wallet)
    payee = {"counterparty_id": UUID(linked["counterparty_id"])}

    def send():
        withdrawal = {"withdrawal_id": stage.number()}
        stage.about(SendUsdc, anna, payee, **withdrawal, pocket_id=pocket.id, amount=40_000_00)
        return withdrawal

    with stage.row("Withdrawal of USDC accepted"):
        withdrawal = send()
    with stage.row("Withdrawal of USDC submitted"):
        stage.about(SubmitWithdrawal, anna, withdrawal)
    with stage.row("Withdrawal of USDC completed"):
        stage.about(CompleteWithdrawal, anna, withdrawal, transaction_hash="0x01")
    withdrawal = send()
    with stage.row("Withdrawal of USDC rejected"):
        stage.about(RejectWithdrawal, anna, withdrawal, reason="INVALID_TRANSFER")


def play_ach(new_stage):
    stage = new_stage()
    entries = Entries(stage)
    for title, move in (
        ("ACH credit originated", lambda: entries.originate("CREDIT", 5_000_00)),
        ("ACH entries transmitted", lambda: entries.move(MarkAchTransmitted)),
        ("Notification of change received", lambda: entries.move(RecordNoc, code="C01", corrected="998877")),
        ("ACH credit reversed", lambda: entries.move(ReverseAch)),
        ("ACH entries settled", lambda: entries.move(SettleAch)),
        ("ACH credit returned", lambda: entries.come_back("R03")),
        ("ACH debit originated", lambda: entries.originate("DEBIT", 5_000_00)),
    ):
        with stage.row(title):
            move()
    entries.move(MarkAchTransmitted)
    with stage.row("ACH debit settled and held"):
        entries.move(CollectAch)
    with stage.row("ACH debit returned"):
        entries.come_back("R01")
    with stage.row("ACH debit reinitiated"):
        entries.move(ReinitiateAch)
    entries.originate("CREDIT", 5_000_00)
    stage.until(LATER)
    with stage.row("ACH entries rescheduled"):
        entries.move(RescheduleAch)


def play_reviews(new_stage):
    stage = new_stage(ach_review_above_cents=1)
    entries = Entries(stage)
    for title, decision in (("ACH review approved", "APPROVED"), ("ACH review rejected", "REJECTED")):
        assert entries.originate("CREDIT", 5_000_00)["status"] == "PENDING"
        with stage.row(title):
            entries.move(ReviewAch, decision=decision)


def play_incoming_ach(new_stage):
    stage = new_stage()
    entries = Entries(stage)
    with stage.row("Incoming ACH debit"):
        assert entries.receive(code="27", amount=40_000_00)["status"] == "COMPLETED"
    with stage.row("Incoming ACH debit returned"):
        entries.move(ReturnAchEntry, code="R10")
    with stage.row("Incoming ACH credit from a file"):
        assert entries.receive(amount=40_000_00)["status"] == "COMPLETED"
    with stage.row("Incoming ACH credit returned"):
        entries.move(ReturnAchEntry, code="R23")
    stage.submit(UpdatePortal, entries.anna, portal_id=entries.pocket.portal, close=True)
    with stage.row("Incoming ACH entry returned unposted"):
        assert entries.receive()["code"] == "R02"
