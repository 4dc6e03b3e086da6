"""Forced returns are executed, covered or not, and incoming money repays an overdraft first."""

from uuid import UUID

import pytest

from billfold.accounts.pockets.commands import UpdatePocket
from billfold.ledger.book.postings import AccountEntry, TransactionEntry
from billfold.ledger.types import AccountKind
from billfold.payments.adjustments.rules import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.errors import Refused
from billfold.treasury.rules.overdraft import overdraft_of

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")


@pytest.fixture
def pocket_with_spent_credit(teller):
    """A pocket that was given $500.00 and spent all but what it must keep: $400.00."""
    pocket = teller.pocket()
    given = give_credit(teller, pocket, 500_00)
    teller.move(pocket, teller.pocket(), 400_00)
    return pocket, given


def give_credit(teller, pocket, cents):
    return teller.do(
        PostGoodwillCredit, pocket_id=pocket.pocket_id, amount=cents, credit_type="PROMOTION", description="welcome"
    )


def take_back(teller, given):
    activity_id = UUID(given["activity_id"])
    return teller.do(ReverseTransaction, activity_id=activity_id, description="a mistake", references=(activity_id,))


@pytest.mark.parametrize("left", [0, 1, 5])
def test_a_shortfall_uses_the_remaining_cents_first_and_owes_the_rest(teller, left):
    pocket = teller.pocket()
    given = give_credit(teller, pocket, 5)
    if left < 5:
        teller.move(pocket, teller.pocket(), 5 - left)
    take_back(teller, given)
    assert (pocket.cash.balance, overdraft_of(pocket)) == (0, 5 - left)
    owed = {(row.kind, row.pocket_id) for row in teller.bank.tables[AccountEntry] if row.kind == AccountKind.OWED}
    assert owed == ({(AccountKind.OWED, pocket.pocket_id)} if left < 5 else set())


def transactions_of(teller, pocket):
    """The transaction rows of this pocket: (type, direction, cents)."""
    return [
        (row.type, row.direction, row.amount)
        for row in teller.bank.tables[TransactionEntry]
        if row.pocket_id == pocket.pocket_id
    ]


def test_a_reversal_over_the_pocket_balance_becomes_an_overdraft(teller, pocket_with_spent_credit):
    pocket, given = pocket_with_spent_credit
    value = 500_00 - 400_00 - (pocket.outflow - 400_00)
    take_back(teller, given)
    assert (pocket.lots, pocket.cash.balance, pocket.bank.balance) == ([], 0, 0)
    assert 400_00 <= overdraft_of(pocket) < 401_00
    assert value > 0
    lent = overdraft_of(pocket)
    assert transactions_of(teller, pocket)[-2:] == [("GENERIC", "CREDIT", lent), ("GENERIC", "DEBIT", 500_00)]


def test_a_deposit_repays_the_overdraft_first(teller, pocket_with_spent_credit):
    pocket, given = pocket_with_spent_credit
    take_back(teller, given)
    lent = overdraft_of(pocket)
    teller.deposit(pocket, 100_00)
    assert overdraft_of(pocket) == lent - 100_00
    assert (pocket.lots, pocket.cash.balance) == ([], 0)
    teller.deposit(pocket, 1_000_00)
    assert overdraft_of(pocket) == 0
    assert pocket.lots
    kept = pocket.cash.balance + pocket.earnings_basis()
    assert pocket.inflow - pocket.outflow + pocket.realised == kept
    assert ("GENERIC", "DEBIT", 100_00) in transactions_of(teller, pocket)


def test_bills_received_in_kind_are_sold_to_repay_an_overdraft(teller, pocket_with_spent_credit):
    pocket, given = pocket_with_spent_credit
    take_back(teller, given)
    giver = teller.pocket()
    teller.deposit(giver, 2_000_00)
    teller.move(giver, pocket, 1_000_00, order=IN_KIND)
    assert overdraft_of(pocket) == 0
    assert pocket.lots


def test_closing_an_overdrawn_pocket_is_refused(teller, pocket_with_spent_credit):
    pocket, given = pocket_with_spent_credit
    take_back(teller, given)
    with pytest.raises(Refused, match="owes the bank") as refused:
        teller.do(UpdatePocket, pocket_id=pocket.pocket_id, close_for="not needed")
    assert refused.value.code == "pocket-not-empty"


def test_a_goodwill_credit_is_reversed_once(teller):
    pocket = teller.pocket()
    given = give_credit(teller, pocket, 500_00)
    take_back(teller, given)
    with pytest.raises(Refused, match="already reversed"):
        take_back(teller, given)


def test_an_uncovered_debit_adjustment_is_refused_and_moves_nothing(teller):
    pocket = teller.pocket()
    give_credit(teller, pocket, 500_00)
    with pytest.raises(Refused) as refused:
        teller.do(AdjustPocket, pocket_id=pocket.pocket_id, direction="DEBIT", amount=500_01, description="too much")
    assert refused.value.code == "insufficient-funds"
    assert pocket.outflow == 0
