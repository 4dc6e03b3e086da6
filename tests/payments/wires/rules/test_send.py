"""A wire is booked in full when accepted; a refused one moves nothing."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.fixtures.teller import Teller
from tests.support.whole_bank import ADDRESS, BETA

from billfold.accounts.counterparties.types import Payee
from billfold.accounts.pockets.commands import SetPocketState
from billfold.ledger.book.postings import EventEntry, TransactionEntry
from billfold.payments.wires.commands import QueuedMessage, SendWire
from billfold.platform.dates import et_instant
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import new

PAYEE = UUID("5c2a0f6e-8a55-4a0a-9d0e-2f8f0f3f7b11")
FRIDAY_EVENING = datetime(2025, 8, 29, 22, tzinfo=UTC)
"""18:00 in New York, before Labor Day."""
TUESDAY_MORNING = datetime(2025, 9, 2, 12, tzinfo=UTC)


def payee(**changes):
    told: dict[str, Any] = {
        "counterparty_id": PAYEE,
        "type": "wire",
        "status": "VERIFIED",
        "counterparty_name": BETA,
        "verification": {"type": "supporting_documents", "status": "APPROVED"},
        "details": {"routing_number": "121182904", "identifier": "5647772655", "address": ADDRESS},
    }
    return Payee(**told | changes)


def funded(**terms):
    teller = Teller(**terms)
    pocket = teller.pocket()
    teller.deposit(pocket, 100_000_00)
    teller.book.referenced = {PAYEE: payee()}
    return teller, pocket


def send(teller, pocket, cents, **fields):
    return teller.do(
        SendWire,
        wire_id=fields.pop("wire_id", None),
        pocket_id=pocket.pocket_id,
        amount=cents,
        counterparty_id=fields.pop("counterparty_id", PAYEE),
        **fields,
    )


def test_a_wire_is_booked_immediately_and_its_message_queued():
    teller, pocket = funded()

    sent = send(teller, pocket, 40_000_00, description="Invoice 77")

    assert (sent["status"], sent["amount"]) == ("PENDING", 40_000_00)
    assert pocket.outflow == 40_000_00
    assert teller.book.house["rail:wireUSD"].balance == 40_000_00 - 100_000_00
    (message,) = teller.bank.tables[QueuedMessage]
    terms = msgspec.json.decode(message.terms)
    assert (message.kind, message.send_at) == ("pacs.008", teller.bank.now)
    assert (terms["amount"], terms["receiver"]) == (40_000_00, "121182904")
    assert terms["payee"]["address"]["city"] == "Reno"
    assert (terms["debtor"], terms["end_to_end_id"]) == ({"name": "customer"}, "NOTPROVIDED")
    details = msgspec.json.decode(teller.bank.tables[TransactionEntry][-1].details)
    assert (details["counterparty_id"], details["portal_id"], details["original_wire_id"]) == (str(PAYEE), None, None)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, None),
        ({"description": "Rent"}, {"unstructured": ["Rent"], "structured": None}),
        (
            {"end_to_end_identification": "INV7"},
            {"unstructured": [], "structured": {"end_to_end_identification": "INV7"}},
        ),
    ],
)
def test_a_wire_shows_the_remittance_that_it_was_given(fields, said):
    teller, pocket = funded()
    send(teller, pocket, 1_00, **fields)
    shown = teller.bank.tables[TransactionEntry][-1].remittance
    assert (shown and msgspec.json.decode(shown)) == said


@pytest.mark.parametrize(("approved", "wire_id"), [(False, None), (True, None), (False, PAYEE), (True, PAYEE)])
def test_only_the_refusal_of_an_approved_wire_with_an_id_is_an_outcome(approved, wire_id):
    teller, pocket = funded()
    fields = {"approved": approved, "wire_id": wire_id}
    if approved and wire_id:
        refused = send(teller, pocket, 200_000_00, **fields)
        assert (refused["status"], refused["code"]) == ("REJECTED", "insufficient-funds")
        assert teller.bank.tables[EventEntry][-1].kind == "transfers.wire.out.rejected"
    else:
        with pytest.raises(Refused, match="insufficient-funds"):
            send(teller, pocket, 200_000_00, **fields)
    assert pocket.outflow == 0


def test_a_wire_of_a_friday_evening_is_sent_after_the_holiday():
    teller, pocket = funded()
    teller.bank.advance(FRIDAY_EVENING)
    teller.book.referenced = {PAYEE: payee()}

    send(teller, pocket, 1_000_00)

    told = teller.bank.tables[TransactionEntry][-1]
    assert (told.booked_at, told.settles_at) == (FRIDAY_EVENING, TUESDAY_MORNING)
    assert told.business_date == date(2025, 9, 2)
    assert teller.bank.tables[QueuedMessage][0].send_at == TUESDAY_MORNING


def test_a_full_wire_withdrawal_sends_the_whole_pocket_less_fees():
    teller, pocket = funded(wire_fee_cents=15_00)

    sent = send(teller, pocket, None)

    assert not pocket.lots
    assert pocket.cash.balance == 0
    assert pocket.fees == 15_00
    assert sent["amount"] == pocket.outflow


def test_a_full_wire_withdrawal_over_the_approved_amount_is_refused():
    teller, pocket = funded()
    held = [lot.units for lot in pocket.lots]

    with pytest.raises(Refused, match="amount-not-allowed"):
        send(teller, pocket, None, at_most=99_000_00)
    assert ([lot.units for lot in pocket.lots], pocket.outflow) == (held, 0)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"type": "ach"}, "counterparty-type-mismatch"),
        ({"status": "PENDING"}, "counterparty-not-verified"),
        ({"status": "UNLINKED"}, "counterparty-not-verified"),
        ({"status": "LINKED", "verification": {"type": "unverified"}}, "counterparty-not-verified"),
    ],
)
def test_a_wire_to_an_unverified_or_wrong_type_counterparty_moves_no_money(changes, code):
    teller, pocket = funded()
    teller.book.referenced = {PAYEE: payee(**changes)}

    with pytest.raises(Refused, match=code):
        send(teller, pocket, 1_00)
    assert pocket.outflow == 0


def test_a_wire_to_an_unverified_counterparty_is_allowed_by_the_feature():
    teller, pocket = funded()
    teller.book.referenced = {PAYEE: payee(status="LINKED", verification={"type": "unverified"})}

    assert send(teller, pocket, 1_00, unverified_wires=True)["status"] == "PENDING"


def test_a_refused_wire_from_a_short_or_frozen_pocket_sells_no_bills():
    teller, pocket = funded(wire_fee_cents=15_00)
    held = [lot.units for lot in pocket.lots]
    with pytest.raises(Refused, match="insufficient-funds"):
        send(teller, pocket, 100_000_00)
    teller.do(SetPocketState, pocket_id=pocket.pocket_id, status="FROZEN")
    with pytest.raises(Refused, match="pocket-frozen"):
        send(teller, pocket, 1_00)
    teller.do(SetPocketState, pocket_id=pocket.pocket_id, status="OPEN")
    teller.book.account_status = "CLOSED"
    with pytest.raises(Refused, match="customer-not-open"):
        send(teller, pocket, 1_00)
    assert [lot.units for lot in pocket.lots] == held


def test_a_wire_rejected_by_screening_moves_no_money():
    teller, pocket = funded()

    sent = send(teller, pocket, 1_000_02)

    assert (sent["status"], sent["reason"]) == ("REJECTED", "SANCTION_SCREEN_FAILED")
    assert pocket.outflow == 0
    assert teller.bank.tables[QueuedMessage] == []
    assert teller.bank.tables[EventEntry][-1].kind == "transfers.wire.out.rejected"


def test_a_wire_to_a_foreign_counterparty_is_not_found():
    teller, pocket = funded()

    with pytest.raises(NotFound):
        send(teller, pocket, 1_00, counterparty_id=new())


def test_an_international_wire_is_sent_to_the_correspondent():
    teller, pocket = funded(correspondent="026009593")
    abroad = {
        "routing_number": "COBADEFFXXX",
        "identifier": "DE89 3704 0044 0532 0130 00",
        "identifier_type": "IBAN",
        "wire_instructions": "For further credit",
    }
    teller.bank.advance(et_instant(date(2025, 6, 2), 15))
    teller.book.referenced = {PAYEE: payee(type="international_wire", details=abroad)}

    send(teller, pocket, 1_00)

    terms = msgspec.json.decode(teller.bank.tables[QueuedMessage][0].terms)
    assert teller.bank.tables[QueuedMessage][0].send_at == et_instant(date(2025, 6, 3), 8)
    assert terms["receiver"] == "026009593"
    assert terms["creditor_agent"] == {"bic": "COBADEFFXXX"}
    assert terms["payee"] == {"identifier": abroad["identifier"], "wire_instructions": "For further credit"}
