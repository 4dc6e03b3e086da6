"""Holds in memory: what they keep from other payments, and what is left of them after each of their ends."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.fixtures.teller import Teller

from billfold.accounts.holds.commands import ACTIVE_MAX, ExpireHold, PlaceHold, ReleaseHold
from billfold.accounts.pockets.commands import SetPocketState, UpdatePocket
from billfold.ledger.book.postings import EventEntry, JournalEntry
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.withdraw import payable_cents

HOLD = UUID(int=5)


class Holder(Teller):
    """A customer with $1,000 in a Pocket, another Pocket, and holds on the first."""

    def __init__(self):
        super().__init__()
        self.held, self.other = self.pocket(), self.pocket()
        self.deposit(self.held, 1_000_00)

    def place(self, cents, hold_id=HOLD, pocket=None, days=7):
        until = self.bank.now + timedelta(days=days)
        pocket_id = (pocket or self.held).pocket_id
        fields = {"hold_id": hold_id, "pocket_id": pocket_id, "amount": cents, "until": until, "reason": "a deposit"}
        return self.do(PlaceHold, **fields)

    def end(self, kind, hold_id=HOLD):
        return self.do(kind, references=(hold_id,), hold_id=hold_id)

    def pay(self, cents, hold_id=None, **fields):
        if hold_id is not None:
            fields |= {"order": TransferOrder(hold_id=hold_id), "hold_id": hold_id, "references": (hold_id,)}
        return self.move(self.held, self.other, cents, **fields)

    @property
    def payable(self):
        return payable_cents(self.held, self.bank._moment())

    @property
    def events(self):
        made = [each.kind for each in self.bank.tables[EventEntry]]
        return [each.removeprefix("hold.") for each in made if each.startswith("hold.")]

    def row(self, hold_id=HOLD):
        return self.bank.seen.of(self.customer)[hold_id]


@pytest.fixture
def holder():
    return Holder()


def test_a_hold_keeps_its_amount_from_all_but_the_payment_that_names_it_and_moves_nothing(holder):
    entries, bills, before = len(holder.bank.tables[JournalEntry]), holder.held.positions(), holder.payable
    holder.place(600_00)
    assert (len(holder.bank.tables[JournalEntry]), holder.held.positions()) == (entries, bills)
    assert holder.payable == before - 600_00
    assert holder.pay(before - 595_00)["reason"] == "INSUFFICIENT_FUNDS"
    assert holder.pay(None)["reason"] == "INSUFFICIENT_FUNDS"
    assert holder.pay(before - 600_00)["status"] == "COMPLETED"
    assert holder.pay(250_00, HOLD)["status"] == "COMPLETED"
    assert (holder.row().kept, holder.row().captured, holder.row().status) == (350_00, 250_00, "ACTIVE")
    assert holder.pay(350_00, HOLD)["status"] == "COMPLETED"
    assert (holder.row().kept, holder.row().captured, holder.row().status) == (0, 600_00, "CAPTURED")
    assert holder.held.liens == []
    assert holder.events == ["created", "captured", "captured"]


@pytest.mark.parametrize("cents", [600_01, None])
def test_a_payment_beyond_its_hold_is_refused_and_leaves_it_as_it_was(holder, cents):
    holder.place(600_00)
    with pytest.raises(Refused) as refused:
        holder.pay(cents, HOLD)
    assert refused.value.code == "amount-not-allowed"
    assert holder.pay(cents, HOLD, approved=True)["reason"] == "INVALID_TRANSFER"
    assert (holder.row().kept, len(holder.held.liens), holder.events) == (600_00, 1, ["created"])


def test_a_payment_that_its_pocket_cannot_raise_leaves_its_hold_as_it_was(holder):
    holder.place(600_00)
    holder.held.fee_accrued = 10**15
    assert holder.pay(600_00, HOLD)["reason"] == "INSUFFICIENT_FUNDS"
    assert (holder.row().kept, len(holder.held.liens), holder.events) == (600_00, 1, ["created"])


@pytest.mark.parametrize(("kind", "days", "status"), [(ReleaseHold, 0, "RELEASED"), (ExpireHold, 7, "EXPIRED")])
def test_what_is_left_of_a_hold_that_ends_is_free_once(holder, kind, days, status):
    holder.place(600_00)
    holder.pay(100_00, HOLD)
    assert holder.end(ExpireHold)["status"] == "ACTIVE"
    holder.bank.advance(holder.bank.now + timedelta(days=days))
    free = holder.payable
    assert holder.end(kind)["status"] == status
    assert holder.payable == free + (0 if days else 500_00)
    assert (holder.row().kept, holder.row().captured, holder.held.liens) == (0, 100_00, [])
    assert holder.end(ExpireHold)["status"] == status
    for late in (lambda: holder.end(ReleaseHold), lambda: holder.pay(1_00, HOLD)):
        with pytest.raises(Refused) as refused:
            late()
        assert refused.value.code == "hold-not-active"
    assert holder.events == ["created", "captured", status.lower()]


def test_a_hold_whose_time_is_over_cannot_be_used_before_its_job_has_run(holder):
    holder.place(600_00)
    before = holder.payable
    holder.bank.now = holder.row().until
    assert holder.payable >= before + 600_00
    for late in (lambda: holder.end(ReleaseHold), lambda: holder.pay(1_00, HOLD)):
        with pytest.raises(Refused) as refused:
            late()
        assert refused.value.code == "hold-not-active"


def test_a_payment_of_another_pocket_or_customer_finds_no_hold(holder):
    holder.deposit(holder.other, 1_000_00)
    holder.place(600_00, pocket=holder.other)
    with pytest.raises(NotFound):
        holder.pay(100_00, HOLD)
    with pytest.raises(NotFound):
        holder.pay(100_00, UUID(int=6))
    assert holder.pay(100_00, UUID(int=6), later=True, transfer_id=UUID(int=7))["status"] == "PENDING"
    assert holder.pay(100_00, UUID(int=6), accepted=True, transfer_id=UUID(int=7))["reason"] == "INVALID_TRANSFER"
    with pytest.raises(NotFound):
        holder.submit(ReleaseHold, holder.new_customer("Bert"), references=(HOLD,), hold_id=HOLD)


def test_no_hold_is_placed_beyond_what_the_pocket_can_pay_nor_on_a_frozen_one_nor_without_end(holder):
    def refusal(cents, **fields):
        with pytest.raises(Refused) as refused:
            holder.place(cents, **fields)
        return refused.value.code

    assert refusal(holder.payable + 1) == "insufficient-funds"
    holder.do(SetPocketState, pocket_id=holder.held.pocket_id, status="FROZEN")
    assert refusal(1_00) == "pocket-frozen"
    holder.do(SetPocketState, pocket_id=holder.held.pocket_id, status="OPEN")
    for number in range(ACTIVE_MAX):
        holder.place(1, UUID(int=100 + number))
    assert refusal(1) == "too-many-holds"
    holder.end(ReleaseHold, UUID(int=100))
    holder.place(1)


def test_a_pocket_is_not_closed_while_a_hold_keeps_money_in_it(holder):
    holder.place(1_00)
    holder.pay(holder.payable)
    with pytest.raises(Refused) as refused:
        holder.do(UpdatePocket, pocket_id=holder.held.pocket_id, close_for="USER_INSTIGATED")
    assert refused.value.code == "pocket-not-empty"
