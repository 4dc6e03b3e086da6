"""The verification status of counterparties."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.fixtures.teller import Teller

from billfold.accounts.counterparties.commands import (
    AddCounterparty,
    ConfirmDeposits,
    CorrectAccount,
    DecideVerification,
    ExpireVerification,
    FailVerification,
    SettleLink,
    UpdateCounterparty,
)
from billfold.accounts.counterparties.rules.notification_of_change import Correction
from billfold.accounts.counterparties.rules.verification_kinds import Account, payment_refusal
from billfold.ledger.context import NoScreening
from billfold.payments.deposits.rules import ReceiveMoney
from billfold.platform.errors import Refused

ACCOUNT = {"routing_number": "021000021", "account_number": "12345678", "account_type": "CHECKING"}
WIRED = {"routing_number": "021000021", "identifier": "12345678"}
BERT = {"type": "individual", "first_name": "Bert", "last_name": "Stone"}


def teller_with_pocket(**terms):
    teller = Teller(**terms)
    teller.pocket()
    return teller


@pytest.fixture
def teller():
    return teller_with_pocket()


def add(teller, kind="ach", verification="micro_deposits", name=BERT, **fields):
    fields.setdefault("details", ACCOUNT if kind == "ach" else WIRED)
    made = teller.do(AddCounterparty, type=kind, counterparty_name=name, verification=verification, **fields)
    return UUID(made["counterparty_id"])


def standing(teller, counterparty_id):
    payee = teller.book.counterparties[counterparty_id]
    return payee.status, payee.verification["type"], payee.verification["status"]


def wire(teller, pocket, sender, name="Bert Stone"):
    return teller.do(
        ReceiveMoney,
        rail="WIRE",
        portal_id=teller.portals[pocket.pocket_id],
        pocket_id=pocket.pocket_id,
        amount=1_00,
        description="a wire",
        details={"counterparty_name": name},
        sender=sender,
    )


@pytest.mark.parametrize(
    ("kind", "verification", "expected"),
    [
        ("wire", "unverified", ("LINKED", "unverified", "NOT_REQUIRED")),
        ("wire", "incoming_wire", ("PENDING", "incoming_wire", "PENDING_REVIEW")),
        ("wire", "supporting_documents", ("PENDING", "supporting_documents", "PENDING_REVIEW")),
        ("ach", "micro_deposits", ("PENDING", "micro_deposits", "PENDING_REVIEW")),
        ("ach", "linking_provider", ("LINKED", "linking_provider", "NOT_REQUIRED")),
        ("on_us", None, ("UNLINKED", "name_match", "REJECTED")),
        ("crypto_wallet_address", None, ("LINKED", "unverified", "NOT_REQUIRED")),
        ("crypto_wallet_address", "supporting_documents", ("PENDING", "supporting_documents", "PENDING_REVIEW")),
    ],
)
def test_a_new_counterparty_has_the_status_of_its_verification_type(teller, kind, verification, expected):
    assert standing(teller, add(teller, kind, verification)) == expected


def test_an_account_at_this_bank_is_verified_by_its_holder_name(teller):
    matched = add(teller, "wire", "incoming_wire", holder="STONE, BERT")
    other = add(teller, "wire", "incoming_wire", holder="Somebody Else")
    assert standing(teller, matched) == ("LINKED", "name_match", "APPROVED")
    assert standing(teller, other)[0] == "PENDING"


@pytest.mark.parametrize(
    ("owner", "expected", "outcome"),
    [
        ("STONE, BERT", ("LINKED", "name_match", "APPROVED"), "MATCH"),
        ("Bert Stones", ("LINKED", "name_match", "APPROVED"), "CLOSE_MATCH"),
        ("Ada Stone", ("UNLINKED", "name_match", "REJECTED"), "NO_MATCH"),
    ],
)
def test_a_pocket_is_linked_only_under_its_owner_name(teller, owner, expected, outcome):
    added = add(teller, "on_us", None, holder=owner)
    assert standing(teller, added) == expected
    check = teller.book.counterparties[added].verification["name_check"]
    assert check["outcome"] == outcome
    assert set(check["registered_name"]) <= {"S", "B", "A", "*", " "}


def test_a_trading_name_is_verified_by_documents(teller):
    added = add(teller, "on_us", "supporting_documents", holder="Ada Stone", document_ids=(UUID(int=1),))
    assert standing(teller, added) == ("PENDING", "supporting_documents", "PENDING_REVIEW")


def test_name_checks_over_the_daily_limit_are_refused_until_the_next_day(teller):
    for nth in range(20):
        add(teller, "on_us" if nth % 2 else "wire", None, holder="Ada Stone")
    with pytest.raises(Refused) as refused:
        add(teller, "on_us", None, holder="Bert Stone")
    assert refused.value.code == "name-checks-exhausted"
    assert standing(teller, add(teller, "wire", "incoming_wire"))[0] == "PENDING"  # an account of another bank
    teller.bank.now += timedelta(days=1)
    assert standing(teller, add(teller, "on_us", None, holder="Bert Stone"))[0] == "LINKED"


def test_an_account_verified_before_is_linked_as_pre_verified(teller):
    first = add(teller, verification="micro_deposits")
    teller.do(ConfirmDeposits, counterparty_id=first, amounts=(11, 22), are_sent=True)
    assert standing(teller, add(teller, "wire", "incoming_wire")) == ("LINKED", "pre_verified", "NOT_REQUIRED")
    stranger = {"type": "business", "business_name": "Somebody Else"}
    assert standing(teller, add(teller, "wire", "incoming_wire", name=stranger))[0] == "PENDING"
    assert standing(teller, add(teller, "wire", "unverified"))[1] == "unverified"
    teller.do(UpdateCounterparty, counterparty_id=first, unlink=True)
    assert standing(teller, add(teller, "wire", "incoming_wire"))[0] == "PENDING"


def test_the_magic_name_unverifiable_is_rejected_in_a_sandbox(teller):
    name = {"type": "business", "business_name": "The unverifiable Company"}
    assert standing(teller, add(teller, name=name)) == ("UNLINKED", "micro_deposits", "REJECTED")
    real = teller_with_pocket(screening=NoScreening())
    assert standing(real, add(real, name=name))[0] == "PENDING"


def test_micro_deposit_amounts_are_confirmed_in_any_order(teller):
    for amounts in ((11, 22), (22, 11)):
        waiting = add(teller, details=ACCOUNT | {"account_number": str(amounts[0]) * 4})
        said = teller.do(ConfirmDeposits, counterparty_id=waiting, amounts=amounts, are_sent=True)
        assert said["confirmed"]
        assert standing(teller, waiting) == ("VERIFIED", "micro_deposits", "APPROVED")
        with pytest.raises(Refused, match="micro-deposits-not-pending"):
            teller.do(ConfirmDeposits, counterparty_id=waiting, amounts=amounts, are_sent=True)


def test_confirming_deposits_before_they_are_sent_is_refused(teller):
    waiting = add(teller)
    for amounts in ((11, 22), (11, 11)):
        with pytest.raises(Refused, match="micro-deposits-not-sent"):
            teller.do(ConfirmDeposits, counterparty_id=waiting, amounts=amounts)
    assert teller.book.counterparties[waiting].verification["failures"] == 0


def test_a_counterparty_is_unlinked_after_three_wrong_deposit_amounts(teller):
    waiting = add(teller)
    for left in (2, 1, 0):
        said = teller.do(ConfirmDeposits, counterparty_id=waiting, amounts=(11, 11), are_sent=True)
        assert (said["confirmed"], said["left"]) == (False, left)
    assert standing(teller, waiting) == ("UNLINKED", "micro_deposits", "REJECTED")
    with pytest.raises(Refused, match="micro-deposits-not-pending"):
        teller.do(ConfirmDeposits, counterparty_id=waiting, amounts=(11, 22), are_sent=True)


def test_micro_deposits_in_production_are_two_different_amounts_under_a_dollar():
    teller = teller_with_pocket(screening=NoScreening())
    for n in range(50):
        waiting = add(teller, details=ACCOUNT | {"account_number": f"{n:08}"})
        first, second = teller.book.counterparties[waiting].verification["deposits"]
        assert 1 <= first <= 99
        assert 1 <= second <= 99
        assert first != second


def test_a_counterparty_is_unlinked_when_its_deposits_are_returned(teller):
    waiting = add(teller)
    teller.do(FailVerification, counterparty_id=waiting, reason="R03: no such account.")
    assert standing(teller, waiting) == ("UNLINKED", "micro_deposits", "REJECTED")
    done = add(teller)
    teller.do(ConfirmDeposits, counterparty_id=done, amounts=(11, 22), are_sent=True)
    teller.do(FailVerification, counterparty_id=done, reason="R03")
    assert standing(teller, done)[0] == "VERIFIED"


def test_a_document_review_is_decided_only_once(teller):
    for approved, status in ((True, "VERIFIED"), (False, "UNLINKED")):
        details = WIRED | {"identifier": status}
        waiting = add(teller, "wire", "supporting_documents", document_ids=(UUID(int=7),), details=details)
        teller.do(DecideVerification, counterparty_id=waiting, approved=approved)
        assert standing(teller, waiting)[0] == status
        with pytest.raises(Refused, match="counterparty-not-pending"):
            teller.do(DecideVerification, counterparty_id=waiting, approved=not approved)


def test_an_incoming_wire_verifies_the_pending_counterparty_of_its_account(teller):
    pocket = teller.pocket()
    waiting = add(teller, "wire", "incoming_wire")
    elsewhere = add(teller, "wire", "incoming_wire", details=WIRED | {"identifier": "999"})
    deposits = add(teller, "ach", "micro_deposits")
    assert "counterparties" not in wire(teller, pocket, Account("021000021", "12345679"))
    told = wire(teller, pocket, Account("021000021", "12345678"))
    assert [each["counterparty_id"] for each in told["counterparties"]] == [str(waiting)]
    assert standing(teller, waiting) == ("VERIFIED", "incoming_wire", "APPROVED")
    assert standing(teller, elsewhere)[0] == standing(teller, deposits)[0] == "PENDING"
    assert "counterparties" not in wire(teller, pocket, Account("021000021", "12345678"))


def test_an_incoming_wire_with_a_different_name_leaves_the_counterparty_in_review(teller):
    pocket = teller.pocket()
    waiting = add(teller, "wire", "incoming_wire")
    assert "counterparties" not in wire(teller, pocket, Account("021000021", "12345678"), name="Mallory Inc")
    assert standing(teller, waiting) == ("PENDING", "incoming_wire", "PENDING_REVIEW")
    assert "under another name" in teller.book.counterparties[waiting].verification["description"]
    wire(teller, pocket, Account("021000021", "12345678"), name="STONE BERT")
    assert standing(teller, waiting)[0] == "VERIFIED"


def test_an_international_wire_is_matched_by_bic_and_iban(teller):
    pocket = teller.pocket()
    details = {"routing_number": "COBADEFF", "identifier": "DE89370400440532013000"}
    waiting = add(teller, "international_wire", "incoming_wire", details=details)
    wire(teller, pocket, Account("COBADEFFXXX", "DE89370400440532013000"))
    assert standing(teller, waiting)[0] == "VERIFIED"


def test_a_pending_wire_verification_expires_once(teller):
    waiting = add(teller, "wire", "incoming_wire")
    told = teller.do(ExpireVerification, counterparty_id=waiting)
    assert standing(teller, waiting) == ("UNLINKED", "incoming_wire", "EXPIRED")
    assert told["counterparties"][0]["said"].endswith("could not be verified.")
    assert "counterparties" not in teller.do(ExpireVerification, counterparty_id=waiting)


@pytest.mark.parametrize(
    ("status", "stands"),
    [
        ("AUTOMATICALLY_VERIFIED", ("VERIFIED", "linking_provider", "APPROVED")),
        ("VERIFICATION_FAILED", ("UNLINKED", "linking_provider", "REJECTED")),
        ("VERIFICATION_EXPIRED", ("UNLINKED", "linking_provider", "EXPIRED")),
        ("PENDING_MANUAL_VERIFICATION", ("PENDING", "linking_provider", "PENDING_REVIEW")),
    ],
)
def test_a_provider_link_status_sets_the_counterparty_status(teller, status, stands):
    first = {"id": "x", "mask": "5678", "status": "PENDING_AUTOMATIC_VERIFICATION", "access": ""}
    waiting = add(teller, verification="linking_provider", linked=first)
    assert standing(teller, waiting)[0] == "PENDING"
    for _ in range(2):
        teller.do(SettleLink, counterparty_id=waiting, link_status=status)
        assert standing(teller, waiting) == stands
    payee = teller.book.counterparties[waiting]
    assert payee.verification["account"]["status"] == status


def test_a_correction_changes_the_account_numbers_used_for_payments(teller):
    done = add(teller)
    correction = Correction(account_number="87654321", transaction_code="32")
    told = teller.do(CorrectAccount, counterparty_id=done, details=correction.details)
    assert teller.book.counterparties[done].details == {
        "routing_number": "021000021",
        "account_number": "87654321",
        "account_type": "SAVINGS",
    }
    assert told["counterparties"][0]["said"] == ("The counterparty Bert Stone was corrected by its bank.")
    again = teller.do(CorrectAccount, counterparty_id=done, details=correction.details)
    assert "counterparties" not in again


@pytest.mark.parametrize(
    ("kind", "verification", "rail", "unverified_wires", "may"),
    [
        ("ach", "linking_provider", "ACH", False, True),
        ("ach", "linking_provider", "WIRE", False, False),
        ("ach", "micro_deposits", "ACH", False, False),
        ("wire", "incoming_wire", "WIRE", True, False),
        ("wire", "unverified", "WIRE", False, False),
        ("wire", "unverified", "WIRE", True, True),
        ("international_wire", "unverified", "WIRE", True, True),
        ("on_us", None, "ON_US", False, False),
        ("crypto_wallet_address", None, "USDC", False, False),
        ("crypto_wallet_address", "pre_verified", "USDC", True, False),  # of an earlier release
    ],
)
def test_money_moves_only_to_counterparties_that_allow_it(teller, kind, verification, rail, unverified_wires, may):
    payee = teller.book.counterparties[add(teller, kind, verification)]
    assert (payment_refusal(payee, rail, unverified_wires=unverified_wires) is None) is may
