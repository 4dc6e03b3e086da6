"""Decisions about deposits and withdrawals on a chain, without one."""

from datetime import date
from uuid import UUID

import msgspec
import pytest
from tests.architecture.movements_of_crypto import PLACE, chain_deposit
from tests.fixtures.teller import Customers

from billfold.accounts.pockets.commands import SetPocketState
from billfold.accounts.portals.commands import OpenPortal, Wallet
from billfold.ledger.book.postings import EventEntry, JournalEntry, TransactionEntry, Update
from billfold.ledger.customers import DirectoryEntry
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Agreements, AgreementTerms
from billfold.payments.crypto.deposits.rules import (
    CENTS_MAX,
    CreditDeposit,
    CryptoDepositRow,
    HoldReason,
    RecordUnbooked,
    RestoreDeposit,
    WriteOffDeposit,
)
from billfold.payments.crypto.withdrawals.rules import (
    CompleteWithdrawal,
    Objection,
    RejectWithdrawal,
    SendUsdc,
    SubmitWithdrawal,
)
from billfold.platform.errors import NotFound, Refused

DOLLAR = 1_000_000
WALLET = {"chain": "ETHEREUM", "wallet_address": "0xR", "asset": "USDC"}


class Withdrawals(Customers):
    """A customer with bills who pays a wallet, and who has to accept agreements by 5 June."""

    def __init__(self):
        terms = Agreements([AgreementTerms("2025-05-01", date(2025, 6, 5))])
        super().__init__(agreements=terms, usdc_minimum_cents=10_00)
        self.anna, self.pocket = self.rich()
        fields = {"details": WALLET, "verification": "linking_provider"}
        self.payee = UUID(self.add_counterparty(self.anna, "crypto_wallet_address", **fields)["counterparty_id"])

    def send(self, number, cents=100_00, **fields):
        ids = {"withdrawal_id": UUID(int=number), "counterparty_id": self.payee, "references": (self.payee,)}
        return self.submit(SendUsdc, self.anna, pocket_id=self.pocket.id, amount=cents, **ids, **fields)["status"]

    def end(self, kind, number, **fields):
        ids = {"withdrawal_id": UUID(int=number), "references": (UUID(int=number),)}
        return self.submit(kind, self.anna, **ids, **fields)["status"]

    def rows(self, kind):
        return [row for row in self.bank.tables[kind] if getattr(row, "customer_id", self.anna) == self.anna]


@pytest.fixture
def withdrawals():
    return Withdrawals()


@pytest.mark.parametrize(("status", "code"), [("FROZEN", "pocket-frozen"), ("CLOSED", "pocket-not-open")])
def test_a_pocket_that_is_not_open_pays_no_withdrawal(withdrawals, status, code):
    withdrawals.submit(SetPocketState, withdrawals.anna, pocket_id=withdrawals.pocket.id, status="FROZEN")
    withdrawals.bank.books[withdrawals.anna].pockets[withdrawals.pocket.id].status = status
    with pytest.raises(Refused, match=code):
        withdrawals.send(1)
    assert withdrawals.send(1, approved=True) == "REJECTED"


@pytest.mark.parametrize(
    ("code", "day", "payee", "fields"),
    [
        ("insufficient-funds", 4, {}, {"cents": 100_000_00}),
        ("amount-below-minimum", 4, {}, {"cents": 9_99}),
        ("counterparty-type-mismatch", 4, {"type": "us_bank_account"}, {}),
        ("sanction-screen-failed", 4, {}, {"objection": Objection("sanction-screen-failed", "It is listed.")}),
        ("agreement-not-accepted", 5, {}, {}),
    ],
)
def test_a_refused_withdrawal_moves_no_money(withdrawals, code, day, payee, fields):
    anna, seen = withdrawals.anna, withdrawals.bank.seen
    seen.put(anna, withdrawals.payee, msgspec.structs.replace(seen.of(anna)[withdrawals.payee], **payee))
    withdrawals.until(date(2025, 6, day))
    before, raised = withdrawals.rows(JournalEntry), withdrawals.rows(EventEntry)
    with pytest.raises(Refused, match=code):
        withdrawals.send(1, **fields)
    assert withdrawals.send(1, approved=True, **fields) == "REJECTED"
    assert withdrawals.rows(JournalEntry) == before
    (told,) = withdrawals.rows(EventEntry)[len(raised) :]
    assert told.kind == "transfers.crypto.withdrawal.rejected"


def test_a_completed_withdrawal_is_not_rejected_nor_a_rejected_one_completed(withdrawals):
    withdrawals.until(date(2025, 6, 4))
    assert withdrawals.send(1) == withdrawals.send(2, 10_00) == "PENDING"
    assert [row.object_id.int for row in withdrawals.rows(DirectoryEntry)[-2:]] == [1, 2]
    withdrawals.until(date(2025, 6, 5))
    assert withdrawals.end(SubmitWithdrawal, 1) == "PROCESSING"
    done, back = {"transaction_hash": "0x"}, {"transaction_hash": "0x", "reason": "CANCELED"}
    assert withdrawals.end(CompleteWithdrawal, 1, **done) == "COMPLETED"
    assert withdrawals.end(RejectWithdrawal, 2, **back) == "REJECTED"
    for _ in range(2):
        assert withdrawals.end(RejectWithdrawal, 1, **back) == withdrawals.end(SubmitWithdrawal, 1) == "COMPLETED"
        assert withdrawals.end(CompleteWithdrawal, 2, **done) == "REJECTED"
        assert withdrawals.bank.books[withdrawals.anna].house["rail:cryptoUSD"].balance == 100_00
    assert [each.columns["status"] for each in withdrawals.rows(Update)[-3:]] == ["PROCESSING", "COMPLETED", "REJECTED"]
    told = [row.kind.rpartition(".")[2] for row in withdrawals.rows(EventEntry) if "withdrawal" in row.kind]
    assert told == ["processing", "processing", "success", "rejected"]
    shown = [row for row in withdrawals.rows(TransactionEntry) if row.type == "GENERIC"]
    assert [(row.title, row.direction) for row in shown] == [("USDC sent", "DEBIT")] * 2 + [("USDC returned", "CREDIT")]
    assert [row.description.endswith("rejected") for row in shown] == [False, False, True]
    with pytest.raises(NotFound):
        withdrawals.end(SubmitWithdrawal, 3)


class Deposits(Customers):
    """A customer with a deposit address, and the bank."""

    def __init__(self):
        super().__init__()
        self.house, self.anna = bank_customer_id(self.bank.seed), self.new_customer("Anna")
        self.enrol(self.house, "Bank", role="house")
        self.pocket = self.new_pocket(self.anna)
        wallet = Wallet(chain="ETHEREUM", address="0xR", asset="USDC", xpub_id=1, index=0)
        opened = self.submit(OpenPortal, self.anna, pocket_id=self.pocket.id, name="x", wallet=wallet)
        self.portal = UUID(opened["portal_id"])

    def arrive(self, kind, number, units, **fields):
        deposit = msgspec.structs.replace(chain_deposit(0), units=str(units))
        place = {"portal_id": self.portal, "pocket_id": self.pocket.id, "references": (UUID(int=number), self.portal)}
        made = self.submit(kind, self.anna, deposit_id=UUID(int=number), deposit=deposit, **place, **fields)
        return made["status"], made.get("amount")

    def change(self, kind, number, **fields):
        about = {"deposit_id": UUID(int=number), "references": (UUID(int=number), self.portal)}
        return self.submit(kind, self.anna, self.house, **about, **fields)["status"]

    @property
    def losses(self):
        return self.bank.totals["losses", "USD"]


@pytest.fixture
def deposits():
    return Deposits()


@pytest.mark.parametrize("is_released", [False, True])
def test_a_held_deposit_that_is_written_off_is_a_loss_only_if_it_was_released(deposits, is_released):
    deposits.arrive(RecordUnbooked, 1, 500 * DOLLAR, amount=500_00, reason=HoldReason.SENDER_LISTED)
    for _ in range(2):
        assert deposits.change(WriteOffDeposit, 1, is_released=is_released) == "REORGED"
        assert deposits.losses == (-500_00 if is_released else 0)
    assert deposits.arrive(CreditDeposit, 2, DOLLAR - 1) == ("CARRIED", 0), (
        "less than the minimum, and none that is gone"
    )
    for _ in range(2):
        assert deposits.change(RestoreDeposit, 1, **PLACE) == ("CREDITED" if is_released else "HELD")
        assert deposits.losses == 0
    reasons = [each.columns["reason"] for each in deposits.bank.tables[Update] if each.row is CryptoDepositRow]
    assert reasons == (["CREDITED", None] if is_released else ["HELD", "REORGED"])


def test_units_that_are_not_booked_are_carried_to_the_next_deposit(deposits):
    for _ in range(2):
        assert deposits.arrive(CreditDeposit, 1, DOLLAR - 1) == ("CARRIED", 0)
    assert deposits.arrive(CreditDeposit, 2, 10_001) == ("CREDITED", 1_01)
    assert deposits.change(WriteOffDeposit, 1) == "REORGED"
    assert deposits.arrive(CreditDeposit, 3, 2 * DOLLAR) == ("CREDITED", 1_00)
    assert deposits.change(RestoreDeposit, 1, **PLACE) == "CARRIED"
    assert deposits.arrive(RecordUnbooked, 4, DOLLAR, amount=0, reason=HoldReason.SENDER_LISTED) == ("QUESTIONED", 0)
    assert deposits.arrive(CreditDeposit, 5, 10_000) == ("CREDITED", 1_01)
    assert deposits.arrive(CreditDeposit, 4, DOLLAR, is_released=True) == ("CREDITED", 1_00)
    with pytest.raises(Refused, match="suspense-item-settled"):
        deposits.arrive(CreditDeposit, 4, DOLLAR, is_released=True)
    assert [row.deposit_id.int for row in deposits.bank.tables[CryptoDepositRow]] == [1, 2, 3, 4, 5]
    assert deposits.arrive(CreditDeposit, 6, (CENTS_MAX + 1) * 10_000) == ("UNAVAILABLE", None)
    assert deposits.arrive(CreditDeposit, 6, CENTS_MAX * 10_000) == ("CREDITED", CENTS_MAX)
    assert deposits.losses == 0
