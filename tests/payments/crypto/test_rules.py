"""Decisions about deposits and withdrawals on a chain, without one."""

from uuid import UUID

import pytest
from tests.architecture.movements_of_crypto import PLACE, chain_deposit
from tests.fixtures.teller import Customers

from billfold.accounts.pockets.commands import SetPocketState
from billfold.accounts.portals.commands import OpenPortal, Wallet
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.crypto.deposits.rules import (
    CreditDeposit,
    HoldReason,
    RecordUnbooked,
    RestoreDeposit,
    WriteOffDeposit,
)
from billfold.payments.crypto.withdrawals.rules import CompleteWithdrawal, RejectWithdrawal, SendUsdc
from billfold.platform.errors import Refused

WALLET = {"chain": "ETHEREUM", "wallet_address": "0xR", "asset": "USDC"}


class Withdrawals(Customers):
    """A customer with bills who pays a wallet."""

    def __init__(self):
        super().__init__()
        self.anna, self.pocket = self.rich()
        fields = {"details": WALLET, "verification": "linking_provider"}
        self.payee = UUID(self.add_counterparty(self.anna, "crypto_wallet_address", **fields)["counterparty_id"])

    def send(self, number, cents=100_00, **fields):
        ids = {"withdrawal_id": UUID(int=number), "counterparty_id": self.payee, "references": (self.payee,)}
        return self.submit(SendUsdc, self.anna, pocket_id=self.pocket.id, amount=cents, **ids, **fields)["status"]

    def end(self, kind, number, **fields):
        ids = {"withdrawal_id": UUID(int=number), "references": (UUID(int=number),)}
        return self.submit(kind, self.anna, transaction_hash="0x", **ids, **fields)["status"]


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


def test_a_completed_withdrawal_is_not_rejected_nor_a_rejected_one_completed(withdrawals):
    assert withdrawals.send(1) == withdrawals.send(2) == "PENDING"
    assert withdrawals.end(CompleteWithdrawal, 1) == "COMPLETED"
    assert withdrawals.end(RejectWithdrawal, 2, reason="CANCELED") == "REJECTED"
    for _ in range(2):
        assert withdrawals.end(RejectWithdrawal, 1, reason="CANCELED") == "COMPLETED"
        assert withdrawals.end(CompleteWithdrawal, 2) == "REJECTED"
        assert withdrawals.bank.books[withdrawals.anna].house["rail:cryptoUSD"].balance == 100_00


@pytest.mark.parametrize("is_released", [False, True])
def test_a_held_deposit_that_is_written_off_is_a_loss_only_if_it_was_released(is_released):
    customers = Customers()
    house, anna = bank_customer_id(customers.bank.seed), customers.new_customer("Anna")
    customers.enrol(house, "Bank", role="house")
    pocket = customers.new_pocket(anna)
    wallet = Wallet(chain="ETHEREUM", address="0xR", asset="USDC", xpub_id=1, index=0)
    portal = UUID(customers.submit(OpenPortal, anna, pocket_id=pocket.id, name="x", wallet=wallet)["portal_id"])
    deposit_id = UUID(int=1)
    about = {"deposit_id": deposit_id, "references": (deposit_id, portal)}
    held = {"deposit": chain_deposit(500_00), "amount": 500_00, "reason": HoldReason.SENDER_LISTED}
    customers.submit(RecordUnbooked, anna, portal_id=portal, pocket_id=pocket.id, **held, **about)
    for _ in range(2):
        customers.submit(WriteOffDeposit, anna, house, is_released=is_released, **about)
        assert customers.bank.totals["losses", "USD"] == (-500_00 if is_released else 0)
    place = {"portal_id": portal, "pocket_id": pocket.id, "references": (UUID(int=2), portal)}
    later = {"deposit_id": UUID(int=2), "deposit": chain_deposit(99)}
    carried = customers.submit(CreditDeposit, anna, **later, **place)
    assert (carried["status"], carried["amount"]) == ("CARRIED", 0), "less than the minimum, and none that is gone"
    for _ in range(2):
        status = customers.submit(RestoreDeposit, anna, house, **PLACE, **about)["status"]
        assert (status, customers.bank.totals["losses", "USD"]) == ("CREDITED" if is_released else "HELD", 0)
